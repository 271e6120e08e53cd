{{/* The name of the release's objects, as in argocd-agent's chart. */}}
{{- define "agent.name" -}}
{{- $name := .Values.fullnameOverride | default (printf "%s-agent-helm" .Release.Name) -}}
{{- if gt (len $name) 63 -}}
{{- printf "%s-%s" (trunc 54 $name) (sha256sum $name | trunc 8) -}}
{{- else -}}
{{- $name -}}
{{- end -}}
{{- end }}

{{/* The name with a suffix, cut the same way. Argument: (dict "root" $ "suffix" "metrics"). */}}
{{- define "agent.suffixed" -}}
{{- $name := printf "%s-%s" (.root.Values.fullnameOverride | default (printf "%s-agent-helm" .root.Release.Name)) .suffix -}}
{{- if gt (len $name) 63 -}}
{{- printf "%s-%s" (trunc 54 $name) (sha256sum $name | trunc 8) -}}
{{- else -}}
{{- $name -}}
{{- end -}}
{{- end }}

{{- define "agent.namespace" -}}
{{ .Values.namespaceOverride | default .Release.Namespace }}
{{- end }}

{{- define "agent.serviceAccount" -}}
{{- if .Values.serviceAccount.name -}}
{{- .Values.serviceAccount.name -}}
{{- else if .Values.serviceAccount.create -}}
{{- include "agent.suffixed" (dict "root" . "suffix" "sa") -}}
{{- else -}}
default
{{- end -}}
{{- end }}

{{/* What a repository is followed by unless the values say it: the digest that a release has of its image, else the version. */}}
{{- define "agent.released" -}}
{{- with index (.Chart.Annotations | default dict) "argocd-fleet/image-digest" }}@{{ . }}{{ else }}:{{ $.Chart.AppVersion }}{{ end -}}
{{- end }}

{{- define "agent.image" -}}
{{- if and (include "agent.isOriginal" .) (not .Values.image.tag) (not .Values.image.digest) -}}
{{- fail (printf "set image.tag to the version of argocd-agent (or image.digest) that image.repository %s is to run; this chart's version is another program's" .Values.image.repository) -}}
{{- end -}}
{{ .Values.image.repository }}{{ if .Values.image.digest }}@{{ .Values.image.digest }}{{ else if .Values.image.tag }}:{{ .Values.image.tag }}{{ else }}{{ include "agent.released" . }}{{ end }}
{{- end }}

{{/*
Whether the image is argocd-agent's, which needs more rights and answers other probes. Its name tells, in any registry.
*/}}
{{- define "agent.isOriginal" -}}
{{- if eq (base .Values.image.repository) "argocd-agent" }}true{{ end -}}
{{- end }}

{{/* Verbs for objects that the agent copies. argocd-agent's also replaces whole objects. */}}
{{- define "agent.verbs" -}}
[get, list, watch, create, patch{{ if include "agent.isOriginal" . }}, update{{ end }}, delete]
{{- end }}

{{- define "agent.selector" -}}
app.kubernetes.io/name: {{ .Values.nameOverride | default "argocd-agent-agent" }}
app.kubernetes.io/part-of: argocd-agent
app.kubernetes.io/component: agent
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "agent.labels" -}}
{{ include "agent.selector" . }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{/* Whether the agent handles Applications in all namespaces. */}}
{{- define "agent.everywhere" -}}
{{- if and .Values.destinationBasedMapping .Values.rbac.createClusterRole }}true{{ end -}}
{{- end }}

