// Nothing is built from it: tests read the CRDs that come with the module.
module argocd-fleet/e2e/tools/argocd-operator

go 1.26.0

require github.com/argoproj-labs/argocd-operator v0.18.0
