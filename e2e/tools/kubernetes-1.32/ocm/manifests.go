package main

import (
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"text/template"

	"github.com/spf13/cobra"
	"open-cluster-management.io/ocm/deploy/cluster-manager/chart"
	"open-cluster-management.io/ocm/manifests"
)

// What OCM's operators install, and which of its files: neither Deployments, which are processes here, nor what is for
// features that are off by default.
type installation struct {
	files    fs.FS
	pattern  string
	leftOut  *regexp.Regexp
	settings map[string]any
}

var none = regexp.MustCompile(`^$`)

var hubSettings = map[string]any{
	"ClusterManagerName":             "cluster-manager",
	"ClusterManagerNamespace":        "open-cluster-management-hub",
	"RegistrationWebhook":            map[string]any{"Port": 9443},
	"RegistrationAPIServiceCABundle": "",
	"Labels":                         map[string]string{},
}

var klusterletSettings = map[string]any{
	"KlusterletName":             "klusterlet",
	"KlusterletNamespace":        "open-cluster-management-agent",
	"AgentNamespace":             "open-cluster-management-agent",
	"RegistrationServiceAccount": "klusterlet-registration-sa",
	"WorkServiceAccount":         "klusterlet-work-sa",
	"ManagedClusterRoleArn":      "",
	"RegistrationDriver":         map[string]string{"AuthType": ""},
	"Labels":                     map[string]string{},
}

var chartSettings = map[string]any{
	"Values":  map[string]any{"createBootstrapSA": true, "createBootstrapToken": false},
	"Release": map[string]any{"Namespace": "open-cluster-management"},
}

var installations = map[string][]installation{
	"hub": {
		{manifests.ClusterManagerManifestFiles, "cluster-manager/*.yaml", none, hubSettings},
		{
			manifests.ClusterManagerManifestFiles,
			"cluster-manager/hub/*.yaml",
			regexp.MustCompile(`-hosted|-service\.yaml|manifestworkreplicaset|clusterprofiles`),
			hubSettings,
		},
		{chart.ChartFiles, "cluster-manager/templates/bootstrap_*.yaml", regexp.MustCompile(`token|role_binding\.yaml$`), chartSettings},
		{chart.ChartFiles, "cluster-manager/templates/bootstrap_sa_cluster_role_binding.yaml", none, chartSettings},
	},
	"managed": {
		{manifests.KlusterletManifestFiles, "klusterlet/managed/*.yaml", regexp.MustCompile(`clusterproperties`), klusterletSettings},
		{manifests.KlusterletManifestFiles, "klusterlet/management/*role*.yaml", none, klusterletSettings},
	},
}

// The operator makes this one in its code.
const aggregate = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: open-cluster-management:klusterlet-work:aggregate
aggregationRule:
  clusterRoleSelectors:
  - matchLabels:
      open-cluster-management.io/aggregate-to-work: "true"
`

func newManifests() []*cobra.Command {
	commands := []*cobra.Command{}
	for where, parts := range installations {
		commands = append(commands, &cobra.Command{
			Use:   where,
			Short: "Print CRDs, accounts, rights and webhooks that OCM's operator installs there",
			RunE: func(command *cobra.Command, _ []string) error {
				out := command.OutOrStdout()
				for _, part := range parts {
					if err := part.print(out); err != nil {
						return err
					}
				}
				if where == "managed" {
					fmt.Fprintf(out, "---\n%s", aggregate)
				}
				return nil
			},
		})
	}
	return commands
}

func (i installation) print(out io.Writer) error {
	names, err := fs.Glob(i.files, i.pattern)
	if err != nil {
		return err
	}
	for _, name := range names {
		if i.leftOut.MatchString(path.Base(name)) {
			continue
		}
		text, err := fs.ReadFile(i.files, name)
		if err != nil {
			return err
		}
		parsed, err := template.New(name).Option("missingkey=default").Parse(string(text))
		if err != nil {
			return err
		}
		fmt.Fprintln(out, "---")
		if err := parsed.Execute(out, i.settings); err != nil {
			return err
		}
		fmt.Fprintln(out)
	}
	return nil
}
