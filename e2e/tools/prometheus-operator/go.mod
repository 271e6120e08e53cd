// Nothing is built from it: tests read the CRDs that come with the module.
module argocd-fleet/e2e/tools/prometheus-operator

go 1.26.0

require github.com/prometheus-operator/prometheus-operator v0.85.0
