{{/* Whole objects. Each takes (dict "root" $ "name" NAME) and the keys that its comment names. */}}

{{/*
Makes a headless Service: its name resolves to the addresses of all pods. `ports` maps names to numbers; `notReady` includes
pods that are not ready.
*/}}
{{- define "statecast.service" -}}
---
apiVersion: v1
kind: Service
metadata: {{- include "statecast.metadata" . | nindent 2 }}
spec:
  clusterIP: None
  ipFamilies: [IPv4] # the pods listen on no other address
  {{- if .notReady }}
  publishNotReadyAddresses: true
  {{- end }}
  selector: {{- include "statecast.selector" . | nindent 4 }}
  ports:
    {{- range $name, $port := .ports }}
    - {name: {{ $name }}, port: {{ $port }}, targetPort: {{ $name }}}
    {{- end }}
{{ end }}

{{/* Allows one pod of the workload to be away at a time. */}}
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
Sets the number of pods of a StatefulSet. With an autoscaler it repeats the current number: if it were absent, Helm would remove
the number that it wrote last, and Kubernetes would assume 1.
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

{{/* Scales the pods until each has `target` of `metric` on average, within the bounds of the value `autoscaling`. */}}
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
Restricts the traffic of the pods, or with `everyPod` of all pods. They reach DNS, Kafka unless `withoutKafka` is set, and the peers
in the rules of `egress`. The peers in the rules of `ingress` reach them, and scrapers reach the port `metrics`.
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
    {{- with .root.Values.global.dns }}
    - to: {{- toYaml .peers | nindent 8 }}
      ports:
        - {port: {{ .port }}, protocol: UDP}
        - {port: {{ .port }}, protocol: TCP}
    {{- end }}
    {{- if not .withoutKafka }}
    - to: {{- include "statecast.kafkaPeers" .root | nindent 8 }}
      ports: {{- include "statecast.kafkaPorts" .root | nindent 8 }}
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
            matchLabels: {kubernetes.io/metadata.name: {{ $.root.Values.global.monitoring | quote }}}
      ports:
        - {port: {{ . }}}
    {{- end }}
  {{- end }}
{{ end }}
