{{/* The namespaces with a principal, as JSON; empty with allNamespaces. Argo CD's serves the GitOpsClusters of all others. */}}
{{- define "addon.watchNamespaces" -}}
{{- if .Values.controller.allNamespaces -}}
[]
{{- else -}}
{{- append .Values.controller.gitOpsNamespaces (include "addon.argoCDNamespace" .) | uniq | sortAlpha | toJson -}}
{{- end -}}
{{- end }}

{{/*
The GitOpsClusters that the controller would not serve, as a JSON list of namespace/name: they were enrolled with a principal
in their own namespace, which is not listed. Those that Argo CD's principal serves have an annotation that says so. Empty where
Helm cannot look (helm template).
*/}}
{{- define "addon.unservedGitOpsClusters" -}}
{{- $served := include "addon.watchNamespaces" . | fromJsonArray -}}
{{- $unserved := list -}}
{{- if and $served (.Capabilities.APIVersions.Has "apps.open-cluster-management.io/v1alpha1/GitOpsCluster") -}}
{{- range (lookup "apps.open-cluster-management.io/v1alpha1" "GitOpsCluster" "" "").items -}}
{{- $isGuest := hasKey (.metadata.annotations | default dict) "apps.open-cluster-management.io/principal-namespace" -}}
{{- $isEnrolled := has "apps.open-cluster-management.io/gitopscluster-cleanup" (.metadata.finalizers | default list) -}}
{{- if and $isEnrolled (not $isGuest) (not (has .metadata.namespace $served)) -}}
{{- $unserved = append $unserved (printf "%s/%s" .metadata.namespace .metadata.name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toJson $unserved -}}
{{- end }}

{{/*
"true" when the controller may restart programs of the hub's own Argo CD: hubArgoCD.configure says so, or what it has set there
is still to be given back. Its annotation shows that.
*/}}
{{- define "addon.mayRestartArgoCD" -}}
{{- $params := lookup "v1" "ConfigMap" (include "addon.argoCDNamespace" .) "argocd-cmd-params-cm" -}}
{{- $annotations := dig "metadata" "annotations" dict ($params | default dict) -}}
{{- if or .Values.hubArgoCD.configure (hasKey $annotations "apps.open-cluster-management.io/configured-params") -}}
true
{{- end -}}
{{- end }}

{{/* What the controller reads and writes in the namespace of a principal. */}}
{{- define "addon.gitOpsNamespaceRules" -}}
# Certificates, keys and Argo CD's cluster Secrets.
- apiGroups: ['']
  resources: [secrets, configmaps]
  verbs: [get, list, watch, create, patch, delete]
# Deleted before helm uninstall, so that its clusters are detached.
- apiGroups: [apps.open-cluster-management.io]
  resources: [gitopsclusters]
  verbs: [delete]
# Patched to add tolerations: a cluster that is temporarily unreachable stays enrolled.
- apiGroups: [cluster.open-cluster-management.io]
  resources: [placements]
  verbs: [patch]
# The principal's Service, and what exposes it.
- apiGroups: ['']
  resources: [services]
  verbs: [list, watch]
- apiGroups: [discovery.k8s.io]
  resources: [endpointslices]
  verbs: [list, watch]
- apiGroups: [networking.k8s.io]
  resources: [ingresses]
  verbs: [list, watch]
- apiGroups: [gateway.networking.k8s.io]
  resources: [tlsroutes]
  verbs: [list, watch]
- apiGroups: [route.openshift.io]
  resources: [routes]
  verbs: [list, watch]
# The hub's Argo CD and the principal: their images, and whether an application controller runs.
- apiGroups: [apps]
  resources: [deployments, statefulsets]
  verbs: [list, watch]
# Connections of agents. The Lease of a connection is deleted with the agent.
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [list, watch, delete]
{{- if or (include "addon.agentIsOriginal" .) (ne (include "addon.hasPrincipal" .) "true") }}
# argocd-agent's own image reads certificates only when it starts: the controller replaces the principal's pods.
- apiGroups: [apps]
  resources: [deployments]
  resourceNames: [argocd-agent-principal, openshift-gitops-agent-principal]
  verbs: [patch]
{{- end }}
{{- end }}
