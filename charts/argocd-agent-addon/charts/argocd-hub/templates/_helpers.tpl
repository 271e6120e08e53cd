{{/* As part of argocd-agent-addon: Argo CD's namespace. Alone: the namespace of the release. */}}
{{- define "hub.namespace" -}}
{{ (.Values.global | default dict).argoCDNamespace | default .Release.Namespace }}
{{- end }}

{{/* "true" if the object does not exist or belongs to this release. Argument: (dict "found" <lookup> "root" $). */}}
{{- define "hub.mayRender" -}}
{{- if not .found -}}
true
{{- else -}}
{{- include "hub.owns" . -}}
{{- end -}}
{{- end }}

{{/* "true" when the object that was looked up belongs to this release. */}}
{{- define "hub.owns" -}}
{{- if .found -}}
{{- $annotations := .found.metadata.annotations | default dict -}}
{{- if and (eq (get $annotations "meta.helm.sh/release-name") .root.Release.Name) (eq (get $annotations "meta.helm.sh/release-namespace") .root.Release.Namespace) -}}
true
{{- end -}}
{{- end -}}
{{- end }}

{{/* "true" when a Deployment of Argo CD is in the namespace. */}}
{{- define "hub.isThere" -}}
{{- range (lookup "apps/v1" "Deployment" (include "hub.namespace" .) "").items | default list -}}
{{- if eq (get (.metadata.labels | default dict) "app.kubernetes.io/part-of") "argocd" -}}
true
{{- end -}}
{{- end -}}
{{- end }}

{{/* "true" when this rendering can look at the cluster. Helm can; helm template and Argo CD cannot. */}}
{{- define "hub.seesCluster" -}}
{{- if lookup "v1" "Namespace" "" "kube-system" -}}true{{- end -}}
{{- end }}

{{/*
"true" when this release installs Argo CD. auto: it has installed it before, or there is no trace of another one:
no Deployment of Argo CD in the namespace and no Application CRD of somebody else. Without a cluster to look at, both answers could
do harm. Nothing is said: auto within argocd-agent-addon, whose default a null removes; true for this chart alone.
*/}}
{{- define "hub.install" -}}
{{- $install := .Values.install | toString -}}
{{- if has $install (list "" "<nil>") -}}
{{- $install = ternary "true" "auto" .Chart.IsRoot -}}
{{- end -}}
{{- if eq $install "true" -}}
true
{{- else if eq $install "auto" -}}
{{- if not (include "hub.seesCluster" .) -}}
{{- fail "hubArgoCD.install is auto, and this rendering cannot look at the hub: set hubArgoCD.install to \"true\" if the hub has no Argo CD, or has that of this chart, or to \"false\" if it has another one (with helm, --dry-run=server looks)" -}}
{{- end -}}
{{- $namespace := include "hub.namespace" . -}}
{{- if include "hub.owns" (dict "found" (lookup "apps/v1" "Deployment" $namespace "argocd-server") "root" .) -}}
true
{{- else -}}
{{- $crd := lookup "apiextensions.k8s.io/v1" "CustomResourceDefinition" "" "applications.argoproj.io" -}}
{{- if and (include "hub.mayRender" (dict "found" $crd "root" .)) (not (include "hub.isThere" .)) -}}
true
{{- end -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* Labels of one component: (dict "name" "argocd-server" "component" "server" "root" $). Argo CD reads part-of. */}}
{{- define "hub.labels" -}}
app.kubernetes.io/name: {{ .name }}
{{- with .component }}
app.kubernetes.io/component: {{ . }}
{{- end }}
app.kubernetes.io/part-of: argocd
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
{{- end }}

{{- define "hub.image" -}}
{{ .Values.image }}:{{ .Values.tag | default .Chart.AppVersion }}
{{- end }}

{{/* Common fields of every pod. */}}
{{- define "hub.pod" -}}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
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
securityContext:
  {{- toYaml .Values.podSecurityContext | nindent 2 }}
{{- end }}

{{- define "hub.container" -}}
{{- toYaml .Values.securityContext }}
{{- end }}

{{/* Environment variables out of ConfigMap argocd-cmd-params-cm. Argument: map of name to key. */}}
{{- define "hub.paramsEnv" -}}
{{- range $name, $key := . }}
- name: {{ $name }}
  valueFrom:
    configMapKeyRef:
      name: argocd-cmd-params-cm
      key: {{ $key }}
      optional: true
{{- end }}
{{- end }}

{{- define "hub.redisPasswordEnv" -}}
- name: REDIS_PASSWORD
  valueFrom:
    secretKeyRef:
      name: argocd-redis
      key: auth
{{- end }}

{{/*
The common fields of Redis's pod, whose image has no user of its own. OpenShift gives each namespace ids, and refuses others.
*/}}
{{- define "hub.redisPod" -}}
{{- $user := .Values.redis.runAsUser -}}
{{- $security := deepCopy (.Values.podSecurityContext | default dict) -}}
{{- if and $user (not (kindIs "string" $user)) -}}
{{- $_ := set $security "runAsUser" (int64 $user) -}}
{{- else if and $user (not $security.runAsUser) (not (.Capabilities.APIVersions.Has "security.openshift.io/v1")) -}}
{{- $_ := set $security "runAsUser" 999 -}}
{{- end -}}
{{- include "hub.pod" (dict "Values" (merge (dict "podSecurityContext" $security) .Values)) -}}
{{- end }}
