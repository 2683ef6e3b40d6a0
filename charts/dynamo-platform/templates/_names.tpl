{{- /* Names of objects. They are those of the reference chart, because users and other charts depend on them. */ -}}

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

{{- /*
The name of an object of the release. Arguments: `list ROOT SUFFIX`. At most 63 characters, the limit of Services: a longer prefix is
truncated and gets a hash, so that the names of two long releases differ.
*/ -}}
{{- define "dynamo.named" -}}
{{- $prefix := include "dynamo.fullname" (index . 0) }}
{{- $suffix := index . 1 }}
{{- $whole := printf "%s%s" $prefix $suffix }}
{{- if le (len $whole) 63 }}{{ $whole }}
{{- else if le (len $suffix) 40 }}
{{- $room := sub 54 (len $suffix) | int }}
{{- printf "%s-%s%s" ($prefix | trunc $room | trimSuffix "-") ($prefix | sha256sum | trunc 8) $suffix }}
{{- else }}
{{- printf "%s-%s" ($whole | trunc 54 | trimSuffix "-") ($whole | sha256sum | trunc 8) }}
{{- end }}
{{- end }}

{{- define "dynamo.selectorLabels" -}}
app.kubernetes.io/name: {{ include "dynamo.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{- define "dynamo.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" | quote }}
{{ include "dynamo.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
app.kubernetes.io/part-of: dynamo-operator
{{- end }}

{{- /* Labels of an object. Arguments: `list ROOT OWN THEIRS`. Labels of users never override those of selectors. */ -}}
{{- define "dynamo.labelled" -}}
{{- merge (deepCopy (index . 1)) (include "dynamo.labels" (index . 0) | fromYaml) (index . 2) | toYaml }}
{{- end }}

{{- /* The labels of the operator's pods; other objects of the chart select `control-plane`. */ -}}
{{- define "dynamo.operatorSelector" -}}
{{ include "dynamo.selectorLabels" . }}
control-plane: controller-manager
{{- end }}

{{- define "dynamo.account" -}}
{{- include "dynamo.named" (list . "-controller-manager") }}
{{- end }}

{{- define "dynamo.isRestricted" -}}
{{- if or .Values.namespaceRestriction.enabled (index .Values "dynamo-operator" "namespaceRestriction" "enabled") }}true{{ end }}
{{- end }}

{{- /* The namespace of graphs; empty for all namespaces. */ -}}
{{- define "dynamo.graphsNamespace" -}}
{{- if include "dynamo.isRestricted" . }}
{{- index .Values "dynamo-operator" "namespaceRestriction" "targetNamespace" | default .Values.namespaceRestriction.targetNamespace | default .Release.Namespace }}
{{- end }}
{{- end }}

{{- /* The namespace of metrics, ServiceAccounts and webhooks: that of graphs, else that of the release. */ -}}
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
{{- include "dynamo.named" (list . "-webhook-service") }}
{{- end }}

{{- define "dynamo.webhookConfiguration" -}}
{{- $namespace := include "dynamo.graphsNamespace" . }}
{{- include "dynamo.named" (list . (printf "-validating%s" ($namespace | empty | ternary "" (printf "-%s" $namespace)))) }}
{{- end }}

{{- /* The namespaceSelector of the webhooks: the configured one, but for a restricted operator only its namespace. Empty for all namespaces. */ -}}
{{- define "dynamo.reviewedNamespaces" -}}
{{- $selector := index .Values "dynamo-operator" "webhook" "namespaceSelector" | deepCopy }}
{{- with include "dynamo.graphsNamespace" . }}
{{- $_ := set $selector "matchLabels" (merge (dict "kubernetes.io/metadata.name" .) ($selector.matchLabels | default dict)) }}
{{- end }}
{{- with $selector }}{{ toYaml . }}{{ end }}
{{- end }}

{{- define "dynamo.operatorImage" -}}
{{- $image := index .Values "dynamo-operator" "controllerManager" "manager" "image" }}
{{- include "dynamo.image" (dict "root" . "repository" $image.repository "tag" (include "dynamo.version" .) "digest" $image.digest) }}
{{- end }}

{{- /* The reference of an image. Arguments: `repository`, `tag`, `digest`, and the root context as `root`. */ -}}
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

{{- /* Pull secrets and tolerations of the operator's pods, as YAML: those at the top level as well. */ -}}
{{- define "dynamo.imagePullSecrets" -}}
{{- with concat (index .Values "dynamo-operator" "imagePullSecrets") .Values.imagePullSecrets | uniq }}{{ toYaml . }}{{ end }}
{{- end }}
{{- define "dynamo.tolerations" -}}
{{- with concat (index .Values "dynamo-operator" "controllerManager" "tolerations") .Values.tolerations | uniq }}{{ toYaml . }}{{ end }}
{{- end }}

{{- define "dynamo.version" -}}
{{- index .Values "dynamo-operator" "controllerManager" "manager" "image" "tag" | default .Chart.AppVersion }}
{{- end }}

{{- define "dynamo.registrySecret" -}}
{{- $registry := index .Values "dynamo-operator" "dynamo" "dockerRegistry" }}
{{- if $registry.useKubernetesSecret }}
{{- $registry.existingSecretName | default (include "dynamo.named" (list . "-regcred")) }}
{{- end }}
{{- end }}

{{- /* Whether the values ask for webhooks: `webhook.enabled`, at the top level or in `dynamo-operator`. */ -}}
{{- define "dynamo.wantsWebhooks" -}}
{{- if and .Values.webhook.enabled (index .Values "dynamo-operator" "webhook" "enabled") }}true{{ end }}
{{- end }}

{{- /* Whether webhooks are installed. A restricted operator cannot issue its own certificate, because it may not write cluster-scoped objects. */ -}}
{{- define "dynamo.servesWebhooks" -}}
{{- $certifiesItself := eq "self" (include "dynamo.certificates" .) }}
{{- if and (include "dynamo.wantsWebhooks" .) (not (and $certifiesItself (include "dynamo.isRestricted" .))) }}true{{ end }}
{{- end }}

{{- /* Whether the API server can have the operator convert objects: it presents no client certificate to conversion webhooks. */ -}}
{{- define "dynamo.converts" -}}
{{- $webhook := index .Values "dynamo-operator" "webhook" }}
{{- if and (include "dynamo.servesWebhooks" .) $webhook.conversion.enabled (not $webhook.clientCA.configMap) }}true{{ end }}
{{- end }}

{{- /* Whether the operator rewrites stored objects. A restricted one sees only those of its namespace. */ -}}
{{- define "dynamo.migrates" -}}
{{- if and (include "dynamo.converts" .) (index .Values "dynamo-operator").webhook.conversion.migration (not (include "dynamo.isRestricted" .)) }}true{{ end }}
{{- end }}

{{- /* Whether the operator authorizes readers of metrics with the API server. */ -}}
{{- define "dynamo.reviewsMetrics" -}}
{{- $metrics := index .Values "dynamo-operator" "metricsService" }}
{{- if and (include "dynamo.servesMetrics" .) $metrics.secure (eq "reviewed" $metrics.access) }}true{{ end }}
{{- end }}

{{- /* Whether the operator serves metrics. `metrics.enabled`, at the top level or in `dynamo-operator`, is a short form of the same value. */ -}}
{{- define "dynamo.servesMetrics" -}}
{{- $operator := index .Values "dynamo-operator" }}
{{- if and $operator.metricsService.enabled $operator.metrics.enabled .Values.metrics.enabled }}true{{ end }}
{{- end }}

{{- /* The issuer of the webhooks' certificate. */ -}}
{{- define "dynamo.certificates" -}}
{{- $webhook := index .Values "dynamo-operator" "webhook" }}
{{- if $webhook.certManager.enabled }}cert-manager
{{- else if $webhook.certificateSecret.external }}external
{{- else }}self{{ end }}
{{- end }}

{{- /* The pod security context of the `restricted` pod security standard. */ -}}
{{- define "dynamo.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile:
  type: RuntimeDefault
{{- end }}
