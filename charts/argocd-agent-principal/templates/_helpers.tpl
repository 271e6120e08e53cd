{{/* The name of the release's objects, as in argocd-agent's chart, before it is cut. */}}
{{- define "principal.base" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride -}}
{{- else if contains "argocd-agent-principal" .Release.Name -}}
{{- .Release.Name -}}
{{- else -}}
{{- printf "%s-argocd-agent-principal" .Release.Name -}}
{{- end -}}
{{- end }}

{{- define "principal.cut" -}}
{{- if gt (len .) 63 -}}
{{- printf "%s-%s" (trunc 54 .) (sha256sum . | trunc 8) -}}
{{- else -}}
{{- . -}}
{{- end -}}
{{- end }}

{{- define "principal.name" -}}
{{- include "principal.cut" (include "principal.base" .) -}}
{{- end }}

{{/* The name with a suffix, cut the same way. Argument: (dict "root" $ "suffix" "metrics"). */}}
{{- define "principal.suffixed" -}}
{{- include "principal.cut" (printf "%s-%s" (include "principal.base" .root) .suffix) -}}
{{- end }}

{{- define "principal.namespace" -}}
{{ .Values.namespaceOverride | default .Release.Namespace }}
{{- end }}

{{/* Argo CD's namespace. */}}
{{- define "principal.argoCDNamespace" -}}
{{ .Values.principal.namespace | default (include "principal.namespace" .) }}
{{- end }}

{{- define "principal.serviceAccount" -}}
{{- if .Values.serviceAccount.name -}}
{{- .Values.serviceAccount.name -}}
{{- else if .Values.serviceAccount.create -}}
{{- include "principal.name" . -}}
{{- else -}}
default
{{- end -}}
{{- end }}

{{/* What a repository is followed by unless the values say it: the digest that a release has of its image, else the version. */}}
{{- define "principal.released" -}}
{{- with index (.Chart.Annotations | default dict) "argocd-fleet/image-digest" }}@{{ . }}{{ else }}:{{ $.Chart.AppVersion }}{{ end -}}
{{- end }}

{{- define "principal.image" -}}
{{- if and (include "principal.isOriginal" .) (not .Values.image.tag) (not .Values.image.digest) -}}
{{- fail (printf "set image.tag to the version of argocd-agent (or image.digest) that image.repository %s is to run; this chart's version is another program's" .Values.image.repository) -}}
{{- end -}}
{{ .Values.image.repository }}{{ if .Values.image.digest }}@{{ .Values.image.digest }}{{ else if .Values.image.tag }}:{{ .Values.image.tag }}{{ else }}{{ include "principal.released" . }}{{ end }}
{{- end }}

{{/* The image of the Job that makes certificates, which argocd-agent's own cannot. */}}
{{- define "principal.pkiImage" -}}
{{- if .Values.pki.image -}}
{{- .Values.pki.image -}}
{{- else if include "principal.isOriginal" . -}}
quay.io/open-cluster-management/argocd-fleet{{ include "principal.released" . }}
{{- else -}}
{{- include "principal.image" . -}}
{{- end -}}
{{- end }}

{{/* Whether the image is argocd-agent's, which needs more rights. Its name tells, in any registry. */}}
{{- define "principal.isOriginal" -}}
{{- if eq (base .Values.image.repository) "argocd-agent" }}true{{ end -}}
{{- end }}

{{/* Whether there is more than one principal. */}}
{{- define "principal.hasReplicas" -}}
{{- if gt (int .Values.replicaCount) 1 -}}
{{- if include "principal.isOriginal" . -}}
{{- fail "replicaCount: argocd-agent's own image runs as one principal only, because it does not share the agents" -}}
{{- end -}}
true
{{- end -}}
{{- end }}

