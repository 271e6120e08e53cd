{{/*
Whether the principal waits for Redis's password. Where this release installs Argo CD, the first pod of Redis makes the Secret, and a
principal that started before it would have no password. A Redis of somebody else may have none.
*/}}
{{- define "addon.redisPasswordComes" -}}
{{- if and .Values.hubArgoCD.enabled (eq .Values.principal.redis.secretName "argocd-redis") (eq .Values.principal.redis.passwordKey "auth") -}}
{{- include "hub.install" .Subcharts.hubArgoCD -}}
{{- end -}}
{{- end }}
