{{- /* Whether one of two paths lies in the other, or they are the same: "yes", or nothing. What is
       empty is the root. Drivers write paths with : and # in them too: fs-1:/private. */ -}}
{{- define "overlap" -}}
{{- $one := regexReplaceAll "[/:#]+" .one "/" | trimAll "/" -}}
{{- $other := regexReplaceAll "[/:#]+" .other "/" | trimAll "/" -}}
{{- if or (not $one) (not $other) -}}
yes
{{- else if or (hasPrefix (printf "%s/" $one) (printf "%s/" $other)) (hasPrefix (printf "%s/" $other) (printf "%s/" $one)) -}}
yes
{{- end -}}
{{- end -}}

{{- /* Why nobody can say where a source is; nothing if one can. */ -}}
{{- define "source.problem" -}}
{{- if not (or .nfs .csi) -}}
names no volume: write {nfs: ...} or {csi: ...}
{{- else if .csi -}}
{{- range $value := append (.csi.volumeAttributes | default dict | values) .csi.volumeHandle -}}
{{- if regexMatch "(^|[/:#])[.][.]?([/:#]|$)" $value -}}
{{- printf "has %s in it: write the path without . and .. so that it says where it is" (quote $value) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* The export that a source is, as JSON with server and path; nothing if it is another. */ -}}
{{- define "source.export" -}}
{{- $csi := .csi | default dict -}}
{{- if .nfs -}}
{{- dict "server" .nfs.server "path" .nfs.path | toJson -}}
{{- else if eq ($csi.driver | default "") "nfs.csi.k8s.io" -}}
{{- $more := $csi.volumeAttributes | default dict -}}
{{- $path := printf "%s/%s" ($more.share | default "") ($more.subDir | default $more.subdir | default "") -}}
{{- dict "server" ($more.server | default "") "path" $path | toJson -}}
{{- end -}}
{{- end -}}

{{- /* Whether two volumes of one driver are one, or one lies in the other, by what the driver calls
       them or by their attributes: all the same, but for a path that lies in the other's. */ -}}
{{- define "csi.overlap" -}}
{{- if eq .one.driver .other.driver -}}
{{- $one := .one.volumeAttributes | default dict -}}
{{- $other := .other.volumeAttributes | default dict -}}
{{- $paths := false -}}
{{- $apart := false -}}
{{- range $name := concat (keys $one) (keys $other) -}}
{{- $values := dict "one" (get $one $name) "other" (get $other $name) -}}
{{- $paths = or $paths (contains "/" $values.one) (contains "/" $values.other) -}}
{{- $apart = or $apart (not (include "overlap" $values)) -}}
{{- end -}}
{{- if dict "one" .one.volumeHandle "other" .other.volumeHandle | include "overlap" -}}
yes
{{- else if and $paths (not $apart) -}}
yes
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* Whether a file of one source can be a file of the other. */ -}}
{{- define "sources.overlap" -}}
{{- $one := include "source.export" .one | fromJson -}}
{{- $other := include "source.export" .other | fromJson -}}
{{- if and $one.server $other.server -}}
{{- if eq ($one.server | lower | trimSuffix ".") ($other.server | lower | trimSuffix ".") -}}
{{- dict "one" $one.path "other" $other.path | include "overlap" -}}
{{- end -}}
{{- end -}}
{{- if and .one.csi .other.csi -}}
{{- dict "one" .one.csi "other" .other.csi | include "csi.overlap" -}}
{{- end -}}
{{- end -}}
