{{- /* Values that cannot work fail at rendering, with a message that says what to do. Only `_projects.tpl` queries the cluster. */ -}}

{{- define "dynamo.refusals" -}}
{{- $operator := index .Values "dynamo-operator" }}
{{- if not $operator.enabled }}
{{- fail "VALIDATION ERROR: dynamo-operator.enabled is false, but this chart installs nothing else" }}
{{- end }}
{{- if not (has $operator.discoveryBackend (list "kubernetes" "etcd")) }}
{{- fail (printf "VALIDATION ERROR: discoveryBackend must be 'kubernetes' (default) or 'etcd'. Got: '%s'" $operator.discoveryBackend) }}
{{- end }}
{{- $election := $operator.controllerManager.leaderElection }}
{{- if not (include "dynamo.isRestricted" .) }}
{{- if and $election.id (ne $election.id "dynamo.nvidia.com") }}
{{- fail (printf "VALIDATION WARNING: Using custom leader election ID '%s' in cluster-wide mode. Two cluster-wide operators would both lead; leave controllerManager.leaderElection.id empty" $election.id) }}
{{- end }}
{{- if eq $election.namespace .Release.Namespace }}
{{- fail (printf "WARNING: Leader election namespace is set to the same as release namespace (%s) in cluster-wide mode. Operators of other namespaces would not see its Lease; leave controllerManager.leaderElection.namespace empty" .Release.Namespace) }}
{{- end }}
{{- end }}
{{- include "dynamo.projectRefusals" . }}
{{- $registry := $operator.dynamo.dockerRegistry }}
{{- if and $registry.useKubernetesSecret (not $registry.existingSecretName) }}
{{- if not $registry.server }}{{ fail "docker registry server is required" }}{{ end }}
{{- if not $registry.username }}{{ fail "docker registry username is required when not using existing secret" }}{{ end }}
{{- if not $registry.password }}{{ fail "docker registry password is required when not using existing secret" }}{{ end }}
{{- end }}
{{- $webhook := $operator.webhook }}
{{- if and (include "dynamo.isRestricted" .) (not $operator.rbac.clusterScoped) }}
{{- if include "dynamo.servesWebhooks" . }}
{{- fail "VALIDATION ERROR: webhooks are registered for the whole cluster; with rbac.clusterScoped=false set webhook.enabled=false" }}
{{- end }}
{{- if include "dynamo.reviewsMetrics" . }}
{{- fail "VALIDATION ERROR: authorizing readers of metrics needs a cluster-wide permission; with rbac.clusterScoped=false set metricsService.enabled=false, or metricsService.access=anybody and networkPolicy.metricsFrom" }}
{{- end }}
{{- end }}
{{- if and (include "dynamo.servesWebhooks" .) (eq "external" (include "dynamo.certificates" .)) (not $webhook.caBundle) }}
{{- fail "VALIDATION ERROR: webhook.certificateSecret.external requires webhook.caBundle, the CA of that certificate" }}
{{- end }}
{{- with $webhook.clientCA }}
{{- if and .commonName (not .configMap) }}
{{- fail "VALIDATION ERROR: webhook.clientCA.commonName requires webhook.clientCA.configMap, the CA of that client certificate" }}
{{- end }}
{{- end }}
{{- $legacy := $operator.legacyKinds }}
{{- if and $legacy.enabled $legacy.buildkitd.enabled (not (and $legacy.buildkitd.tls.secret $legacy.buildkitd.tls.clientSecret)) }}
{{- fail "VALIDATION ERROR: legacyKinds.buildkitd.enabled requires legacyKinds.buildkitd.tls.secret and tls.clientSecret, the certificates of the daemon and of its clients (docs/reference/legacy.md). To build without a daemon set legacyKinds.settings.BENTO_IMAGE_BUILD_ENGINE=buildkit-rootless instead" }}
{{- end }}
{{- if and $operator.dynamo.istio.enabled (not $operator.dynamo.istio.gateway) }}
{{- fail "VALIDATION ERROR: dynamo.istio.enabled requires dynamo.istio.gateway" }}
{{- end }}
{{- end }}
