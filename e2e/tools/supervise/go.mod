module argocd-fleet/e2e/tools/supervise

go 1.26.0
