{{- /* From the list in files/permissions.yaml, which is made from the operator's code, to rules of roles. */ -}}

{{- define "dynamo.features" -}}
{{- $operator := index .Values "dynamo-operator" }}
{{- $isRestricted := include "dynamo.isRestricted" . | not | not }}
always: true
clusterWide: {{ not $isRestricted }}
restricted: {{ $isRestricted }}
webhooks: {{ $operator.webhook.enabled }}
ownCertificate: {{ and $operator.webhook.enabled (eq "self" (include "dynamo.certificates" .)) }}
sshKeys: {{ $operator.dynamo.mpiRun.secretName | not | not }}
grove: {{ $operator.optionalApis.grove }}
kai: {{ $operator.optionalApis.kai }}
leaderWorkerSet: {{ $operator.optionalApis.leaderWorkerSet }}
istio: {{ or $operator.optionalApis.istio $operator.dynamo.istio.enabled }}
inferencePool: {{ $operator.optionalApis.inferencePool }}
{{- end }}

{{- define "dynamo.objectNames" -}}
{{- $operator := index .Values "dynamo-operator" }}
$electionLease: {{ include "dynamo.electionLease" . }}
$sshSecret: {{ $operator.dynamo.mpiRun.secretName }}
$webhookSecret: {{ $operator.webhook.certificateSecret.name }}
$webhookConfiguration: {{ include "dynamo.webhookConfiguration" . }}
$plannerRole: {{ include "dynamo.fullname" . }}-planner
$eppRole: {{ include "dynamo.fullname" . }}-epp
$profilingRole: {{ include "dynamo.fullname" . }}-dgdr-profiling
{{- end }}

{{- /* The rules of one role: `root`, `rules`, and `where` as a list; without `where`, of all places. */ -}}
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
    - {{ get $names . | default . }}
  {{- end }}
{{- end }}
  verbs: {{ toJson .verbs }}
{{- end }}
{{- end }}
{{- end }}
