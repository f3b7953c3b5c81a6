{{/* Whole objects. Each takes (dict "root" $ "name" NAME) and what it says itself. */}}

{{/* A headless Service: its name resolves to the addresses of all pods. `ports` are names and numbers; `notReady` adds pods that are not ready. */}}
{{- define "statecast.service" -}}
---
apiVersion: v1
kind: Service
metadata: {{- include "statecast.metadata" . | nindent 2 }}
spec:
  clusterIP: None
  {{- if .notReady }}
  publishNotReadyAddresses: true
  {{- end }}
  selector: {{- include "statecast.selector" . | nindent 4 }}
  ports:
    {{- range $name, $port := .ports }}
    - {name: {{ $name }}, port: {{ $port }}, targetPort: {{ $name }}}
    {{- end }}
{{ end }}

{{/* One pod of the workload may be away at a time. */}}
{{- define "statecast.budget" -}}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {{- include "statecast.metadata" . | nindent 2 }}
spec:
  maxUnavailable: 1
  selector:
    matchLabels: {{- include "statecast.selector" . | nindent 6 }}
{{ end }}

{{/*
The number of pods of a StatefulSet. With an autoscaler it is the number that there is: without one, Helm would take away the
last one that it has written, and Kubernetes would take 1 for it.
*/}}
{{- define "statecast.replicas" -}}
{{- if not .root.Values.autoscaling.enabled }}
replicas: {{ .root.Values.replicas }}
{{- else }}
{{- with lookup "apps/v1" "StatefulSet" .root.Release.Namespace .name }}
replicas: {{ .spec.replicas }}
{{- end }}
{{- end }}
{{- end }}

{{/* Pods on `metric`, of which each is to have `target`; values are those of `autoscaling`. */}}
{{- define "statecast.autoscaler" -}}
{{- with .root.Values.autoscaling }}
{{- if .enabled }}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {{- include "statecast.metadata" $ | nindent 2 }}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: StatefulSet, name: {{ $.name }}}
  minReplicas: {{ .min }}
  maxReplicas: {{ required "autoscaling.max must not be below autoscaling.min" (ternary .max nil (ge (int .max) (int .min))) }}
  metrics:
    - type: Pods
      pods:
        metric: {name: {{ $.metric }}}
        target: {type: AverageValue, averageValue: {{ $.target | quote }}}
  # Each step down moves sockets or partitions, so it is rare and small.
  behavior:
    scaleDown:
      stabilizationWindowSeconds: 1800
      policies: [{type: Pods, value: 1, periodSeconds: 300}]
{{ end }}
{{- end }}
{{- end }}

{{- define "statecast.podMonitor" -}}
{{- if .root.Values.global.podMonitors }}
---
apiVersion: monitoring.coreos.com/v1
kind: PodMonitor
metadata: {{- include "statecast.metadata" . | nindent 2 }}
spec:
  selector:
    matchLabels: {{- include "statecast.selector" . | nindent 6 }}
  podMetricsEndpoints:
    - port: {{ .port }}
{{ end }}
{{- end }}

{{/*
Who reaches the pods, or with `everyPod` all pods, and whom they reach: names, Kafka unless `withoutKafka`, and the rules of `egress`.
`ingress` are rules, too; scrapers reach the port `metrics`.
*/}}
{{- define "statecast.policy" -}}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {{- include "statecast.metadata" . | nindent 2 }}
spec:
  podSelector: {{- if .everyPod }} {}{{ else }}
    matchLabels: {{- include "statecast.selector" . | nindent 6 }}
  {{- end }}
  policyTypes: [Ingress, Egress]
  egress:
    - to:
        - namespaceSelector:
            matchLabels: {kubernetes.io/metadata.name: kube-system}
      ports:
        - {port: 53, protocol: UDP}
        - {port: 53, protocol: TCP}
    {{- if not .withoutKafka }}
    - to: {{- include "statecast.kafkaPeers" .root | nindent 8 }}
      ports:
        - {port: {{ .root.Values.global.kafka.port }}}
    {{- end }}
    {{- with .egress }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- if or .ingress .metrics }}
  ingress:
    {{- with .ingress }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
    {{- with .metrics }}
    - from:
        - namespaceSelector:
            matchLabels: {kubernetes.io/metadata.name: {{ $.root.Values.global.monitoring }}}
      ports:
        - {port: {{ . }}}
    {{- end }}
  {{- end }}
{{ end }}
