{{/* Returns a schedule. Fails if Kubernetes would refuse one of its five fields, which the schema has counted. */}}
{{- define "jobs.schedule" -}}
{{- $minutes := dict "name" "minute" "min" 0 "max" 59 }}
{{- $hours := dict "name" "hour" "min" 0 "max" 23 }}
{{- $days := dict "name" "day of the month" "min" 1 "max" 31 }}
{{- $months := dict "name" "month" "min" 1 "max" 12 "names" "|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec" }}
{{- $weekdays := dict "name" "day of the week" "min" 0 "max" 6 "names" "|sun|mon|tue|wed|thu|fri|sat" }}
{{- $fields := splitList " " . }}
{{- range $index, $field := list $minutes $hours $days $months $weekdays }}
{{- $name := printf "([0-9]{1,2}%s)" ($field.names | default "") }}
{{- $item := printf "^(\\*|%s(-%s)?)(/[1-9][0-9]{0,2})?$" $name $name }}
{{- $text := index $fields $index }}
{{- range splitList "," (lower $text) }}
{{- $good := regexMatch $item . }}
{{- range regexFindAll "[0-9]+" (regexReplaceAll "/.*" . "") -1 }}
{{- $good = and $good (ge (atoi .) $field.min) (le (atoi .) $field.max) }}
{{- end }}
{{- if not $good }}
{{- fail (printf "schedule: the %s is %q, and takes %d to %d, ranges such as 1-5, steps such as */5, and several with commas" $field.name $text $field.min $field.max) }}
{{- end }}
{{- end }}
{{- end }}
{{- . }}
{{- end }}
