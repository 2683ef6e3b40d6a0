{{- /*
The operator's flags, as a YAML list. Empty values are omitted, so that the operator's defaults (docs/settings.md) apply. The flags are
built as data and written by `toYaml`, so that users cannot inject YAML.
*/ -}}

{{- define "dynamo.flags" -}}
{{- $operator := index .Values "dynamo-operator" }}
{{- $dynamo := $operator.dynamo }}
{{- $flags := list
  "--health-probe-bind-address=:8081"
  (printf "--metrics-bind-address=%s" (include "dynamo.servesMetrics" . | not | ternary "0" ":8443"))
  "--leader-elect"
  (printf "--leader-election-id=%s" (include "dynamo.electionLease" .))
  (printf "--leader-election-namespace=%s" (include "dynamo.electionNamespace" .))
  (printf "--log-level=%s" $operator.logging.level)
  (printf "--log-format=%s" $operator.logging.format)
  (printf "--operator-version=%s" (include "dynamo.version" .)) }}
{{- $flags = concat $flags (include "dynamo.metricsFlags" . | fromYamlArray) (include "dynamo.webhookFlags" . | fromYamlArray) (include "dynamo.scopeFlags" . | fromYamlArray) }}
{{- $addresses := list
  (list "natsAddr" (include "dynamo.natsAddress" .))
  (list "etcdAddr" (include "dynamo.etcdAddress" .))
  (list "model-express-url" $operator.modelExpressURL)
  (list "prometheus-endpoint" ($dynamo.metrics.prometheusEndpoint | default .Values.prometheusEndpoint))
  (list "discovery-backend" $operator.discoveryBackend)
  (list "probe-profile" $dynamo.probeProfile)
  (list "worker-liveness-failures" (int $dynamo.workerLivenessFailures | toString))
  (list "worker-drain-period" (include "dynamo.workerDrainPeriod" .))
  (list "worker-rollout" $dynamo.workerRollout)
  (list "disruption-budget-max-unavailable" ($dynamo.disruptionBudgetMaxUnavailable | toString))
  (list "grove-termination-delay" $dynamo.groveTerminationDelay)
  (list "istio-virtual-service-gateway" ($dynamo.istio.enabled | ternary $dynamo.istio.gateway ""))
  (list "ingress-controller-class-name" ($dynamo.ingress.enabled | ternary $dynamo.ingress.className ""))
  (list "ingress-controller-tls-secret-name" ($dynamo.ingress.enabled | ternary $dynamo.ingress.tlsSecretName ""))
  (list "ingress-host-suffix" $dynamo.ingressHostSuffix)
  (list "ingress-allowed-classes" (join "," $dynamo.ingress.allowedClasses))
  (list "ingress-allowed-host-suffixes" (join "," $dynamo.ingress.allowedHostSuffixes))
  (list "ingress-allowed-annotations" (join "," $dynamo.ingress.allowedAnnotations))
  (list "istio-allowed-gateways" (join "," $dynamo.istio.allowedGateways))
  (list "enable-legacy-kinds" ($operator.legacyKinds.enabled | ternary "true" ""))
  (list "cluster-domain" $operator.kubernetesClusterDomain)
  (list "mpi-run-ssh-secret-name" $dynamo.mpiRun.secretName)
  (list "mpi-run-ssh-secret-namespace" ($dynamo.mpiRun.secretName | empty | ternary "" .Release.Namespace))
  (list "mpi-run-ssh-keygen" ($dynamo.mpiRun.secretName | empty | ternary "" ($dynamo.mpiRun.sshKeygen.enabled | toString)))
  (list "model-calls" $dynamo.models.calls)
  (list "model-call-timeout" $dynamo.models.callTimeout)
  (list "model-calls-at-once" (int $dynamo.models.callsAtOnce | toString))
  (list "operator-account" (printf "%s/%s" .Release.Namespace (include "dynamo.account" .)))
  (list "operator-image" (include "dynamo.operatorImage" .))
  (list "profiling-copier-image" ($dynamo.internalImages.profilingCopier | empty | ternary "" (include "dynamo.image" (dict "root" . "repository" $dynamo.internalImages.profilingCopier))))
  (list "debugger-image" (include "dynamo.image" (dict "root" . "repository" $dynamo.internalImages.debugger))) }}
{{- range $addresses }}
{{- if index . 1 }}
{{- $flags = append $flags (printf "--%s=%s" (index . 0) (index . 1)) }}
{{- end }}
{{- end }}
{{- concat $flags (include "dynamo.moreFlags" (list . $flags) | fromYamlArray) | toYaml }}
{{- end }}

