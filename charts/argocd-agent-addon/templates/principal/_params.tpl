{{/* Keys of ConfigMap argocd-agent-params. principal.params takes precedence over the other values. */}}
{{- define "addon.principalParams" -}}
{{- $p := .Values.principal -}}
{{- $params := dict
  "principal.namespace" (include "addon.argoCDNamespace" .)
  "principal.listen.host" ""
  "principal.listen.port" "8443"
  "principal.metrics.port" "8000"
  "principal.healthz.port" "8003"
  "principal.log.level" $p.log.level
  "principal.log.format" $p.log.format
  "principal.auth" $p.auth
  "principal.allowed-namespaces" (join "," $p.allowedNamespaces)
  "principal.destination-based-mapping" (toString $p.destinationBasedMapping)
  "principal.label-selector" $p.labelSelector
  "principal.tls.secret-name" "argocd-agent-principal-tls"
  "principal.tls.server.root-ca-secret-name" "argocd-agent-ca"
  "principal.tls.min-version" $p.tls.minVersion
  "principal.jwt.secret-name" "argocd-agent-jwt"
  "principal.resource-proxy.enable" (toString $p.resourceProxy.enabled)
-}}
{{- if or $p.namespaceCreate.enable (eq .Values.gitOpsCluster.mode "autonomous") -}}
{{- $_ := set $params "principal.namespace-create.enable" "true" -}}
{{- with $p.namespaceCreate.pattern -}}{{- $_ := set $params "principal.namespace-create.pattern" . -}}{{- end -}}
{{- with $p.namespaceCreate.labels -}}{{- $_ := set $params "principal.namespace-create.labels" (join "," .) -}}{{- end -}}
{{- end -}}
{{- if $p.resourceProxy.enabled -}}
{{- $_ := set $params "principal.resource-proxy.secret-name" "argocd-agent-resource-proxy-tls" -}}
{{- $_ := set $params "principal.resource-proxy.ca.secret-name" "argocd-agent-ca" -}}
{{- end -}}
{{- if $p.redisProxy.enabled -}}
{{- $_ := set $params "principal.redis.server.address" $p.redis.server.address -}}
{{- $_ := set $params "principal.redis.compression.type" $p.redis.compressionType -}}
{{- end -}}
{{- if ne $p.keepAlive.minInterval "0" -}}
{{- $_ := set $params "principal.keep-alive.min-interval" $p.keepAlive.minInterval -}}
{{- end -}}
{{- $_ := set $params "principal.share-repositories" (toString $p.shareRepositories) -}}
{{- $_ := set $params "principal.application-events" (toString $p.applicationEvents) -}}
{{- $_ := set $params "principal.agent.disconnect-grace-period" $p.agentDisconnectGracePeriod -}}
{{- $_ := set $params "principal.agent.max-objects" (toString (int64 $p.agentLimits.objects)) -}}
{{- $_ := set $params "principal.agent.max-bytes" (toString (int64 $p.agentLimits.bytes)) -}}
{{- $_ := set $params "principal.agent.max-object-bytes" (toString (int64 $p.agentLimits.objectBytes)) -}}
{{- $_ := set $params "principal.agent.max-writes" (toString (int64 $p.agentLimits.writes)) -}}
{{- $_ := set $params "principal.agent.max-written-bytes" (toString (int64 $p.agentLimits.writtenBytes)) -}}
{{- if $p.websocket.enable -}}
{{- $_ := set $params "principal.websocket.enable" "true" -}}
{{- end -}}
{{- if $p.ha.enabled -}}
{{- $_ := set $params "principal.ha.enabled" "true" -}}
{{- $_ := set $params "principal.ha.preferred-role" $p.ha.preferredRole -}}
{{- $_ := set $params "principal.ha.peer-address" $p.ha.peerAddress -}}
{{- $_ := set $params "principal.ha.admin-port" (toString (int $p.ha.adminPort)) -}}
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
{{- range $key, $value := $p.params -}}
{{- $_ := set $params $key (include "addon.text" $value) -}}
{{- end -}}
{{- range $key, $value := $params }}
{{ $key }}: {{ $value | quote }}
{{- end }}
{{- end }}

{{/* Environment variables of the principal that come from the ConfigMap, with their keys: those of argocd-agent. */}}
{{- define "addon.principalEnv" -}}
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
REDIS_TLS_ENABLED: redis.tls.enabled
REDIS_PROXY_SERVER_TLS_CERT_PATH: redis.proxy.server.tls.cert-path
REDIS_PROXY_SERVER_TLS_KEY_PATH: redis.proxy.server.tls.key-path
REDIS_PROXY_SERVER_TLS_SECRET_NAME: redis.proxy.server.tls.secret-name
REDIS_CA_PATH: redis.ca-path
REDIS_CA_SECRET_NAME: redis.ca-secret-name
REDIS_TLS_INSECURE: redis.tls.insecure
DESTINATION_BASED_MAPPING: destination-based-mapping
LABEL_SELECTOR: label-selector
{{- end }}
