package main

import (
	_ "github.com/argoproj/argo-cd/v3/pkg/apis/application/v1alpha1"
	_ "github.com/argoproj/argo-cd/v3/server/rbacpolicy"
	_ "github.com/argoproj/argo-cd/v3/util/argo"
	_ "github.com/argoproj/argo-cd/v3/util/assets"
	_ "github.com/argoproj/argo-cd/v3/util/db"
	_ "github.com/argoproj/argo-cd/v3/util/git"
	_ "github.com/argoproj/argo-cd/v3/util/glob"
	_ "github.com/argoproj/argo-cd/v3/util/rbac"
	_ "github.com/argoproj/argo-cd/v3/util/cache/appstate"
)

func main() {}
