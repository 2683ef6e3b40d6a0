{{- /* Rules of roles, from files/permissions.yaml, which is generated from code. */ -}}

{{- define "dynamo.features" -}}
{{- $operator := index .Values "dynamo-operator" }}
{{- $isRestricted := include "dynamo.isRestricted" . | not | not }}
{{- $servesWebhooks := include "dynamo.servesWebhooks" . | not | not }}
{{- $makesCertificate := and $servesWebhooks (eq "self" (include "dynamo.certificates" .)) }}
{{- $metrics := $operator.metricsService }}
always: true
clusterWide: {{ not $isRestricted }}
restricted: {{ $isRestricted }}
webhooks: {{ $servesWebhooks }}
ownCertificate: {{ $makesCertificate }}
ownBundle: {{ and $makesCertificate (not $isRestricted) }}
conversion: {{ and (include "dynamo.converts" .) $makesCertificate (not $isRestricted) | not | not }}
migration: {{ include "dynamo.migrates" . | not | not }}
metricsCertificate: {{ and (include "dynamo.servesMetrics" . | not | not) $metrics.secure }}
metricsReview: {{ include "dynamo.reviewsMetrics" . | not | not }}
sshKeys: {{ $operator.dynamo.mpiRun.secretName | not | not }}
legacyKinds: {{ $operator.legacyKinds.enabled }}
{{- range $key := list "grove" "kai" "leaderWorkerSet" "istio" "inferencePool" }}
{{ $key }}: {{ include "dynamo.grants" (list $ $key) | not | not }}
{{- end }}
{{- end }}

{{- define "dynamo.objectNames" -}}
{{- $operator := index .Values "dynamo-operator" }}
$electionLease: {{ include "dynamo.electionLease" . | quote }}
$sshSecret: {{ $operator.dynamo.mpiRun.secretName | quote }}
$webhookSecret: {{ $operator.webhook.certificateSecret.name | quote }}
$webhookConfiguration: {{ include "dynamo.webhookConfiguration" . | quote }}
$metricsSecret: {{ include "dynamo.named" (list . "-metrics-cert") | quote }}
$plannerRole: {{ include "dynamo.named" (list . "-planner") | quote }}
$eppRole: {{ include "dynamo.named" (list . "-epp") | quote }}
$profilingRole: {{ include "dynamo.named" (list . "-dgdr-profiling") | quote }}
$profilingNodes: {{ include "dynamo.named" (list . "-dgdr-profiling-nodes") | quote }}
{{- end }}

{{- /* The rules of one role. Arguments: `root`, `rules`, and optionally the list `where`, which filters the rules. */ -}}
{{- define "dynamo.rules" -}}
{{- $features := include "dynamo.features" .root | fromYaml }}
{{- $names := include "dynamo.objectNames" .root | fromYaml }}
{{- $where := .where }}
{{- range .rules }}
{{- if and (get $features .feature) (or (not $where) (has .where $where)) }}
# {{ .why }}
- apiGroups: {{ toJson .apiGroups }}
  resources: {{ toJson .resources }}
{{- if .resourceNames }}
  resourceNames:
  {{- range .resourceNames }}
    - {{ get $names . | default . | quote }}
  {{- end }}
{{- end }}
  verbs: {{ toJson .verbs }}
{{- end }}
{{- end }}
{{- end }}
