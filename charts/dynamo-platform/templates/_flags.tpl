{{- /* The operator's flags. What is empty is left to the operator, whose defaults are in docs/settings.md. */ -}}

{{- define "dynamo.flags" -}}
{{- $operator := index .Values "dynamo-operator" }}
{{- $manager := $operator.controllerManager }}
{{- $dynamo := $operator.dynamo }}
{{- $names := include "dynamo.objectNames" . | fromYaml }}
- --health-probe-bind-address=:8081
- --metrics-bind-address=:8443
- --metrics-secure={{ $operator.metricsService.secure }}
- --leader-elect
- --leader-election-id={{ include "dynamo.electionLease" . }}
- --leader-election-namespace={{ include "dynamo.electionNamespace" . }}
- --log-level={{ $operator.logging.level }}
- --log-format={{ $operator.logging.format }}
- --operator-version={{ include "dynamo.version" . }}
- --enable-webhooks={{ $operator.webhook.enabled }}
{{- if $operator.webhook.enabled }}
- --webhook-bind-address=:9443
- --webhook-certificates={{ include "dynamo.certificates" . }}
- --webhook-certificate-life={{ mul 24 $operator.webhook.certificateValidity }}h
- --webhook-secret-name={{ $operator.webhook.certificateSecret.name }}
- --webhook-service-name={{ include "dynamo.webhookService" . }}
- --webhook-namespace={{ .Release.Namespace }}
- --webhook-configuration-name={{ include "dynamo.webhookConfiguration" . }}
{{- end }}
{{- if include "dynamo.isRestricted" . }}
- --restrictedNamespace={{ include "dynamo.graphsNamespace" . }}
- --namespace-scope-lease-duration={{ $operator.namespaceRestriction.lease.duration }}
- --namespace-scope-lease-renew-interval={{ $operator.namespaceRestriction.lease.renewInterval }}
{{- else }}
- --planner-cluster-role-name={{ get $names "$plannerRole" }}
- --epp-cluster-role-name={{ get $names "$eppRole" }}
- --dgdr-profiling-cluster-role-name={{ get $names "$profilingRole" }}
{{- end }}
{{- if $operator.natsAddr }}
- --natsAddr={{ $operator.natsAddr }}
{{- else if $operator.nats.enabled }}
- --natsAddr=nats://{{ .Release.Name }}-nats.{{ .Release.Namespace }}.svc.{{ $operator.kubernetesClusterDomain }}:4222
{{- end }}
{{- with $operator.etcdAddr }}
- --etcdAddr={{ . }}
{{- end }}
{{- with $operator.modelExpressURL }}
- --model-express-url={{ . }}
{{- end }}
{{- with $dynamo.metrics.prometheusEndpoint }}
- --prometheus-endpoint={{ . }}
{{- end }}
- --discovery-backend={{ $operator.discoveryBackend }}
- --probe-profile={{ $dynamo.probeProfile }}
- --worker-rollout={{ $dynamo.workerRollout }}
{{- with $dynamo.disruptionBudgetMaxUnavailable }}
- --disruption-budget-max-unavailable={{ . }}
{{- end }}
- --grove-termination-delay={{ $dynamo.groveTerminationDelay }}
{{- if $dynamo.istio.enabled }}
- --istio-virtual-service-gateway={{ $dynamo.istio.gateway }}
{{- end }}
{{- if $dynamo.ingress.enabled }}
{{- with $dynamo.ingress.className }}
- --ingress-controller-class-name={{ . }}
{{- end }}
{{- with $dynamo.ingress.tlsSecretName }}
- --ingress-controller-tls-secret-name={{ . }}
{{- end }}
{{- end }}
{{- with $dynamo.ingressHostSuffix }}
- --ingress-host-suffix={{ . }}
{{- end }}
{{- with $dynamo.mpiRun.secretName }}
- --mpi-run-ssh-secret-name={{ . }}
- --mpi-run-ssh-secret-namespace={{ $.Release.Namespace }}
- --mpi-run-ssh-keygen={{ $dynamo.mpiRun.sshKeygen.enabled }}
{{- end }}
- --debugger-image={{ include "dynamo.image" (dict "root" . "repository" $dynamo.internalImages.debugger) }}
{{- range $manager.manager.args }}
- {{ . | quote }}
{{- end }}
{{- end }}