{{/* Keys of the ConfigMap: argocd-agent's. For an empty value the program's default applies. params takes precedence. */}}
{{- define "agent.params" -}}
{{- $v := .Values -}}
{{- $params := dict
  "agent.server.address" $v.server
  "agent.server.port" $v.serverPort
  "agent.namespace" (include "agent.namespace" .)
  "agent.mode" $v.agentMode
  "agent.creds" (ternary "" $v.auth $v.spire.enabled)
  "agent.log.level" $v.logLevel
  "agent.log.format" $v.logFormat
  "agent.tls.secret-name" $v.tlsSecretName
  "agent.tls.root-ca-secret-name" $v.tlsRootCASecretName
  "agent.tls.root-ca-path" $v.tlsRootCAPath
  "agent.tls.client.cert-path" $v.tlsClientCertPath
  "agent.tls.client.key-path" $v.tlsClientKeyPath
  "agent.tls.client.insecure" $v.tlsClientInSecure
  "agent.tls.insecure-plaintext" $v.tlsInsecurePlaintext
  "agent.tls.min-version" $v.tlsMinVersion
  "agent.tls.max-version" $v.tlsMaxVersion
  "agent.tls.ciphersuites" $v.tlsCipherSuites
  "agent.websocket.enabled" $v.enableWebSocket
  "agent.compression.enabled" $v.enableCompression
  "agent.resource-proxy.enabled" $v.enableResourceProxy
  "agent.metrics.port" $v.metricsPort
  "agent.healthz.port" $v.healthzPort
  "agent.pprof.port" $v.pprofPort
  "agent.keep-alive.interval" $v.keepAliveInterval
  "agent.heartbeat.interval" $v.heartbeatInterval
  "agent.cache.refresh-interval" $v.cacheRefreshInterval
  "agent.informer-sync-timeout" $v.informerSyncTimeout
  "agent.allowed-namespaces" $v.allowedNamespaces
  "agent.label-selector" $v.labelSelector
  "agent.destination-based-mapping" $v.destinationBasedMapping
  "agent.create-namespace" $v.createNamespace
  "agent.keep-gpg-keys" true
  "agent.redis.address" $v.redisAddress
  "agent.redis.username" $v.redisUsername
  "agent.redis.tls.enabled" $v.redisTLS.enabled
  "agent.redis.tls.insecure" $v.redisTLS.insecure
-}}
{{- if and $v.spire.enabled $v.spiffe.endpointSocket -}}
{{- fail "spire.enabled and spiffe.endpointSocket: set one of them" -}}
{{- end -}}
{{- if $v.spire.enabled -}}
{{- $_ := set $params "agent.spire.socket-path" $v.spire.socketPath -}}
{{- $_ := set $params "agent.spire.auth-method" $v.spire.authMethod -}}
{{- end -}}
{{- if eq (toString $v.redisTLS.enabled) "true" -}}
{{- $_ := set $params "agent.redis.tls.ca-path" $v.redisTLS.caPath -}}
{{- end -}}
{{- range $key, $value := $v.params -}}
{{- $_ := set $params $key $value -}}
{{- end -}}
{{- range $key, $value := $params }}
{{- with include "agent.text" $value }}
{{ $key }}: {{ . | quote }}
{{- end }}
{{- end }}
{{- end }}

{{/* Environment variables that come from the ConfigMap, with their keys. */}}
{{- define "agent.env" -}}
ARGOCD_AGENT_REMOTE_SERVER: server.address
ARGOCD_AGENT_REMOTE_PORT: server.port
ARGOCD_AGENT_LOG_LEVEL: log.level
ARGOCD_AGENT_LOG_FORMAT: log.format
ARGOCD_AGENT_NAMESPACE: namespace
ARGOCD_AGENT_MODE: mode
ARGOCD_AGENT_CREDS: creds
ARGOCD_AGENT_TLS_INSECURE: tls.client.insecure
ARGOCD_AGENT_INSECURE_PLAINTEXT: tls.insecure-plaintext
ARGOCD_AGENT_TLS_ROOT_CA_SECRET_NAME: tls.root-ca-secret-name
ARGOCD_AGENT_TLS_ROOT_CA_PATH: tls.root-ca-path
ARGOCD_AGENT_TLS_SECRET_NAME: tls.secret-name
ARGOCD_AGENT_TLS_CLIENT_CERT_PATH: tls.client.cert-path
ARGOCD_AGENT_TLS_CLIENT_KEY_PATH: tls.client.key-path
ARGOCD_AGENT_TLS_MIN_VERSION: tls.min-version
ARGOCD_AGENT_TLS_MAX_VERSION: tls.max-version
ARGOCD_AGENT_TLS_CIPHERSUITES: tls.ciphersuites
ARGOCD_AGENT_ENABLE_WEBSOCKET: websocket.enabled
ARGOCD_AGENT_ENABLE_COMPRESSION: compression.enabled
ARGOCD_AGENT_METRICS_PORT: metrics.port
ARGOCD_AGENT_HEALTH_CHECK_PORT: healthz.port
ARGOCD_AGENT_PPROF_PORT: pprof.port
ARGOCD_AGENT_KEEP_ALIVE_PING_INTERVAL: keep-alive.interval
ARGOCD_AGENT_HEARTBEAT_INTERVAL: heartbeat.interval
ARGOCD_AGENT_ENABLE_RESOURCE_PROXY: resource-proxy.enabled
ARGOCD_AGENT_LIVE_ACCESS: live-access
ARGOCD_AGENT_OPERATION_REVISIONS: operation-revisions
ARGOCD_AGENT_CACHE_REFRESH_INTERVAL: cache.refresh-interval
ARGOCD_AGENT_INFORMER_SYNC_TIMEOUT: informer-sync-timeout
ARGOCD_AGENT_DESTINATION_BASED_MAPPING: destination-based-mapping
ARGOCD_AGENT_CREATE_NAMESPACE: create-namespace
ARGOCD_AGENT_KEEP_GPG_KEYS: keep-gpg-keys
ARGOCD_AGENT_ALLOWED_NAMESPACES: allowed-namespaces
ARGOCD_AGENT_LABEL_SELECTOR: label-selector
ARGOCD_AGENT_SPIRE_AGENT_SOCKET: spire.socket-path
ARGOCD_AGENT_SPIRE_AUTH_METHOD: spire.auth-method
ARGOCD_AGENT_SPIRE_PRINCIPAL_ID: spire.principal-id
ARGOCD_AGENT_ON_APPLICATION_RECREATE: on-application-recreate
ARGOCD_AGENT_SOURCE_UID_MISMATCH_POLICY: source-uid-mismatch-policy
REDIS_ADDR: redis.address
REDIS_USERNAME: redis.username
ARGOCD_AGENT_REDIS_TLS_ENABLED: redis.tls.enabled
ARGOCD_AGENT_REDIS_TLS_CA_PATH: redis.tls.ca-path
ARGOCD_AGENT_REDIS_TLS_INSECURE: redis.tls.insecure
{{- end }}