{{- define "dynamo.metricsFlags" -}}
{{- $metrics := index .Values "dynamo-operator" "metricsService" }}
{{- $flags := list (printf "--metrics-secure=%t" $metrics.secure) }}
{{- if and (include "dynamo.servesMetrics" .) $metrics.secure }}
{{- $flags = concat $flags (list
  (printf "--metrics-access=%s" $metrics.access)
  (printf "--metrics-service-name=%s" (include "dynamo.fullname" .))
  (printf "--metrics-secret-name=%s" (include "dynamo.named" (list . "-metrics-cert")))) }}
{{- end }}
{{- toYaml $flags }}
{{- end }}

{{- define "dynamo.webhookFlags" -}}
{{- $webhook := index .Values "dynamo-operator" "webhook" }}
{{- $enabled := include "dynamo.servesWebhooks" . | not | not }}
{{- $flags := list (printf "--webhook-namespace=%s" .Release.Namespace) (printf "--enable-webhooks=%t" $enabled) }}
{{- if $enabled }}
{{- $flags = concat $flags (list
  "--webhook-bind-address=:9443"
  (printf "--webhook-certificates=%s" (include "dynamo.certificates" .))
  (printf "--webhook-certificate-life=%dh" (mul 24 (int $webhook.certificateValidity)))
  (printf "--webhook-secret-name=%s" $webhook.certificateSecret.name)
  (printf "--webhook-service-name=%s" (include "dynamo.webhookService" .))
  (printf "--webhook-configuration-name=%s" (include "dynamo.webhookConfiguration" .))) }}
{{- if include "dynamo.migrates" . }}
{{- $flags = append $flags "--migrate-stored-objects" }}
{{- end }}
{{- with $webhook.clientCA }}
{{- if .configMap }}
{{- $flags = append $flags "--webhook-client-ca=/etc/dynamo-operator/webhook-client-ca/ca.crt" }}
{{- if .commonName }}
{{- $flags = append $flags (printf "--webhook-client-name=%s" .commonName) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- toYaml $flags }}
{{- end }}

{{- define "dynamo.scopeFlags" -}}
{{- $lease := index .Values "dynamo-operator" "namespaceRestriction" "lease" }}
{{- $names := include "dynamo.objectNames" . | fromYaml }}
{{- if include "dynamo.isRestricted" . }}
{{- list
  (printf "--restrictedNamespace=%s" (include "dynamo.graphsNamespace" .))
  (printf "--namespace-scope-lease-duration=%s" $lease.duration)
  (printf "--namespace-scope-lease-renew-interval=%s" $lease.renewInterval) | toYaml }}
{{- else }}
{{- list
  (printf "--planner-cluster-role-name=%s" (get $names "$plannerRole"))
  (printf "--epp-cluster-role-name=%s" (get $names "$eppRole"))
  (printf "--dgdr-profiling-cluster-role-name=%s" (get $names "$profilingRole"))
  (printf "--dgdr-profiling-nodes-cluster-role-name=%s" (get $names "$profilingNodes")) | toYaml }}
{{- end }}
{{- end }}

{{- /* The address of NATS: the configured one, else that of this release's NATS, else empty. */ -}}
{{- define "dynamo.natsAddress" -}}
{{- $operator := index .Values "dynamo-operator" }}
{{- if $operator.natsAddr }}{{ $operator.natsAddr }}
{{- else if or $operator.nats.enabled .Values.nats.enabled -}}
nats://{{ .Release.Name }}-nats.{{ .Release.Namespace }}.svc.{{ $operator.kubernetesClusterDomain }}:4222
{{- end }}
{{- end }}

{{- /* The address of etcd: the configured one, else that of this release's etcd, else empty. */ -}}
{{- define "dynamo.etcdAddress" -}}
{{- $operator := index .Values "dynamo-operator" }}
{{- if $operator.etcdAddr }}{{ $operator.etcdAddr }}
{{- else if .Values.etcd.enabled -}}
{{ .Release.Name }}-etcd.{{ .Release.Namespace }}.svc.{{ $operator.kubernetesClusterDomain }}:2379
{{- end }}
{{- end }}