{{/*
The update strategy. With more than one principal, new ones start while the old ones run, unless the old one ran alone: that knows nothing
of others, and has to end before they start. Tools that render without access to the cluster cannot see it.
*/}}
{{- define "principal.strategy" -}}
{{- $strategy := .Values.updateStrategy -}}
{{- if $strategy.rollingUpdate -}}
{{- $strategy = merge (dict "type" "RollingUpdate") $strategy -}}
{{- else if and (include "principal.hasReplicas" .) (eq ($strategy.type | default "Recreate") "Recreate") -}}
{{- $old := lookup "apps/v1" "Deployment" (include "principal.namespace" .) (include "principal.name" .) -}}
{{- if or (not $old) (contains "ARGOCD_PRINCIPAL_ENABLE_REPLICAS" (toJson $old.spec.template.spec.containers)) -}}
{{- $strategy = dict "type" "RollingUpdate" "rollingUpdate" (dict "maxSurge" 1 "maxUnavailable" 0) -}}
{{- end -}}
{{- end -}}
{{- toYaml $strategy -}}
{{- end }}

{{/* Whether the principal gives certificates to agents with a token. */}}
{{- define "principal.enrolls" -}}
{{- $p := .Values.principal -}}
{{- if and .Values.enrolment.enabled (not .Values.spiffe.endpointSocket) (not $p.spire.enabled) (hasPrefix "mtls:" $p.auth) (not $p.tls.server.rootCaPath) (not (include "principal.isOriginal" .)) -}}
true
{{- end -}}
{{- end }}

{{- define "principal.selector" -}}
app.kubernetes.io/name: {{ .Values.nameOverride | default "argocd-agent-principal" }}
app.kubernetes.io/part-of: argocd-agent
app.kubernetes.io/component: principal
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "principal.labels" -}}
{{ include "principal.selector" . }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{/* The labels of objects that no selector of the principal may find. */}}
{{- define "principal.pkiLabels" -}}
{{ omit (include "principal.labels" . | fromYaml) "app.kubernetes.io/name" "app.kubernetes.io/component" | toYaml }}
app.kubernetes.io/name: argocd-agent-pki
app.kubernetes.io/component: pki
{{- end }}

