package main

import (
	"github.com/golang-jwt/jwt/v5"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/argoproj/argo-cd/v3/pkg/apis/application/v1alpha1"
	"github.com/argoproj/argo-cd/v3/server/rbacpolicy"
	"github.com/argoproj/argo-cd/v3/util/assets"
	"github.com/argoproj/argo-cd/v3/util/rbac"
)

// projects is a lister of one AppProject.
type projects struct{ one *v1alpha1.AppProject }

func (p projects) List(labels.Selector) ([]*v1alpha1.AppProject, error) {
	return []*v1alpha1.AppProject{p.one}, nil
}

func (p projects) Get(name string) (*v1alpha1.AppProject, error) {
	if p.one.Name == name {
		return p.one, nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{}, name)
}

// rights: which of these things may these users do? Argo CD needs longer to read a policy than to answer by it.
func rights(of struct {
	Data    map[string]string       `json:"data"`
	Project string                  `json:"project"`
	Spec    v1alpha1.AppProjectSpec `json:"spec"`
	Asked   []struct {
		Subject  string `json:"subject"`
		Groups   []any  `json:"groups"`
		Resource string `json:"resource"`
		Action   string `json:"action"`
		Object   string `json:"object"`
	} `json:"asked"`
}) (any, error) {
	enforcer := rbac.NewEnforcer(nil, "argocd", "argocd-rbac-cm", nil)
	if err := enforcer.SetBuiltinPolicy(assets.BuiltinPolicyCSV); err != nil {
		return nil, err
	}
	enforcer.SetDefaultRole(of.Data[rbac.ConfigMapPolicyDefaultKey])
	enforcer.SetMatchMode(of.Data[rbac.ConfigMapMatchModeKey])
	if err := enforcer.SetUserPolicy(rbac.PolicyCSV(of.Data)); err != nil {
		return nil, err
	}
	project := &v1alpha1.AppProject{ObjectMeta: metav1.ObjectMeta{Name: of.Project}, Spec: of.Spec}
	policy := rbacpolicy.NewRBACPolicyEnforcer(enforcer, projects{project})
	enforcer.SetClaimsEnforcerFunc(policy.EnforceClaims)
	answers := []bool{}
	for _, one := range of.Asked {
		claims := jwt.MapClaims{"sub": one.Subject, "groups": one.Groups}
		answers = append(answers, enforcer.Enforce(claims, one.Resource, one.Action, one.Object))
	}
	return answers, nil
}
