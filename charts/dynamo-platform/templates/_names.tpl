{{- /* What things are called. Users and other charts know these names, so they are those of the reference chart. */ -}}

{{- define "dynamo.name" -}}
{{- index .Values "dynamo-operator" "nameOverride" | default "dynamo-operator" | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "dynamo.fullname" -}}
{{- $name := include "dynamo.name" . }}
{{- if index .Values "dynamo-operator" "fullnameOverride" }}
{{- index .Values "dynamo-operator" "fullnameOverride" | trunc 63 | trimSuffix "-" }}
{{- else if contains $name .Release.Name }}
{{- .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "dynamo.selectorLabels" -}}
app.kubernetes.io/name: {{ include "dynamo.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "dynamo.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "dynamo.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: dynamo-operator
{{- end }}

{{- /* The pods of the operator; `control-plane` is the label that other objects of the chart select. */ -}}
{{- define "dynamo.operatorSelector" -}}
{{ include "dynamo.selectorLabels" . }}
control-plane: controller-manager
{{- end }}

{{- define "dynamo.account" -}}
{{- include "dynamo.fullname" . }}-controller-manager
{{- end }}

{{- define "dynamo.isRestricted" -}}
{{- if index .Values "dynamo-operator" "namespaceRestriction" "enabled" }}true{{ end }}
{{- end }}

{{- /* The namespace of graphs. Empty means all. */ -}}
{{- define "dynamo.graphsNamespace" -}}
{{- $restriction := index .Values "dynamo-operator" "namespaceRestriction" }}
{{- if $restriction.enabled }}{{ $restriction.targetNamespace | default .Release.Namespace }}{{ end }}
{{- end }}

{{- /* The namespace whose metrics, accounts and webhooks are meant: that of graphs, else the release's. */ -}}
{{- define "dynamo.namespace" -}}
{{- include "dynamo.graphsNamespace" . | default .Release.Namespace }}
{{- end }}

{{- define "dynamo.electionNamespace" -}}
{{- $chosen := index .Values "dynamo-operator" "controllerManager" "leaderElection" "namespace" }}
{{- if $chosen }}{{ $chosen }}
{{- else if include "dynamo.isRestricted" . }}{{ include "dynamo.graphsNamespace" . }}
{{- else }}kube-system{{ end }}
{{- end }}

{{- define "dynamo.electionLease" -}}
{{- index .Values "dynamo-operator" "controllerManager" "leaderElection" "id" | default "dynamo.nvidia.com" }}
{{- end }}

{{- define "dynamo.webhookService" -}}
{{- include "dynamo.fullname" . }}-webhook-service
{{- end }}

{{- define "dynamo.webhookConfiguration" -}}
{{- include "dynamo.fullname" . }}-validating{{ with include "dynamo.graphsNamespace" . }}-{{ . }}{{ end }}
{{- end }}

{{- /* An image: `repository`, `tag`, `digest`, and the root context as `root`. */ -}}
{{- define "dynamo.image" -}}
{{- $repository := .repository }}
{{- with .root.Values.global.imageRegistry }}
{{- $parts := splitList "/" $repository }}
{{- $first := first $parts }}
{{- if and (gt (len $parts) 1) (or (contains "." $first) (contains ":" $first) (eq $first "localhost")) }}
{{- $repository = join "/" (rest $parts) }}
{{- end }}
{{- $repository = printf "%s/%s" (trimSuffix "/" .) $repository }}
{{- end }}
{{- if .digest }}{{ $repository }}@{{ .digest }}
{{- else if .tag }}{{ $repository }}:{{ .tag }}
{{- else }}{{ $repository }}{{ end }}
{{- end }}

{{- define "dynamo.version" -}}
{{- index .Values "dynamo-operator" "controllerManager" "manager" "image" "tag" | default .Chart.AppVersion }}
{{- end }}

{{- define "dynamo.registrySecret" -}}
{{- $registry := index .Values "dynamo-operator" "dynamo" "dockerRegistry" }}
{{- if $registry.useKubernetesSecret }}
{{- $registry.existingSecretName | default (printf "%s-regcred" (include "dynamo.fullname" .)) }}
{{- end }}
{{- end }}

{{- /* Who makes the certificate of the webhooks. */ -}}
{{- define "dynamo.certificates" -}}
{{- $webhook := index .Values "dynamo-operator" "webhook" }}
{{- if $webhook.certManager.enabled }}cert-manager
{{- else if $webhook.certificateSecret.external }}external
{{- else }}self{{ end }}
{{- end }}