{{/* Keys of the ConfigMap: argocd-agent's. For an empty value the program's default applies. configMapData takes precedence. */}}
{{- define "principal.params" -}}
{{- $p := .Values.principal -}}
{{- $params := dict
  "principal.namespace" (include "principal.argoCDNamespace" .)
  "principal.listen.host" (ternary "" $p.listen.host $p.spire.enabled)
  "principal.listen.port" $p.listen.port
  "principal.log.level" $p.log.level
  "principal.log.format" $p.log.format
  "principal.metrics.port" $p.metrics.port
  "principal.healthz.port" $p.healthz.port
  "principal.pprof.port" $p.pprof.port
  "principal.auth" (include "principal.auth" .)
  "principal.allowed-namespaces" $p.allowedNamespaces
  "principal.destination-based-mapping" $p.destinationBasedMapping
  "principal.label-selector" $p.labelSelector
  "principal.namespace-create.enable" $p.namespaceCreate.enable
  "principal.namespace-create.pattern" $p.namespaceCreate.pattern
  "principal.namespace-create.labels" $p.namespaceCreate.labels
  "principal.tls.secret-name" $p.tls.secretName
  "principal.tls.server.cert-path" $p.tls.server.certPath
  "principal.tls.server.key-path" $p.tls.server.keyPath
  "principal.tls.server.allow-generate" $p.tls.server.allowGenerate
  "principal.tls.server.root-ca-secret-name" $p.tls.server.rootCaSecretName
  "principal.tls.server.root-ca-path" $p.tls.server.rootCaPath
  "principal.tls.client-cert.require" $p.tls.clientCert.require
  "principal.tls.client-cert.match-subject" $p.tls.clientCert.matchSubject
  "principal.tls.insecure-plaintext" $p.tls.insecurePlaintext
  "principal.tls.min-version" $p.tls.minVersion
  "principal.tls.max-version" $p.tls.maxVersion
  "principal.tls.ciphersuites" $p.tls.ciphersuites
  "principal.jwt.secret-name" $p.jwt.secretName
  "principal.jwt.key-path" $p.jwt.keyPath
  "principal.jwt.allow-generate" $p.jwt.allowGenerate
  "principal.resource-proxy.enable" $p.resourceProxy.enabled
  "principal.resource-proxy.secret-name" $p.resourceProxy.secretName
  "principal.resource-proxy.tls.cert-path" $p.resourceProxy.tls.certPath
  "principal.resource-proxy.tls.key-path" $p.resourceProxy.tls.keyPath
  "principal.resource-proxy.ca.secret-name" $p.resourceProxy.ca.secretName
  "principal.resource-proxy.ca.path" $p.resourceProxy.ca.path
  "principal.redis.server.address" $p.redis.server.address
  "principal.redis.compression.type" $p.redis.compressionType
  "principal.redis.tls.enabled" $p.redis.tls.enabled
  "principal.redis.tls.insecure" $p.redis.tls.insecure
  "principal.websocket.enable" $p.websocket.enable
  "principal.keep-alive.min-interval" $p.keepAlive.minInterval
  "principal.event-processors" $p.eventProcessors
  "principal.share-repositories" $p.shareRepositories
  "principal.application-events" $p.applicationEvents
  "principal.enrolment.enable" (eq (include "principal.enrolls" .) "true")
-}}
{{- if and $p.spire.enabled .Values.spiffe.endpointSocket -}}
{{- fail "principal.spire.enabled and spiffe.endpointSocket: set one of them" -}}
{{- end -}}
{{- if $p.selfRegistration.enabled -}}
{{- $_ := set $params "principal.self-registration.enabled" true -}}
{{- $_ := set $params "principal.self-registration.client-cert-secret" $p.selfRegistration.clientCertSecretName -}}
{{- $_ := set $params "principal.resource-proxy.address" $p.resourceProxyAddress -}}
{{- end -}}
{{- if $p.spire.enabled -}}
{{- $_ := set $params "principal.spire.socket-path" $p.spire.socketPath -}}
{{- $_ := set $params "principal.spire.auth-method" $p.spire.authMethod -}}
{{- end -}}
{{- if eq (toString $p.redis.tls.enabled) "true" -}}
{{- $_ := set $params "principal.redis.ca-path" $p.redis.tls.caPath -}}
{{- $_ := set $params "principal.redis.proxy.server.tls.cert-path" $p.redis.proxy.server.tls.certPath -}}
{{- $_ := set $params "principal.redis.proxy.server.tls.key-path" $p.redis.proxy.server.tls.keyPath -}}
{{- end -}}
{{- if $p.ha.enabled -}}
{{- $_ := set $params "principal.ha.enabled" true -}}
{{- $_ := set $params "principal.ha.preferred-role" $p.ha.preferredRole -}}
{{- $_ := set $params "principal.ha.peer-address" $p.ha.peerAddress -}}
{{- $_ := set $params "principal.ha.admin-port" (int $p.ha.adminPort) -}}
{{- $_ := set $params "principal.ha.admin-auth" $p.ha.adminAuth -}}
{{- if $p.ha.adminTlsSecret -}}
{{- $_ := set $params "principal.ha.admin-tls-cert" "/app/config/ha-admin/tls.crt" -}}
{{- $_ := set $params "principal.ha.admin-tls-key" "/app/config/ha-admin/tls.key" -}}
{{- $_ := set $params "principal.ha.admin-ca" "/app/config/ha-admin/ca.crt" -}}
{{- end -}}
{{- $_ := set $params "principal.ha.allowed-replication-clients" $p.ha.allowedReplicationClients -}}
{{- if $p.ha.lease.kubeconfigSecret -}}
{{- $_ := set $params "principal.ha.lease.kubeconfig" "/app/config/active-hub-lease/kubeconfig" -}}
{{- $_ := set $params "principal.ha.lease.namespace" $p.ha.lease.namespace -}}
{{- $_ := set $params "principal.ha.lease.name" $p.ha.lease.name -}}
{{- end -}}
{{- end -}}
{{- with $p.events -}}
{{- if .sinkUrl -}}
{{- $_ := set $params "principal.events.sink-url" .sinkUrl -}}
{{- $_ := set $params "principal.events.mode" .mode -}}
{{- end -}}
{{- if .tokenSecret -}}
{{- $_ := set $params "principal.events.sink-token-path" "/app/config/events/token" -}}
{{- end -}}
{{- end -}}
{{- range $key, $value := .Values.configMapData -}}
{{- $_ := set $params $key $value -}}
{{- end -}}
{{- range $key, $value := $params }}
{{- with include "principal.text" $value }}
{{ $key }}: {{ . | quote }}
{{- end }}
{{- end }}
{{- end }}

