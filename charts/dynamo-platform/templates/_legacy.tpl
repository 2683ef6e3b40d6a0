{{- /* The environment variables of the legacy kinds, as a YAML list. Values override what the chart computes. */ -}}
{{- define "dynamo.legacyVariables" -}}
{{- $operator := index .Values "dynamo-operator" }}
{{- $legacy := $operator.legacyKinds }}
{{- $found := list }}
{{- if $legacy.enabled }}
{{- $own := dict "INTERNAL_IMAGES_BENTO_DOWNLOADER" (include "dynamo.operatorImage" .) }}
{{- if $legacy.buildkitd.enabled }}
{{- $_ := set $own "BUILDKIT_URL" (printf "tcp://%s.%s.svc:1234" (include "dynamo.named" (list . "-buildkitd")) .Release.Namespace) }}
{{- $_ := set $own "BUILDKIT_CLIENT_SECRET" $legacy.buildkitd.tls.clientSecret }}
{{- end }}
{{- range $name, $value := merge (dict) $legacy.settings $own }}
{{- $found = append $found (dict "name" $name "value" (toString $value)) }}
{{- end }}
{{- end }}
{{- toYaml $found }}
{{- end }}
