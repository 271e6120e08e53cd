// Nothing is built from it: tests read the CRDs that come with the module.
module argocd-fleet/e2e/tools/gateway-api

go 1.26.0

require sigs.k8s.io/gateway-api v1.6.1
