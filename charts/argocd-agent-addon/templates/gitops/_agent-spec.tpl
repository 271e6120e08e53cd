{{/* spec.argoCDAgentAddon. Empty values are left out. Without an address, the controller finds it. */}}
{{- define "addon.agentSpec" -}}
{{- $g := .Values.gitOpsCluster -}}
{{- $spec := dict "mode" $g.mode -}}
{{- with $g.principalServerAddress -}}{{- $_ := set $spec "principalServerAddress" . -}}{{- end -}}
{{- with $g.principalServerPort -}}{{- $_ := set $spec "principalServerPort" (toString .) -}}{{- end -}}
{{- range $key, $value := $g.argoCDAgentAddon -}}
{{- if $value -}}{{- $_ := set $spec $key $value -}}{{- end -}}
{{- end -}}
{{- if not .Values.principal.destinationBasedMapping -}}{{- $_ := set $spec "destinationBasedMapping" false -}}{{- end -}}
{{- if and $g.customArgoCDCR.enabled (not $spec.argoCDCRManifestWork) -}}
{{- $_ := set $spec "argoCDCRManifestWork" (dict "manifests" (list (include "addon.argoCDResource" . | fromYaml))) -}}
{{- end -}}
{{- toYaml $spec -}}
{{- end }}

{{/* The ArgoCD resource for argocd-operator on the managed clusters; the controller adds the principal's address. */}}
{{- define "addon.argoCDResource" -}}
apiVersion: argoproj.io/v1beta1
kind: ArgoCD
metadata:
  name: argocd
  namespace: {{ .Values.gitOpsCluster.argoCDAgentAddon.agentNamespace | default "argocd" }}
spec:
  server:
    enabled: false
  sourceNamespaces: ['*']
  argoCDAgent:
    agent:
      enabled: true
      image: {{ include "addon.agentImage" . }}
      allowedNamespaces: ['*']
      creds: mtls:open-cluster-management:cluster:([^:]+):addon:argocd-agent
      logLevel: info
      logFormat: text
      client:
        mode: {{ .Values.gitOpsCluster.mode }}
        enableWebSocket: false
        enableCompression: false
        keepAliveInterval: 15s
      tls:
        secretName: argocd-agent-open-cluster-management.io-argocd-agent-addon-client-cert
        rootCASecretName: argocd-agent-ca
        insecure: false
      redis:
        serverAddress: argocd-redis:6379
      {{- if and .Values.principal.destinationBasedMapping (ne .Values.gitOpsCluster.mode "autonomous") }}
      destinationBasedMapping:
        enabled: true
        createNamespace: true
      {{- end }}
{{- end }}