{{/* Environment variables of the principal that come from the ConfigMap, with their keys: those of argocd-agent. */}}
{{- define "principal.env" -}}
LISTEN_HOST: listen.host
LISTEN_PORT: listen.port
LOG_LEVEL: log.level
LOG_FORMAT: log.format
METRICS_PORT: metrics.port
NAMESPACE: namespace
ALLOWED_NAMESPACES: allowed-namespaces
NAMESPACE_CREATE_ENABLE: namespace-create.enable
NAMESPACE_CREATE_PATTERN: namespace-create.pattern
NAMESPACE_CREATE_LABELS: namespace-create.labels
TLS_SECRET_NAME: tls.secret-name
TLS_SERVER_CERT_PATH: tls.server.cert-path
TLS_SERVER_KEY_PATH: tls.server.key-path
TLS_SERVER_ALLOW_GENERATE: tls.server.allow-generate
INSECURE_PLAINTEXT: tls.insecure-plaintext
TLS_SERVER_ROOT_CA_SECRET_NAME: tls.server.root-ca-secret-name
TLS_SERVER_ROOT_CA_PATH: tls.server.root-ca-path
TLS_CLIENT_CERT_REQUIRE: tls.client-cert.require
TLS_CLIENT_CERT_MATCH_SUBJECT: tls.client-cert.match-subject
TLS_MIN_VERSION: tls.min-version
TLS_MAX_VERSION: tls.max-version
TLS_CIPHERSUITES: tls.ciphersuites
RESOURCE_PROXY_SECRET_NAME: resource-proxy.secret-name
RESOURCE_PROXY_TLS_CERT_PATH: resource-proxy.tls.cert-path
RESOURCE_PROXY_TLS_KEY_PATH: resource-proxy.tls.key-path
RESOURCE_PROXY_CA_SECRET_NAME: resource-proxy.ca.secret-name
RESOURCE_PROXY_TLS_CA_PATH: resource-proxy.ca.path
RESOURCE_PROXY_MAX_ANSWER_SIZE: resource-proxy.max-answer-size
JWT_SECRET_NAME: jwt.secret-name
JWT_KEY_PATH: jwt.key-path
JWT_ALLOW_GENERATE: jwt.allow-generate
AUTH: auth
ENABLE_WEBSOCKET: websocket.enable
ENABLE_RESOURCE_PROXY: resource-proxy.enable
KEEP_ALIVE_MIN_INTERVAL: keep-alive.min-interval
REDIS_SERVER_ADDRESS: redis.server.address
REDIS_COMPRESSION_TYPE: redis.compression.type
PPROF_PORT: pprof.port
HEALTH_CHECK_PORT: healthz.port
EVENT_PROCESSORS: event-processors
SHARE_REPOSITORIES: share-repositories
APPLICATION_EVENTS: application-events
SHARE_DEFAULT_PROJECT: share-default-project
AGENT_DISCONNECT_GRACE_PERIOD: agent.disconnect-grace-period
AGENT_MAX_OBJECTS: agent.max-objects
AGENT_MAX_BYTES: agent.max-bytes
AGENT_MAX_OBJECT_BYTES: agent.max-object-bytes
AGENT_MAX_WRITES: agent.max-writes
AGENT_MAX_WRITTEN_BYTES: agent.max-written-bytes
AUDIT_LOG_PATH: audit.log-path
AUDIT_LOG_MAXSIZE: audit.log-maxsize
AUDIT_WEBHOOK_URL: audit.webhook-url
AUDIT_WEBHOOK_TOKEN_PATH: audit.webhook-token-path
EVENTS_SINK_URL: events.sink-url
EVENTS_SINK_TOKEN_PATH: events.sink-token-path
EVENTS_MODE: events.mode
EVENTS_OUT_OF_STEP_AFTER: events.out-of-step-after
APPLICATION_METRICS: application-metrics.enable
APPLICATION_METRICS_LABELS: application-metrics.labels
REDIS_TLS_ENABLED: redis.tls.enabled
REDIS_PROXY_SERVER_TLS_CERT_PATH: redis.proxy.server.tls.cert-path
REDIS_PROXY_SERVER_TLS_KEY_PATH: redis.proxy.server.tls.key-path
REDIS_PROXY_SERVER_TLS_SECRET_NAME: redis.proxy.server.tls.secret-name
REDIS_CA_PATH: redis.ca-path
REDIS_CA_SECRET_NAME: redis.ca-secret-name
REDIS_TLS_INSECURE: redis.tls.insecure
DESTINATION_BASED_MAPPING: destination-based-mapping
LABEL_SELECTOR: label-selector
ENABLE_ENROLMENT: enrolment.enable
ENABLE_SELF_CLUSTER_REGISTRATION: self-registration.enabled
SELF_REGISTRATION_CLIENT_CERT_SECRET: self-registration.client-cert-secret
RESOURCE_PROXY_ADDRESS: resource-proxy.address
SPIRE_AGENT_SOCKET: spire.socket-path
SPIRE_AUTH_METHOD: spire.auth-method
HA_ENABLED: ha.enabled
HA_PREFERRED_ROLE: ha.preferred-role
HA_PEER_ADDRESS: ha.peer-address
HA_ADMIN_PORT: ha.admin-port
HA_ADMIN_AUTH: ha.admin-auth
HA_ADMIN_TLS_CERT: ha.admin-tls-cert
HA_ADMIN_TLS_KEY: ha.admin-tls-key
HA_ADMIN_CA: ha.admin-ca
HA_ALLOWED_REPLICATION_CLIENTS: ha.allowed-replication-clients
HA_LEASE_KUBECONFIG: ha.lease.kubeconfig
HA_LEASE_NAMESPACE: ha.lease.namespace
HA_LEASE_NAME: ha.lease.name
{{- end }}

