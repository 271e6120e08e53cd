module argocd-fleet/e2e/tools/redis

go 1.26.0
