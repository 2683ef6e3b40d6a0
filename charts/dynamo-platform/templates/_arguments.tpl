{{- /*
Additional flags of a user. Ports, names and modes, on which other objects of the chart depend, come from values, so a conflicting
flag fails. Flags with the same value, and the default list of the Go operator's chart, are dropped, because users carry them over.
*/ -}}

{{- /* Flags that only values may set → the value to set. */ -}}
{{- define "dynamo.computedFlags" -}}
metrics-bind-address: metricsService.enabled
metrics-secure: metricsService.secure
metrics-access: metricsService.access
metrics-service-name: fullnameOverride
metrics-secret-name: fullnameOverride
health-probe-bind-address: no other value
leader-elect: no other value
leader-election-id: controllerManager.leaderElection.id
leader-election-namespace: controllerManager.leaderElection.namespace
operator-version: controllerManager.manager.image.tag
enable-legacy-kinds: legacyKinds.enabled
restrictedNamespace: namespaceRestriction
restricted-namespace: namespaceRestriction
enable-webhooks: webhook.enabled
webhook-bind-address: no other value
webhook-namespace: no other value
webhook-certificates: webhook.certManager and webhook.certificateSecret
webhook-secret-name: webhook.certificateSecret.name
webhook-service-name: fullnameOverride
webhook-configuration-name: fullnameOverride
planner-cluster-role-name: fullnameOverride
epp-cluster-role-name: fullnameOverride
dgdr-profiling-cluster-role-name: fullnameOverride
dgdr-profiling-nodes-cluster-role-name: fullnameOverride
mpi-run-ssh-secret-name: dynamo.mpiRun.secretName
mpi-run-ssh-secret-namespace: no other value
{{- end }}

{{- /* A flag in the chart's form: two dashes and a value. */ -}}
{{- define "dynamo.plainFlag" -}}
{{- $plain := printf "--%s" (. | trimPrefix "-" | trimPrefix "-") }}
{{- if contains "=" $plain }}{{ $plain }}{{ else }}{{ $plain }}=true{{ end }}
{{- end }}

{{- /* The flags of `controllerManager.manager.args` that take effect, as a YAML list. Arguments: `list ROOT COMPUTED`. */ -}}
{{- define "dynamo.moreFlags" -}}
{{- $args := index (index . 0).Values "dynamo-operator" "controllerManager" "manager" "args" }}
{{- $reserved := include "dynamo.computedFlags" . | fromYaml }}
{{- $same := list "--metrics-bind-address=127.0.0.1:8080" }}
{{- range index . 1 }}{{ $same = append $same (include "dynamo.plainFlag" .) }}{{ end }}
{{- $more := list }}
{{- range $args }}
{{- $plain := include "dynamo.plainFlag" . }}
{{- $name := $plain | trimPrefix "--" | splitList "=" | first }}
{{- if not (and (hasPrefix "-" .) (hasKey $reserved $name)) }}
{{- $more = append $more . }}
{{- else if not (has $plain $same) }}
{{- fail (printf "VALIDATION ERROR: controllerManager.manager.args: %q contradicts what the chart computes, on which its Services, probes or roles depend; take it out (set instead: %s)" . (get $reserved $name)) }}
{{- end }}
{{- end }}
{{- toYaml $more }}
{{- end }}
