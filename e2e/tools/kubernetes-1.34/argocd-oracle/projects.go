package main

import (
	"fmt"
	"slices"
	"time"
	_ "unsafe" // For go:linkname.

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"

	_ "github.com/argoproj/argo-cd/v3/controller" // For go:linkname.
	"github.com/argoproj/argo-cd/v3/pkg/apis/application/v1alpha1"
	"github.com/argoproj/argo-cd/v3/util/db"
	"github.com/argoproj/argo-cd/v3/util/settings"
)

//go:linkname mergeVirtualProject github.com/argoproj/argo-cd/v3/util/argo.mergeVirtualProject
func mergeVirtualProject(project *v1alpha1.AppProject, global *v1alpha1.AppProject) *v1alpha1.AppProject

type destinationQuestion struct {
	Project   string                            `json:"project"`
	Spec      v1alpha1.AppProjectSpec           `json:"spec"`
	Name      string                            `json:"name"`
	Server    string                            `json:"server"`
	Namespace string                            `json:"namespace"`
	Scoped    []v1alpha1.ApplicationDestination `json:"scoped"`
}

// destination: may the project's Applications be in a namespace of a cluster? Scoped are the project's own clusters.
func destination(of destinationQuestion) (any, error) {
	project := v1alpha1.AppProject{ObjectMeta: metav1.ObjectMeta{Name: of.Project}, Spec: of.Spec}
	cluster := &v1alpha1.Cluster{Name: of.Name, Server: of.Server}
	return project.IsDestinationPermitted(cluster, of.Namespace, func(string) ([]*v1alpha1.Cluster, error) {
		var clusters []*v1alpha1.Cluster
		for _, one := range of.Scoped {
			clusters = append(clusters, &v1alpha1.Cluster{Name: one.Name, Server: one.Server})
		}
		return clusters, nil
	})
}

// source: may the project's Applications have a source in a repository?
func source(of struct {
	SourceRepos []string `json:"sourceRepos"`
	URL         string   `json:"url"`
}) (any, error) {
	project := v1alpha1.AppProject{Spec: v1alpha1.AppProjectSpec{SourceRepos: of.SourceRepos}}
	return project.IsSourcePermitted(v1alpha1.ApplicationSource{RepoURL: of.URL}), nil
}

// windows: the numbers of the windows that apply to an Application.
func windows(of struct {
	Windows     v1alpha1.SyncWindows            `json:"windows"`
	Name        string                          `json:"name"`
	Destination v1alpha1.ApplicationDestination `json:"destination"`
}) (any, error) {
	application := &v1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Name: of.Name}}
	application.Spec.Destination = of.Destination
	numbers := []int{}
	if matching := of.Windows.Matches(application); matching != nil {
		for number, window := range of.Windows {
			if slices.Contains(*matching, window) {
				numbers = append(numbers, number)
			}
		}
	}
	return numbers, nil
}

//go:linkname activeWindow github.com/argoproj/argo-cd/v3/pkg/apis/application/v1alpha1.SyncWindow.active
func activeWindow(window v1alpha1.SyncWindow, now time.Time) (bool, error)

// side is an Application and the sync windows of its project in one Argo CD.
type side struct {
	Windows     v1alpha1.SyncWindows            `json:"windows"`
	Destination v1alpha1.ApplicationDestination `json:"destination"`
}

// windowsAt: may an Application be synchronised at a time, by hand and by itself, on the hub and on its cluster? Windows that
// are not open count as Argo CD counts them: an allowing one that is closed denies.
func windowsAt(of struct {
	Name  string    `json:"name"`
	Now   time.Time `json:"now"`
	Sides []side    `json:"sides"`
}) (any, error) {
	answers := [][]string{}
	for _, one := range of.Sides {
		application := &v1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Name: of.Name}}
		application.Spec.Destination = one.Destination
		states := []string{}
		if matching := one.Windows.Matches(application); matching != nil {
			for _, window := range *matching {
				isActive, err := activeWindow(*window, of.Now)
				states = append(states, fmt.Sprint(window.Kind, window.ManualSync, isActive, err))
			}
		}
		slices.Sort(states)
		answers = append(answers, slices.Compact(states))
	}
	return answers, nil
}

// impersonate: the user that Argo CD acts as for an Application on a cluster.
func impersonate(of struct {
	Spec        v1alpha1.AppProjectSpec `json:"spec"`
	Application v1alpha1.Application    `json:"application"`
	Server      string                  `json:"server"`
}) (any, error) {
	project := &v1alpha1.AppProject{Spec: of.Spec}
	return deriveServiceAccountToImpersonate(project, &of.Application, &v1alpha1.Cluster{Server: of.Server})
}

//go:linkname deriveServiceAccountToImpersonate github.com/argoproj/argo-cd/v3/controller.deriveServiceAccountToImpersonate
func deriveServiceAccountToImpersonate(project *v1alpha1.AppProject, application *v1alpha1.Application, cluster *v1alpha1.Cluster) (string, error)

// virtual: what a project is with its global projects.
func virtual(of struct {
	Spec    v1alpha1.AppProjectSpec   `json:"spec"`
	Globals []v1alpha1.AppProjectSpec `json:"globals"`
}) (any, error) {
	project := &v1alpha1.AppProject{Spec: of.Spec}
	for _, spec := range of.Globals {
		project = mergeVirtualProject(project, &v1alpha1.AppProject{Spec: spec})
	}
	return project.Spec, nil
}

// globals: the names of the global projects for a project with these labels, by the text of globalProjects.
func globals(of struct {
	Text   string            `json:"text"`
	Labels map[string]string `json:"labels"`
}) (any, error) {
	parsed := []settings.GlobalProjectSettings{}
	if err := yaml.Unmarshal([]byte(of.Text), &parsed); err != nil {
		return nil, err
	}
	names := []string{}
	for _, one := range parsed {
		selector, err := metav1.LabelSelectorAsSelector(&one.LabelSelector)
		if err != nil {
			break
		}
		if selector.Matches(labels.Set(of.Labels)) {
			names = append(names, one.ProjectName)
		}
	}
	return names, nil
}

// cluster: what Argo CD reads of a cluster Secret.
func cluster(of struct {
	Data map[string][]byte `json:"data"`
}) (any, error) {
	found, err := db.SecretToCluster(&corev1.Secret{Data: of.Data})
	if err != nil {
		return nil, err
	}
	return map[string]any{
		"name": found.Name, "server": found.Server, "project": found.Project, "namespaces": append([]string{}, found.Namespaces...),
	}, nil
}
