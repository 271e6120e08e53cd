{{/* The namespace of the controller. */}}
{{- define "addon.controllerNamespace" -}}
{{ .Values.controller.namespace | default .Release.Namespace }}
{{- end }}

{{/* Argo CD's namespace on the hub: principal, cluster Secrets, ApplicationSets. */}}
{{- define "addon.argoCDNamespace" -}}
{{ .Values.global.argoCDNamespace | default "argocd" }}
{{- end }}

{{/* The namespace of the GitOpsCluster and its Placement. */}}
{{- define "addon.gitOpsNamespace" -}}
{{ .Values.gitOpsCluster.namespace | default (include "addon.argoCDNamespace" .) }}
{{- end }}

{{/* What a repository is followed by unless the values say it: the digest that a release has of its image, else the version. */}}
{{- define "addon.released" -}}
{{- with index (.Chart.Annotations | default dict) "argocd-fleet/image-digest" }}@{{ . }}{{ else }}:{{ $.Chart.AppVersion }}{{ end -}}
{{- end }}

{{- define "addon.image" -}}
{{- if regexMatch "(^|/)argocd-pull-integration$" .Values.image -}}
{{- fail (printf "image %s is argocd-pull-integration's own, which this chart cannot run: leave out image and tag, or name an image of this project" .Values.image) -}}
{{- end -}}
{{ .Values.image }}{{ if .Values.digest }}@{{ .Values.digest }}{{ else if .Values.tag }}:{{ .Values.tag }}{{ else }}{{ include "addon.released" . }}{{ end }}
{{- end }}

{{/* The original's argoCDAgent.image is a full reference and takes precedence. */}}
{{- define "addon.agentImage" -}}
{{ .Values.argoCDAgent.image | default (include "addon.image" .) }}
{{- end }}

{{/*
Whether that image is argocd-agent's own, which needs more rights than this project's. Its name tells, in any registry.
*/}}
{{- define "addon.agentIsOriginal" -}}
{{- if regexMatch "(^|/)argocd-agent([:@]|$)" (include "addon.agentImage" .) }}true{{ end -}}
{{- end }}

{{/*
"true" when the release has a principal: it is wanted, and the hub does not have one of somebody else. Without a cluster to look at,
auto would overwrite that one. A null stands for auto.
*/}}
{{- define "addon.hasPrincipal" -}}
{{- $enabled := kindIs "invalid" .Values.principal.enabled | ternary "auto" (toString .Values.principal.enabled) -}}
{{- if and (eq $enabled "auto") (not (lookup "v1" "Namespace" "" "kube-system")) -}}
{{- fail "principal.enabled is auto, and this rendering cannot look at the hub: set principal.enabled to \"true\" if the hub has no principal, or has that of this chart, or to \"false\" if it has another one, such as that of argocd-operator (with helm, --dry-run=server looks)" -}}
{{- end -}}
{{- if ne $enabled "false" -}}
{{- include "addon.mayRender" (dict "found" (lookup "apps/v1" "Deployment" (include "addon.argoCDNamespace" .) "argocd-agent-principal") "root" .) -}}
{{- end -}}
{{- end }}

{{/*
Whether the principal waits for Redis's password. Where this release installs Argo CD, the first pod of Redis makes the Secret, and a
principal that started before it would have no password. A Redis of somebody else may have none.
*/}}
{{- define "addon.redisPasswordComes" -}}
{{- if and .Values.hubArgoCD.enabled (eq .Values.principal.redis.secretName "argocd-redis") (eq .Values.principal.redis.passwordKey "auth") -}}
{{- include "hub.install" .Subcharts.hubArgoCD -}}
{{- end -}}
{{- end }}

{{/* Labels of every object. */}}
{{- define "addon.labels" -}}
app.kubernetes.io/part-of: argocd-agent-addon
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "addon.controllerSelector" -}}
app.kubernetes.io/name: argocd-agent-addon-controller
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "addon.controllerLabels" -}}
{{ include "addon.controllerSelector" . }}
app.kubernetes.io/component: controller
{{ omit (include "addon.labels" . | fromYaml) "app.kubernetes.io/instance" | toYaml }}
{{- end }}

