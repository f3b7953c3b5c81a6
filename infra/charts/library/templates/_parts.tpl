{{/* Parts of objects. Each takes (dict "root" $ "name" NAME) and the keys that its comment names. */}}

{{- define "statecast.selector" -}}
app.kubernetes.io/name: {{ .name | quote }}
{{- end }}

{{- define "statecast.labels" -}}
{{ include "statecast.selector" . }}
app.kubernetes.io/part-of: statecast
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
{{- end }}

{{/* The labels of a pod. Policies admit pods by the last two, `statecast/kafka` and `statecast/query`. */}}
{{- define "statecast.podLabels" -}}
{{ include "statecast.labels" . }}
{{- if not .withoutKafka }}
statecast/kafka: client
{{- end }}
{{- if .asksQuery }}
statecast/query: client
{{- end }}
{{- end }}

{{- define "statecast.metadata" -}}
{{- if not .root.Values.global }}
{{- fail "global: null removes the values that all charts need; leave it out, or set those that differ" }}
{{- end }}
name: {{ .object | default .name | quote }}
namespace: {{ .root.Release.Namespace | quote }}
labels: {{- include "statecast.labels" . | nindent 2 }}
{{- end }}

{{/* The name of this project's image `image`, with the chart's own version as its tag. */}}
{{- define "statecast.image" -}}
{{- .root.Values.image | default (printf "%sstatecast/%s:%s" .root.Values.global.imagePrefix .image .root.Chart.AppVersion) }}
{{- end }}

