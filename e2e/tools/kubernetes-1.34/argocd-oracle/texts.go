package main

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argoproj/argo-cd/v3/pkg/apis/application/v1alpha1"
	"github.com/argoproj/argo-cd/v3/util/argo"
	"github.com/argoproj/argo-cd/v3/util/git"
	"github.com/argoproj/argo-cd/v3/util/glob"
)

// globMatches: does a glob match a text? An error when it is no glob.
func globMatches(of struct {
	Pattern   string `json:"pattern"`
	Text      string `json:"text"`
	Separator string `json:"separator"`
}) (any, error) {
	return glob.MatchWithError(of.Pattern, of.Text, []rune(of.Separator)...)
}

// list: does an entry of a list match a text, as a glob or a regular expression?
func list(of struct {
	Entries []string `json:"entries"`
	Text    string   `json:"text"`
}) (any, error) {
	return glob.MatchStringInList(of.Entries, of.Text, glob.REGEXP), nil
}

// normalRepository: the normal form of an address.
func normalRepository(of struct {
	URL string `json:"url"`
}) (any, error) {
	return git.NormalizeGitURL(of.URL), nil
}

// sameRepository: do two addresses mean the same repository? Null when one is no URL.
func sameRepository(of struct {
	One   string `json:"one"`
	Other string `json:"other"`
}) (any, error) {
	if git.NormalizeGitURL(of.One) == "" || git.NormalizeGitURL(of.Other) == "" {
		return nil, nil
	}
	return git.SameURL(of.One, of.Other), nil
}

// sameSpecs: are two specs of Applications the same to Argo CD?
func sameSpecs(of struct {
	One   v1alpha1.ApplicationSpec `json:"one"`
	Other v1alpha1.ApplicationSpec `json:"other"`
}) (any, error) {
	return equality.Semantic.DeepEqual(of.One, of.Other), nil
}

// normalJSON: a value as Go writes it.
func normalJSON(of struct {
	Text string `json:"text"`
}) (any, error) {
	var value any
	if err := json.Unmarshal([]byte(of.Text), &value); err != nil {
		return nil, err
	}
	written, err := json.Marshal(value)
	return string(written), err
}

// tracking: the Application that an object is marked with; empty for none.
func tracking(of struct {
	Object         map[string]any          `json:"object"`
	LabelKey       string                  `json:"labelKey"`
	Method         v1alpha1.TrackingMethod `json:"method"`
	InstallationID string                  `json:"installationID"`
}) (any, error) {
	object := &unstructured.Unstructured{Object: of.Object}
	return argo.NewResourceTracking().GetAppName(object, of.LabelKey, of.Method, of.InstallationID), nil
}