{{/* The principal's labels are those of argocd-agent's own manifests: selectors of users depend on them. */}}
{{- define "addon.principalSelector" -}}
app.kubernetes.io/name: argocd-agent-principal
app.kubernetes.io/component: principal
{{- end }}

{{- define "addon.principalLabels" -}}
{{ include "addon.principalSelector" . }}
app.kubernetes.io/part-of: argocd-agent
{{ omit (include "addon.labels" . | fromYaml) "app.kubernetes.io/part-of" | toYaml }}
{{- end }}

{{- define "addon.podSecurity" -}}
{{- toYaml .Values.podSecurityContext }}
{{- end }}

{{- define "addon.containerSecurity" -}}
{{- toYaml .Values.securityContext }}
{{- end }}

{{/* Whether there is more than one principal. */}}
{{- define "addon.hasReplicas" -}}
{{- if gt (int .Values.principal.replicas) 1 -}}
{{- if include "addon.agentIsOriginal" . -}}
{{- fail "principal.replicas: argocd-agent's own image runs as one principal only, because it does not share the agents" -}}
{{- end -}}
true
{{- end -}}
{{- end }}

{{/*
Whether new principals may start while the old ones run. A principal that ran alone knows nothing of others: it has to end before they
start. Tools that render without access to the cluster cannot see it.
*/}}
{{- define "addon.principalRolls" -}}
{{- if include "addon.hasReplicas" . -}}
{{- $old := lookup "apps/v1" "Deployment" (include "addon.argoCDNamespace" .) "argocd-agent-principal" -}}
{{- if or (not $old) (contains "ARGOCD_PRINCIPAL_ENABLE_REPLICAS" (toJson $old.spec.template.spec.containers)) -}}
true
{{- end -}}
{{- end -}}
{{- end }}

{{/* Scheduling fields of a pod, from the values of one program. */}}
{{- define "addon.scheduling" -}}
{{- with .priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .topologySpreadConstraints }}
topologySpreadConstraints:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/*
"true" when an object that was looked up may be rendered: it is not there, or it belongs to this release already.
Argument: (dict "found" <lookup result> "root" $).
*/}}
{{- define "addon.mayRender" -}}
{{- if not .found -}}
true
{{- else -}}
{{- $annotations := .found.metadata.annotations | default dict -}}
{{- if and (eq (get $annotations "meta.helm.sh/release-name") .root.Release.Name) (eq (get $annotations "meta.helm.sh/release-namespace") .root.Release.Namespace) -}}
true
{{- end -}}
{{- end -}}
{{- end }}

{{/* Annotations of the hooks that upgrade the CRDs; the argument is the order. */}}
{{- define "addon.crdsHook" -}}
helm.sh/hook: pre-upgrade
helm.sh/hook-weight: {{ . | quote }}
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end }}

{{/* Whose pods may read metrics and health. Probes come from the node, which a NetworkPolicy never keeps out. */}}
{{- define "addon.metricsRules" -}}
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

{{/* The tolerations of a Placement's spec, and those that it lacks. The controller changes no list that Helm applies. */}}
{{- define "addon.placementTolerations" -}}
{{- $tolerations := .tolerations | default list }}
{{- range list "unreachable" "unavailable" }}
{{- $key := printf "cluster.open-cluster-management.io/%s" . }}
{{- $isCovered := false }}
{{- range $tolerations }}
{{- if and (eq (toString .operator) "Exists") (or (not .key) (eq (toString .key) $key)) }}
{{- $isCovered = true }}
{{- end }}
{{- end }}
{{- if not $isCovered }}
{{- $tolerations = append $tolerations (dict "key" $key "operator" "Exists") }}
{{- end }}
{{- end }}
{{- toYaml $tolerations }}
{{- end }}

{{/* The chart's variables (.chart, a list as YAML) and the user's (.own). One of the user replaces the chart's of its name: none may be there twice. */}}
{{- define "addon.mergedEnv" -}}
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

{{/* For Argo CD: objects that are applied once the controller runs, and removed before it, which finishes the removal of a GitOpsCluster. */}}
{{- define "addon.afterController" -}}
argocd.argoproj.io/sync-wave: "1"
{{- end }}
