{{- /*
The version in which a kind is stored. Arguments: `list ROOT CRD`. Without a value, that of the CRD in the cluster: an operator of an older
release may run there, which reads no other. `helm template` and GitOps tools do not query a cluster, so they need the value at an upgrade.
*/ -}}
{{- define "dynamo-crds.stored" -}}
{{- $conversion := (index . 0).Values.conversion }}
{{- if and $conversion.enabled (semverCompare "<1.30-0" (index . 0).Capabilities.KubeVersion.Version) }}
{{- fail "VALIDATION ERROR: conversion.enabled requires Kubernetes 1.30, because rules of v1beta1 do: set it to false" }}
{{- end }}
{{- $stored := $conversion.storedVersion }}
{{- if not $stored }}
{{- $live := lookup "apiextensions.k8s.io/v1" "CustomResourceDefinition" "" (index . 1) }}
{{- range ($live.spec | default dict).versions }}
{{- if .storage }}{{ $stored = .name }}{{ end }}
{{- end }}
{{- end }}
{{- $stored | default (ternary "v1beta1" "v1alpha1" $conversion.enabled) }}
{{- end }}
