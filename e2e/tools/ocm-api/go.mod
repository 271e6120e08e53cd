// Nothing is built from it: tests read the CRDs that come with the module.
module argocd-fleet/e2e/tools/ocm-api

go 1.26.0

require open-cluster-management.io/api v1.3.0
