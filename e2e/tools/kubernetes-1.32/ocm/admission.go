package main

import (
	"context"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	registrationv1 "open-cluster-management.io/ocm/pkg/registration/webhook/v1"
	registrationv1beta2 "open-cluster-management.io/ocm/pkg/registration/webhook/v1beta2"
	admissionv1 "open-cluster-management.io/ocm/pkg/work/webhook/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

// OCM's own webhook servers, of registration and of works, bind fixed ports on all addresses, so there could be one of each
// on a machine. This one serves what both serve, on one port of the loopback interface.
func newAdmissionServer() *cobra.Command {
	var kubeconfig, certDir string
	var port int
	command := &cobra.Command{
		Use:   "webhook-server",
		Short: "Serve the webhooks of managed clusters, cluster set bindings and works",
		RunE: func(*cobra.Command, []string) error {
			ctrl.SetLogger(klog.LoggerWithName(klog.FromContext(context.Background()), "admission"))
			config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
			if err != nil {
				return err
			}
			kinds := runtime.NewScheme()
			for _, add := range []func(*runtime.Scheme) error{
				scheme.AddToScheme, clusterv1.Install, registrationv1beta2.Install, workv1.Install,
			} {
				if err := add(kinds); err != nil {
					return err
				}
			}
			manager, err := ctrl.NewManager(config, ctrl.Options{
				Scheme:  kinds,
				Metrics: server.Options{BindAddress: "0"},
				WebhookServer: webhook.NewServer(webhook.Options{
					Host: "127.0.0.1", Port: port, CertDir: certDir,
				}),
			})
			if err != nil {
				return err
			}
			for _, one := range []interface{ Init(ctrl.Manager) error }{
				&registrationv1.ManagedClusterWebhook{},
				&registrationv1beta2.ManagedClusterSetBindingWebhook{},
				&admissionv1.ManifestWorkWebhook{},
			} {
				if err := one.Init(manager); err != nil {
					return err
				}
			}
			return manager.Start(ctrl.SetupSignalHandler())
		},
	}
	command.Flags().StringVar(&kubeconfig, "kubeconfig", "", "kubeconfig of the hub")
	command.Flags().StringVar(&certDir, "certdir", "", "folder with tls.crt and tls.key")
	command.Flags().IntVar(&port, "port", 9443, "port of the loopback interface")
	return command
}
