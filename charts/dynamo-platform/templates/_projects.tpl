{{- /* Other projects: which of their kinds the cluster serves, and which were part of a release of the Go operator's chart. Only this file queries the cluster. */ -}}

{{- /* Whether to create monitors. Arguments: `list ROOT VALUE`; "auto" creates them if the cluster serves the Prometheus operator's kinds. */ -}}
{{- define "dynamo.makesMonitors" -}}
{{- $value := index . 1 | toString }}
{{- if or (eq $value "true") (and (eq $value "auto") ((index . 0).Capabilities.APIVersions.Has "monitoring.coreos.com/v1")) }}true{{ end }}
{{- end }}

{{- /* The drain period of workers; the `sleep` action of a `preStop` hook needs Kubernetes 1.30. */ -}}
{{- define "dynamo.workerDrainPeriod" -}}
{{- semverCompare ">=1.30-0" .Capabilities.KubeVersion.Version | ternary (index .Values "dynamo-operator").dynamo.workerDrainPeriod "0s" }}
{{- end }}

{{- /* Whether the operator may use a project. Arguments: `list ROOT KEY`, with a key of `optionalApis`. */ -}}
{{- define "dynamo.grants" -}}
{{- $operator := index (index . 0).Values "dynamo-operator" }}
{{- $key := index . 1 }}
{{- if or (get $operator.optionalApis $key) (and (eq $key "istio") $operator.dynamo.istio.enabled) }}true{{ end }}
{{- end }}

{{- /* How to install the projects of `grove.enabled` and `kai-scheduler.enabled`; the chart does not install them. */ -}}
{{- define "dynamo.wantedProjects" -}}
grove:
  title: Grove
  api: grove.io/v1alpha1
  key: grove
  install: helm install grove oci://ghcr.io/nvidia/grove/grove-charts --version v0.1.0-alpha.3 --namespace grove-system --create-namespace
kai-scheduler:
  title: The KAI scheduler
  api: scheduling.run.ai/v2
  key: kai
  install: helm install kai-scheduler oci://ghcr.io/nvidia/kai-scheduler/kai-scheduler --version v0.9.4 --namespace kai-scheduler --create-namespace
{{- end }}

{{- /*
A release of the Go operator's chart may contain Grove and the KAI scheduler. Helm would remove them at the upgrade, and nothing
would manage their workloads. So the upgrade fails until they are annotated to be kept.
*/ -}}
{{- define "dynamo.projectRefusals" -}}
{{- $operator := index .Values "dynamo-operator" }}
{{- range $part, $project := include "dynamo.wantedProjects" . | fromYaml }}
{{- if and (get $.Values $part).enabled (not (get $operator.optionalApis $project.key)) }}
{{- fail (printf "VALIDATION ERROR: %s.enabled is true and dynamo-operator.optionalApis.%s is false: the operator could not use it. Change one of them" $part $project.key) }}
{{- end }}
{{- end }}
{{- if and .Release.IsUpgrade (or .Values.grove.enabled (index .Values "kai-scheduler" "enabled")) }}
{{- $leaving := list }}
{{- range (lookup "apps/v1" "Deployment" .Release.Namespace "").items }}
{{- $annotations := .metadata.annotations | default dict }}
{{- $isOfRelease := eq $.Release.Name (get $annotations "meta.helm.sh/release-name") }}
{{- $stays := eq "keep" (get $annotations "helm.sh/resource-policy") }}
{{- $isOurs := or (eq .metadata.name (include "dynamo.named" (list $ "-controller-manager"))) (eq .metadata.name (printf "%s-nats-box" $.Release.Name)) }}
{{- if and $isOfRelease (not $stays) (not $isOurs) }}{{ $leaving = append $leaving .metadata.name }}{{ end }}
{{- end }}
{{- if $leaving }}
{{- fail (printf "VALIDATION ERROR: this release runs the Deployments %s, which this chart does not contain: Helm would remove them, and with them the operator of Grove or the KAI scheduler. Mark their objects to be kept first; docs/install.md has the command" (join ", " $leaving)) }}
{{- end }}
{{- end }}
{{- end }}

{{- define "dynamo.projectNotes" -}}
{{- range $part, $project := include "dynamo.wantedProjects" . | fromYaml }}
{{- if and (get $.Values $part).enabled (not ($.Capabilities.APIVersions.Has $project.api)) }}
{{ $part }}.enabled: the operator uses {{ $project.title }} as soon as it is installed, which it is not yet. It serves the whole cluster, so it is not part of this release:
  {{ $project.install }}
{{- end }}
{{- end }}
{{- end }}
