{{/*
SSH hosts. Argo CD's server writes the same ConfigMap, so the live text counts: Helm takes away no host, and with an equal text there is
no conflict between the two.
*/}}

{{/* The live text of ssh_known_hosts. Empty: nobody has filled it yet; without any host Argo CD's server writes a line break. */}}
{{- define "hub.liveKnownHosts" -}}
{{- lookup "v1" "ConfigMap" (include "hub.namespace" .) "argocd-ssh-known-hosts-cm" | dig "data" "ssh_known_hosts" "" -}}
{{- end }}

{{/* "true" if the live text was last written by somebody else than the tool that keeps this release. */}}
{{- define "hub.othersKnownHosts" -}}
{{- $writers := lookup "v1" "ConfigMap" (include "hub.namespace" .) "argocd-ssh-known-hosts-cm" | dig "metadata" "managedFields" list -}}
{{- $own := list -}}
{{- range $writers -}}
{{- if dig "f:metadata" "f:annotations" "f:meta.helm.sh/release-name" false (.fieldsV1 | default dict) | kindIs "map" -}}
{{- $own = append $own .manager -}}
{{- end -}}
{{- end -}}
{{- range $writers -}}
{{- if and (dig "f:data" "f:ssh_known_hosts" false (.fieldsV1 | default dict) | kindIs "map") (not (has .manager $own)) -}}
true
{{- end -}}
{{- end -}}
{{- end }}

{{/* The lines of sshKnownHosts that the live text lacks. */}}
{{- define "hub.missingKnownHosts" -}}
{{- $live := include "hub.liveKnownHosts" . | splitList "\n" -}}
{{- range .Values.sshKnownHosts | default "" | splitList "\n" -}}
{{- $line := trim . -}}
{{- if and $line (not (has $line $live)) }}
{{ $line }}
{{- end -}}
{{- end -}}
{{- end }}

{{/* ssh_known_hosts: at first the usual hosts, afterwards what is there; in both cases those of the values, too. */}}
{{- define "hub.sshKnownHosts" -}}
{{- $live := include "hub.liveKnownHosts" . -}}
{{- if include "hub.othersKnownHosts" . -}}
{{- $live -}}
{{- else -}}
{{- $known := $live | default (.Files.Get "files/ssh_known_hosts") -}}
{{- with include "hub.missingKnownHosts" . | trim -}}
{{- $known = printf "%s\n%s\n" (trimSuffix "\n" $known) . -}}
{{- end -}}
{{- $known -}}
{{- end -}}
{{- end }}
