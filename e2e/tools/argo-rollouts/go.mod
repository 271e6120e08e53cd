// Nothing is built from it: tests read the CRDs that come with the module.
module argocd-fleet/e2e/tools/argo-rollouts

go 1.26.0

require github.com/argoproj/argo-rollouts v1.10.1
