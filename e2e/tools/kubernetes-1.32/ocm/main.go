// Command ocm is OCM's executables in one: `ocm work agent` is OCM's `work agent`. One executable shares what four would
// link four times.
package main

import (
	goflag "flag"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/component-base/cli/flag"
	"k8s.io/component-base/logs"
	"open-cluster-management.io/api/feature"
	"open-cluster-management.io/ocm/pkg/cmd/hub"
	"open-cluster-management.io/ocm/pkg/cmd/spoke"
	"open-cluster-management.io/ocm/pkg/features"
)

// What stands for an executable makes its commands when it is asked for: they share feature gates, which are closed once
// one of them has made its flags.
var executables = map[string]func() []*cobra.Command{
	"registration": func() []*cobra.Command {
		runtime.Must(features.HubMutableFeatureGate.Add(feature.DefaultHubRegistrationFeatureGates))
		return []*cobra.Command{hub.NewRegistrationController(), spoke.NewRegistrationAgent()}
	},
	"placement": func() []*cobra.Command { return []*cobra.Command{hub.NewPlacementController()} },
	"work":      func() []*cobra.Command { return []*cobra.Command{spoke.NewWorkAgent()} },
	"addon":     func() []*cobra.Command { return []*cobra.Command{hub.NewAddonManager()} },
	"admission": func() []*cobra.Command {
		runtime.Must(features.HubMutableFeatureGate.Add(feature.DefaultHubRegistrationFeatureGates))
		runtime.Must(features.HubMutableFeatureGate.Add(feature.DefaultHubWorkFeatureGates))
		return []*cobra.Command{newAdmissionServer()}
	},
	"manifests": newManifests,
}

func main() {
	pflag.CommandLine.SetNormalizeFunc(flag.WordSepNormalizeFunc)
	pflag.CommandLine.AddGoFlagSet(goflag.CommandLine)
	logs.AddFlags(pflag.CommandLine)
	logs.InitLogs()
	defer logs.FlushLogs()

	root := &cobra.Command{Use: "ocm", SilenceUsage: true}
	for name, commands := range executables {
		executable := &cobra.Command{Use: name}
		if len(os.Args) > 1 && os.Args[1] == name {
			executable.AddCommand(commands()...)
		}
		root.AddCommand(executable)
	}
	if err := root.Execute(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		logs.FlushLogs()
		os.Exit(1)
	}
}
