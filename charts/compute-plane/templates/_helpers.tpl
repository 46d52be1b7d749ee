{{- /* Labels of every object. */ -}}
{{- define "labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: ai-factory
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "account.namespace" -}}
{{ .Values.plane.account.namespace | default .Release.Namespace }}
{{- end -}}

{{- /* Labels that the factory gives to the pods of a run. */ -}}
{{- define "label.run" -}}ai-factory/run{{- end -}}
{{- define "label.role" -}}ai-factory/role{{- end -}}
{{- define "label.classification" -}}ai-factory/classification{{- end -}}

{{- /* Claims, or directories of nodes (of: claim or host_path), that a run may mount. */ -}}
{{- define "volumes" -}}
{{- $found := list -}}
{{- range $volume := concat (list .tree) (.mounts | default list) -}}
{{- with get ($volume | default dict) $.of -}}{{- $found = append $found . -}}{{- end -}}
{{- end -}}
{{- $found | toJson -}}
{{- end -}}

{{- /* What a queue gets of the nodes: quota, limit (-1 is none) and weight. Where there are GPUs
       they alone are shared out, since what else is left of a node is of no use. */ -}}
{{- define "resources" -}}
{{- $gpus := .nodes.gpus | int64 -}}
{{- $millis := mulf .nodes.cpus 1000 | int64 -}}
{{- $quota := .quota | int64 -}}
{{- $limit := .limit | int64 -}}
{{- $limited := ge $limit 0 -}}
gpu:
  quota: {{ mul $quota $gpus }}
  limit: {{ if and $limited $gpus }}{{ mul $limit $gpus }}{{ else }}-1{{ end }}
  overQuotaWeight: {{ .weight | int64 }}
cpu:
  quota: {{ if and $quota $gpus }}-1{{ else }}{{ mul $quota $millis }}{{ end }}
  limit: {{ if and $limited (not $gpus) }}{{ mul $limit $millis }}{{ else }}-1{{ end }}
  overQuotaWeight: {{ .weight | int64 }}
memory:
  quota: {{ if $quota }}-1{{ else }}0{{ end }}
  limit: -1
  overQuotaWeight: {{ .weight | int64 }}
{{- end -}}
