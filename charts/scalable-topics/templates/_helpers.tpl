{{- define "scalable-topics.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "scalable-topics.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- $name := include "scalable-topics.name" . -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "scalable-topics.selectorLabels" -}}
app.kubernetes.io/name: {{ include "scalable-topics.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "scalable-topics.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{ include "scalable-topics.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: scalable-topics
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Of the operator's pods, as selectors see them: those of hooks are not among them. */}}
{{- define "scalable-topics.operatorLabels" -}}
{{ include "scalable-topics.selectorLabels" . }}
app.kubernetes.io/component: operator
{{- end -}}

{{- define "scalable-topics.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "scalable-topics.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- required "serviceAccount.name is needed where serviceAccount.create is false" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{/* An image by digest, else by tag. Takes a list of the image's values and the root. */}}
{{- define "scalable-topics.image" -}}
{{- $image := index . 0 -}}
{{- $root := index . 1 -}}
{{- if $image.digest -}}
{{- printf "%s@%s" $image.repository $image.digest -}}
{{- else -}}
{{- printf "%s:%s" $image.repository (default $root.Chart.AppVersion $image.tag) -}}
{{- end -}}
{{- end -}}

{{- define "scalable-topics.gatewaySecret" -}}
{{- default (printf "%s-gateway-tls" (include "scalable-topics.fullname" .)) .Values.gateway.tls.existingSecret -}}
{{- end -}}

{{/* What a container of the `restricted` level is. */}}
{{- define "scalable-topics.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{/* What a pod of the `restricted` level is. */}}
{{- define "scalable-topics.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{/* Where pods of the operator's image run: the operator's own and those of hooks. */}}
{{- define "scalable-topics.placement" -}}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* A choice of which one is Off, which YAML takes for false where it is not quoted. */}}
{{- define "scalable-topics.choice" -}}
{{- ternary . "Off" (kindIs "string" .) -}}
{{- end -}}

{{/* What every pod of ours needs of a cluster: names and the API server, which no selector can name. */}}
{{- define "scalable-topics.clusterEgress" -}}
- ports:
    - {port: 53, protocol: UDP}
    - {port: 53, protocol: TCP}
- ports:
    {{- range .Values.networkPolicy.apiServerPorts }}
    - port: {{ . }}
    {{- end }}
{{- end }}