{{/* Settings of all pods. They run as the user `user`; `spread` places pods of one name in several zones and on several nodes. */}}
{{- define "statecast.pod" -}}
automountServiceAccountToken: {{ .account | default false }}
# The services would read variables that are named after Services as settings.
enableServiceLinks: false
{{- with .root.Values.global.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.global.kafka.namespace }}
dnsConfig:
  searches: [{{ . }}.svc.{{ $.root.Values.global.clusterDomain }}]
{{- end }}
{{- with merge (deepCopy (.root.Values.scheduling | default dict)) .root.Values.global.scheduling }}
{{ toYaml . }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: {{ .user | default 10001 }}
  fsGroup: {{ .user | default 10001 }}
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: {type: RuntimeDefault}
  {{- with .sysctls }}
  sysctls: {{- toYaml . | nindent 4 }}
  {{- end }}
{{- if .spread }}
topologySpreadConstraints:
  {{- range list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
  - maxSkew: 1
    topologyKey: {{ . }}
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels: {{- include "statecast.selector" $ | nindent 8 }}
  {{- end }}
{{- end }}
{{- end }}

{{- define "statecast.containerSecurity" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end }}

{{/* Probes that check only whether the process answers, on the port `port`. */}}
{{- define "statecast.aliveProbes" -}}
startupProbe:
  httpGet: {path: /healthz, port: {{ .port }}}
  periodSeconds: 2
  failureThreshold: 60
livenessProbe:
  httpGet: {path: /healthz, port: {{ .port }}}
  periodSeconds: 10
  timeoutSeconds: 5
{{- end }}

{{/* Variables: those for Kafka, those of the template `own`, and those of the value `env`. `prefix` is the service's own. */}}
{{- define "statecast.env" -}}
{{- $set := include "statecast.setVariables" . }}
{{- $names := list }}
{{- range fromYamlArray $set }}
{{- $names = append $names .name }}
{{- end }}
{{- $set }}
{{- range $name, $value := .root.Values.env }}
{{- /* Services read the names of settings without regard to case. */}}
{{- if has (upper $name) $names }}
{{- fail (printf "env: %s is set by other values of the chart" $name) }}
{{- end }}
{{- $names = append $names (upper $name) }}
- {name: {{ $name }}, value: {{ $value | quote }}}
{{- end }}
{{- end }}

{{/* Returns the addresses `value`. Fails unless each is HOST:PORT; `name` is the value's in the message. */}}
{{- define "statecast.addresses" -}}
{{- range splitList "," .value }}
{{- $port := regexFind ":[0-9]{1,5}$" . | trimPrefix ":" | int }}
{{- if not (and (regexMatch "^ *([A-Za-z0-9._-]+|\\[[0-9A-Fa-f:.]+\\]):[0-9]+$" .) (ge $port 1) (le $port 65535)) }}
{{- fail (printf "%s: %q must be HOST:PORT, or several with commas, and a port is 1 to 65535" $.name $.value) }}
{{- end }}
{{- end }}
{{- .value }}
{{- end }}

{{- define "statecast.bootstrap" -}}
{{- include "statecast.addresses" (dict "name" "global.kafka.bootstrap" "value" .Values.global.kafka.bootstrap) }}
{{- end }}

{{/* Returns the text `value`. Fails if it has one line, such as the name of a file; `name` is the value's in the message. */}}
{{- define "statecast.text" -}}
{{- if not (contains "\n" .value) }}
{{- fail (printf "%s: give the text of a file, by --set-file %s=FILE, and not %q" .name .name .value) }}
{{- end }}
{{- .value }}
{{- end }}

{{/* The variable that allows plain text. Without the value `allowPlaintext`, fails unless `env` has the variables `tls`. */}}
{{- define "statecast.plaintext" }}
{{- if .root.Values.allowPlaintext }}
- {name: {{ .prefix }}ALLOW_PLAINTEXT, value: "true"}
{{- else }}
{{- range .tls }}
{{- if not (hasKey ($.root.Values.env | default dict) .) }}
{{- fail (printf "allowPlaintext: false needs %s in env, with the path of a file in mounts" .) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- define "statecast.setVariables" -}}
- {name: {{ .prefix }}KAFKA_BOOTSTRAP, value: {{ include "statecast.bootstrap" .root | quote }}}
{{- if .root.Values.kafkaSecret }}
- {name: {{ .prefix }}KAFKA_PROPERTIES, value: /etc/statecast/kafka/client.properties}
{{- end }}
{{- with .own }}
{{- include . $ }}
{{- end }}
{{- end }}

{{- define "statecast.volumeMounts" -}}
- {name: tmp, mountPath: /tmp}
{{- if .root.Values.kafkaSecret }}
- {name: kafka-client, mountPath: /etc/statecast/kafka, readOnly: true}
{{- end }}
{{- range .root.Values.mounts }}
- {name: mount-{{ .name }}, mountPath: {{ .path }}, readOnly: true}
{{- end }}
{{- end }}

{{- define "statecast.volumes" -}}
- name: tmp
  emptyDir: {}
{{- with .root.Values.kafkaSecret }}
- name: kafka-client
  secret: {secretName: {{ . | quote }}}
{{- end }}
{{- range .root.Values.mounts }}
- name: mount-{{ .name }}
  {{- if .secret }}
  secret: {secretName: {{ .secret | quote }}}
  {{- else }}
  configMap: {name: {{ .configMap | quote }}}
  {{- end }}
{{- end }}
{{- end }}

{{- define "statecast.claim" -}}
volumeClaimTemplates:
  - metadata: {name: {{ .volume }}}
    spec:
      accessModes: [ReadWriteOnce]
      {{- with .root.Values.storage.class }}
      storageClassName: {{ . | quote }}
      {{- end }}
      resources:
        requests: {storage: {{ .root.Values.storage.size }}}
{{- end }}

{{/* The ports of the brokers for a policy: `global.kafka.port`, and those of the addresses. */}}
{{- define "statecast.kafkaPorts" -}}
{{- $ports := list (int .Values.global.kafka.port) }}
{{- range splitList "," (include "statecast.bootstrap" .) }}
{{- $ports = append $ports (regexFind "[0-9]+$" . | int) }}
{{- end }}
{{- range uniq $ports }}
- {port: {{ . }}}
{{- end }}
{{- end }}

{{/* Fails if a rule of a policy names a port of addresses, which have numbers only; `name` is the value's in the message. */}}
{{- define "statecast.namedPorts" -}}
{{- range $peer := .peers }}
{{- range $.ports }}
{{- if and $peer.ipBlock (kindIs "string" .) }}
{{- fail (printf "%s: %q is the name of a port, and addresses of an ipBlock need its number" $.name .) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* The brokers as peers of a policy, with their namespace if it is another one. */}}
{{- define "statecast.kafkaPeers" -}}
{{- $namespace := .Values.global.kafka.namespace }}
{{- range .Values.global.kafka.peers }}
{{- $peer := . }}
{{- if and $namespace .podSelector }}
{{- $peer = merge (dict "namespaceSelector" (dict "matchLabels" (dict "kubernetes.io/metadata.name" $namespace))) . }}
{{- end }}
{{ list $peer | toYaml }}
{{- end }}
{{- end }}
