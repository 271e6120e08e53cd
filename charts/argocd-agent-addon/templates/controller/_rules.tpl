{{/* What the controller does in the namespace of a GitOpsCluster. */}}
{{- define "addon.gitOpsNamespaceRules" -}}
# Certificates, keys and Argo CD's cluster Secrets.
- apiGroups: ['']
  resources: [secrets, configmaps]
  verbs: [get, list, watch, create, update, patch, delete]
# Where agents dial.
- apiGroups: ['']
  resources: [services]
  verbs: [get, list, watch]
# Which Argo CD the hub runs.
- apiGroups: [apps]
  resources: [deployments]
  verbs: [get, list, watch, patch]
- apiGroups: [argoproj.io]
  resources: [argocds]
  verbs: [get, list, watch]
# The principal's record of which agents are connected.
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [get, list, watch, delete]
{{- end }}