{{/* The folder of the socket of the SPIFFE Workload API; empty when it is not used, or is reached by TCP. */}}
{{- define "agent.spiffeFolder" -}}
{{- if and .Values.spire.enabled (hasPrefix "unix:" .Values.spire.socketPath) -}}
{{ .Values.spire.hostSocketDir }}
{{- else if hasPrefix "unix:" .Values.spiffe.endpointSocket -}}
{{ .Values.spiffe.endpointSocket | trimPrefix "unix:" | clean | dir }}
{{- end -}}
{{- end }}

{{/* The volume with that folder. */}}
{{- define "agent.spiffeVolume" -}}
{{- $volume := .Values.spiffe.volume -}}
{{- if .Values.spire.enabled -}}
{{- $volume = dict "hostPath" (dict "path" .Values.spire.hostSocketDir "type" "Directory") -}}
{{- if eq .Values.spire.mountMethod "csi" -}}
{{- $volume = dict "csi" (dict "driver" "csi.spiffe.io" "readOnly" true) -}}
{{- end -}}
{{- end -}}
{{ toYaml $volume }}
{{- end }}

{{/* Whose pods may read metrics and health. Probes come from the node, which a NetworkPolicy never keeps out. */}}
{{- define "agent.metricsRules" -}}
{{- $metrics := .Values.networkPolicy.metrics }}
{{- $selector := $metrics.namespaceSelector }}
{{- if and $selector (kindIs "string" $selector) }}
{{- $selector = dict "matchLabels" (dict "kubernetes.io/metadata.name" $selector) }}
{{- else if and (not $selector) $metrics.namespaces }}
{{- $selector = dict "matchExpressions" (list (dict "key" "kubernetes.io/metadata.name" "operator" "In" "values" $metrics.namespaces)) }}
{{- end }}
{{- if $selector }}
- from:
    - namespaceSelector:
        {{- toYaml $selector | nindent 8 }}
  ports:
    - port: metrics
    - port: healthz
{{- end }}
{{- end }}

{{/* The chart's variables (.chart, a list as YAML) and the user's (.own). One of the user replaces the chart's of its name: none may be there twice. */}}
{{- define "agent.mergedEnv" -}}
{{- $own := dict }}
{{- range .own }}
{{- $_ := set $own .name . }}
{{- end }}
{{- $env := list }}
{{- range .chart | fromYamlArray }}
{{- if not (hasKey $own .name) }}
{{- $env = append $env . }}
{{- end }}
{{- end }}
{{- range .own }}
{{- with get $own .name }}
{{- $env = append $env . }}
{{- $_ := unset $own .name }}
{{- end }}
{{- end }}
{{- toYaml $env }}
{{- end }}
