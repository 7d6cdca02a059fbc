{{/* Rules for objects in the namespaces that are watched. */}}
{{- define "scalable-topics.namespacedRules" -}}
- apiGroups: [scalabletopics.io]
  resources: [scalabletopicconnections, scalabletopics, segmentautoscalepolicies, scalabletopicsubscriptions, segmentoperations]
  verbs: [get, list, watch]
# Finalizers alone: specs are never written.
- apiGroups: [scalabletopics.io]
  resources: [scalabletopics]
  verbs: [patch]
- apiGroups: [scalabletopics.io]
  resources:
    - scalabletopicconnections/status
    - scalabletopics/status
    - segmentautoscalepolicies/status
    - scalabletopicsubscriptions/status
    - segmentoperations/status
  verbs: [patch]
- apiGroups: [scalabletopics.io]
  resources: [segmentoperations]
  verbs: [delete]
# Ordered consumers that register make one; it goes with a subscription that somebody asks to delete.
- apiGroups: [scalabletopics.io]
  resources: [scalabletopicsubscriptions]
  verbs: [create, delete]
# What connections prove themselves with, by names that they give.
- apiGroups: [""]
  resources: [secrets]
  verbs: [get]
- apiGroups: [""]
  resources: [events]
  verbs: [create]
{{- if or (ne (include "scalable-topics.choice" .Values.loadPipeline.runner) "Off") .Values.loadPipeline.sparkApplications }}
# One pipeline a connection.
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [get, create, update]
{{- end }}
{{- if .Values.loadPipeline.sparkApplications }}
- apiGroups: [sparkoperator.k8s.io, spark.apache.org]
  resources: [sparkapplications]
  verbs: [get, create, patch, delete]
- apiGroups: [""]
  resources: [configmaps]
  verbs: [get, create, patch, delete]
{{- end }}
{{- end -}}
