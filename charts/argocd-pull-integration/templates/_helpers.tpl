{{- define "pull.namespace" -}}
{{ .Values.argoCDNamespace }}
{{- end }}

{{/* What a repository is followed by unless the values say it: the digest that a release has of its image, else the version. */}}
{{- define "pull.released" -}}
{{- with index (.Chart.Annotations | default dict) "argocd-fleet/image-digest" }}@{{ . }}{{ else }}:{{ $.Chart.AppVersion }}{{ end -}}
{{- end }}

{{- define "pull.image" -}}
{{- if regexMatch "(^|/)argocd-pull-integration$" .Values.image -}}
{{- fail (printf "image %s is argocd-pull-integration's own, which this chart cannot run: leave out image and tag, or name an image of this project" .Values.image) -}}
{{- end -}}
{{ .Values.image }}{{ if .Values.digest }}@{{ .Values.digest }}{{ else if .Values.tag }}:{{ .Values.tag }}{{ else }}{{ include "pull.released" . }}{{ end }}
{{- end }}

{{/* argocd-pull-integration's: the selector of a Deployment cannot be changed. */}}
{{- define "pull.selector" -}}
app: argocd-pull-integration
{{- end }}

{{/* Labels of every object. */}}
{{- define "pull.labels" -}}
{{ include "pull.selector" . }}
app.kubernetes.io/name: argocd-pull-integration
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: controller
app.kubernetes.io/part-of: argocd-pull-integration
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "pull.podSecurity" -}}
{{- toYaml .Values.podSecurityContext }}
{{- end }}

{{- define "pull.containerSecurity" -}}
{{- toYaml .Values.securityContext }}
{{- end }}

{{- define "pull.scheduling" -}}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.topologySpreadConstraints }}
topologySpreadConstraints:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/*
"true" when an object that was looked up may be rendered: it is not there, or it belongs to this release already.
Argument: (dict "found" <lookup result> "root" $).
*/}}
{{- define "pull.mayRender" -}}
{{- if not .found -}}
true
{{- else -}}
{{- $annotations := .found.metadata.annotations | default dict -}}
{{- if and (eq (get $annotations "meta.helm.sh/release-name") .root.Release.Name) (eq (get $annotations "meta.helm.sh/release-namespace") .root.Release.Namespace) -}}
true
{{- end -}}
{{- end -}}
{{- end }}

{{/* A value of a Secret in the installed AddOnTemplate, in base64: (dict "root" $ "name" <Secret> "key" <key>). */}}
{{- define "pull.installedSecret" -}}
{{- if .root.Capabilities.APIVersions.Has "addon.open-cluster-management.io/v1alpha1/AddOnTemplate" -}}
{{- $found := lookup "addon.open-cluster-management.io/v1alpha1" "AddOnTemplate" "" "argocd" -}}
{{- if and $found (include "pull.mayRender" (dict "found" $found "root" .root)) -}}
{{- range $found.spec.agentSpec.workload.manifests -}}
{{- if and (eq .kind "Secret") (eq .metadata.name $.name) -}}
{{- get (.data | default dict) $.key -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* Whose pods may read metrics and health. Probes come from the node, which a NetworkPolicy never keeps out. */}}
{{- define "pull.metricsRules" -}}
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
{{- define "pull.mergedEnv" -}}
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

{{/* Fields (.own), and those of the user over them (.theirs): a null takes a field away. */}}
{{- define "pull.overlaid" -}}
{{- $merged := mergeOverwrite (dict) (.own | default dict) (.theirs | default dict) }}
{{- range $field, $value := .theirs | default dict }}
{{- if kindIs "invalid" $value }}
{{- $merged = omit $merged $field }}
{{- end }}
{{- end }}
{{- toYaml $merged }}
{{- end }}

{{/* An object for the clusters, with what the values set of pods: (dict "object" <object> "argocd" .Values.argocd). */}}
{{- define "pull.delivered" -}}
{{- $a := .argocd }}
{{- with dig "spec" "template" "spec" dict .object }}
{{- $own := .securityContext | default dict }}
{{- $theirs := $a.podSecurityContext | default dict }}
{{- $security := include "pull.overlaid" (dict "own" $own "theirs" $theirs) | fromYaml }}
{{- if and (hasKey $own "runAsUser") (not (hasKey $theirs "runAsUser")) }}
{{- $security = omit $security "runAsUser" }}
{{- with $a.redisRunAsUser }}
{{- $_ := set $security "runAsUser" (int64 .) }}
{{- end }}
{{- end }}
{{- if $security }}
{{- $_ := set . "securityContext" $security }}
{{- end }}
{{- range concat .containers (.initContainers | default list) }}
{{- $_ := set . "securityContext" (include "pull.overlaid" (dict "own" .securityContext "theirs" $a.securityContext) | fromYaml) }}
{{- end }}
{{- with $a.imagePullSecrets }}
{{- $_ := set $.object.spec.template.spec "imagePullSecrets" . }}
{{- end }}
{{- end }}
{{- toYaml .object }}
{{- end }}