{{/* The folder of the socket of the SPIFFE Workload API; empty when it is not used, or is reached by TCP. */}}
{{- define "principal.spiffeFolder" -}}
{{- $spire := .Values.principal.spire -}}
{{- if and $spire.enabled (hasPrefix "unix:" $spire.socketPath) -}}
{{ $spire.hostSocketDir }}
{{- else if hasPrefix "unix:" .Values.spiffe.endpointSocket -}}
{{ .Values.spiffe.endpointSocket | trimPrefix "unix:" | clean | dir }}
{{- end -}}
{{- end }}

{{/* The volume with that folder. */}}
{{- define "principal.spiffeVolume" -}}
{{- $spire := .Values.principal.spire -}}
{{- $volume := .Values.spiffe.volume -}}
{{- if $spire.enabled -}}
{{- $volume = dict "hostPath" (dict "path" $spire.hostSocketDir "type" "Directory") -}}
{{- if eq $spire.mountMethod "csi" -}}
{{- $volume = dict "csi" (dict "driver" "csi.spiffe.io" "readOnly" true) -}}
{{- end -}}
{{- end -}}
{{ toYaml $volume }}
{{- end }}

{{/* How agents authenticate; empty: as SPIRE's method says. A default for certificates of another authority does not count there. */}}
{{- define "principal.auth" -}}
{{- $p := .Values.principal -}}
{{- if or (not $p.spire.enabled) (hasPrefix "spiffe-jwt:" $p.auth) (hasPrefix "mtls:uri:" $p.auth) -}}
{{ $p.auth }}
{{- end -}}
{{- end }}

{{/* Whose pods may read metrics and health. Probes come from the node, which a NetworkPolicy never keeps out. */}}
{{- define "principal.metricsRules" -}}
{{- $metrics := .Values.networkPolicy.ingress.metrics }}
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
{{- define "principal.mergedEnv" -}}
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
