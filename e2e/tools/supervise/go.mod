module argocd-fleet/e2e/tools/supervise

go 1.26.0

require github.com/creack/pty v1.1.24
