// Command kubectl is kubectl, as k8s.io/kubernetes/cmd/kubectl builds it.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
)

func main() {
	if err := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); err != nil {
		// Prints the error in kubectl's way and ends with its exit code.
		util.CheckErr(err)
	}
	os.Exit(0)
}
