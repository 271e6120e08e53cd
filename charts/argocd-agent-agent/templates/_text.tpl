{{/* A value as text. A number keeps the form in which it was written: a plain toString makes 1e+06 of a million. */}}
{{- define "agent.text" -}}
{{- if kindIs "float64" . }}{{ toJson . }}{{ else }}{{ toString . }}{{ end -}}
{{- end }}
