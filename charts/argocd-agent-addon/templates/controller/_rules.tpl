{{/* What the controller writes in the namespace of a GitOpsCluster. */}}
{{- define "addon.gitOpsNamespaceRules" -}}
# Certificates, keys and Argo CD's cluster Secrets.
- apiGroups: ['']
  resources: [secrets, configmaps]
  verbs: [create, patch, delete]
# The Lease with an agent's connection is deleted with the agent.
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [delete]
{{- end }}
