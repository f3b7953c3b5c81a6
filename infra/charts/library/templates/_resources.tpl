{{/* Quantities of Kubernetes, which the schema has checked one by one, and what must fit together. */}}

{{/* Returns the number of a quantity, such as 0.5, 500m, 1Gi or 1e9. */}}
{{- define "statecast.number" -}}
{{- $text := toString . }}
{{- $number := regexFind "^[0-9.]+([eE][+-]?[0-9]+)?" $text }}
{{- $units := dict "" 1.0 "m" 0.001 "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "P" 1e15 "E" 1e18 }}
{{- $binary := dict "Ki" 1024.0 "Mi" 1048576.0 "Gi" 1073741824.0 "Ti" 1099511627776.0 "Pi" 1125899906842624.0 "Ei" 1152921504606846976.0 }}
{{- mulf (float64 $number) (get (merge $binary $units) (trimPrefix $number $text)) }}
{{- end }}

{{/* Returns requests and limits. Fails if Kubernetes would refuse their pods; `name` is the value's in the message. */}}
{{- define "statecast.resources" -}}
{{- $limits := .value.limits | default dict }}
{{- range $resource, $request := .value.requests | default dict }}
{{- $limit := get $limits $resource | default "" }}
{{- $asked := include "statecast.number" $request | float64 }}
{{- if or (contains "/" $resource) (hasPrefix "hugepages-" $resource) }}
{{- if ne $asked (include "statecast.number" ($limit | default 0) | float64) }}
{{- fail (printf "%s: requests.%s is %v, and limits.%s must be the same" $.name $resource $request $resource) }}
{{- end }}
{{- else if and $limit (gt $asked (include "statecast.number" $limit | float64)) }}
{{- fail (printf "%s: requests.%s is %v, above limits.%s of %v" $.name $resource $request $resource $limit) }}
{{- end }}
{{- end }}
{{- toYaml .value }}
{{- end }}

{{/* Returns a JVM's heap. Fails if it leaves nothing of the limit of memory in `resources`, which then ends the process. */}}
{{- define "statecast.heap" -}}
{{- $limit := dig "limits" "memory" "" .resources }}
{{- $heap := include "statecast.number" (printf "%si" (upper .heap)) | float64 }}
{{- if and $limit (ge $heap (include "statecast.number" $limit | float64)) }}
{{- fail (printf "%s: a heap of %s leaves nothing of %s.limits.memory, which is %v" .name .heap .beside $limit) }}
{{- end }}
{{- .heap }}
{{- end }}

{{/*
Returns the seconds that a pod has to stop. `grace` is enough for the defaults of the settings `drain`, which are listed by name
without the prefix, in seconds or with `unit`. Higher settings in `env` prolong it.
*/}}
{{- define "statecast.grace" -}}
{{- $more := 0.0 }}
{{- range $name, $value := .root.Values.env }}
{{- with get $.drain (upper $name | trimPrefix $.prefix) }}
{{- $more = addf $more (mulf (subf (float64 $value) .) ($.unit | default 1.0)) }}
{{- end }}
{{- end }}
{{- add .grace (max 0 (ceil $more | int)) }}
{{- end }}
