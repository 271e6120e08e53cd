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
runAsNonRoot: true
runAsUser: 999
runAsGroup: 999
fsGroup: 999
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "pull.containerSecurity" -}}
allowPrivilegeEscalation: false
privileged: false
readOnlyRootFilesystem: true
runAsNonRoot: true
capabilities:
  drop:
    - ALL
seccompProfile:
  type: RuntimeDefault
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
