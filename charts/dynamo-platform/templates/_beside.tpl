{{- /* Common parts of the optional servers (NATS, etcd, BuildKit). */ -}}

{{- define "beside.name" -}}
{{- printf "%s-%s" .Release.Name .Chart.Name }}
{{- end }}

{{- define "beside.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{- define "beside.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | quote }}
{{ include "beside.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
app.kubernetes.io/part-of: dynamo-platform
{{- end }}

{{- /* Scheduling of a server's pods, and the `restricted` pod security standard. */ -}}
{{- define "beside.pod" -}}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  {{- include "dynamo.podSecurity" . | nindent 2 }}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "beside.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{- /* The PVC of a server. Arguments: `list ROOT SIZE CLASS`. */ -}}
{{- define "beside.claims" -}}
volumeClaimTemplates:
  - metadata:
      name: data
      labels:
        {{- include "beside.selector" (index . 0) | nindent 8 }}
    spec:
      accessModes: [ReadWriteOnce]
      {{- with index . 2 }}
      storageClassName: {{ . | quote }}
      {{- end }}
      resources:
        requests:
          storage: {{ index . 1 | quote }}
{{- end }}

{{- /* The NetworkPolicy of a server: only the operator and pods of Dynamo in any namespace may connect. Arguments: `list ROOT PORT`. */ -}}
{{- define "beside.networkPolicy" -}}
{{- $root := index . 0 }}
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: {{ include "beside.name" $root | quote }}
  namespace: {{ $root.Release.Namespace | quote }}
  labels:
    {{- include "beside.labels" $root | nindent 4 }}
spec:
  podSelector:
    matchLabels:
      {{- include "beside.selector" $root | nindent 6 }}
  policyTypes: [Ingress, Egress]
  ingress:
    - ports:
        - port: {{ index . 1 }}
          protocol: TCP
      from:
        - namespaceSelector:
            {{- toYaml $root.Values.networkPolicy.namespaceSelector | nindent 12 }}
          podSelector:
            matchExpressions:
              - key: nvidia.com/dynamo-component
                operator: Exists
        - podSelector:
            matchLabels:
              control-plane: controller-manager
              app.kubernetes.io/instance: {{ $root.Release.Name | quote }}
        {{- with $root.Values.networkPolicy.extraFrom }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
  egress: []
{{- end }}
