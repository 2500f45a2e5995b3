{{- define "hudi-operator.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "hudi-operator.fullname" -}}
{{- $name := include "hudi-operator.name" . -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "hudi-operator.selector" -}}
app.kubernetes.io/name: {{ include "hudi-operator.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "hudi-operator.labels" -}}
{{ include "hudi-operator.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "hudi-operator.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "hudi-operator.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{/* repository@digest or repository:tag; takes (dict "image" … "root" $) */}}
{{- define "hudi-operator.image" -}}
{{- if .image.digest -}}
{{- printf "%s@%s" .image.repository .image.digest -}}
{{- else -}}
{{- printf "%s:%s" .image.repository (default .root.Chart.AppVersion .image.tag) -}}
{{- end -}}
{{- end -}}

{{/* JSON list of the namespaces in which the accounts of jobs are made. */}}
{{- define "hudi-operator.jobNamespaces" -}}
{{- default .Values.watchNamespaces .Values.jobs.namespaces | toJson -}}
{{- end -}}

{{/* What is said of the pods of jobs, as JSON; nothing if nothing is. */}}
{{- define "hudi-operator.jobPods" -}}
{{- if or .Values.jobs.pods .Values.jobs.podsByNamespace .Values.jobs.maxAttempts -}}
{{- $said := dict "pods" .Values.jobs.pods "podsByNamespace" .Values.jobs.podsByNamespace -}}
{{- with .Values.jobs.maxAttempts }}{{ $_ := set $said "maxAttempts" (int .) }}{{ end -}}
{{- toJson $said -}}
{{- end -}}
{{- end -}}

{{- define "hudi-operator.jobAccount" -}}
{{- if .Values.jobs.serviceAccount.name -}}
{{- .Values.jobs.serviceAccount.name -}}
{{- else if and .Values.jobs.serviceAccount.create (include "hudi-operator.jobNamespaces" . | fromJsonArray) -}}
hudi-job
{{- else -}}
default
{{- end -}}
{{- end -}}

{{/* What the operator may do where tables lie. Each verb is one that it uses: tests/charts/test_life.py. */}}
{{- define "hudi-operator.rules" -}}
- apiGroups: [hudi.lakeops.dev]
  resources: [huditables, huditablesets, tableservices]
  verbs: [get, list, watch]
- apiGroups: [hudi.lakeops.dev] # the finalizer of a table whose files go with it
  resources: [huditables]
  verbs: [patch]
- apiGroups: [hudi.lakeops.dev]
  resources: [huditables/status, huditablesets/status, tableservices/status]
  verbs: [patch]
{{- if .Values.rbac.tableSets }}
- apiGroups: [hudi.lakeops.dev] # the tables of a HudiTableSet
  resources: [huditables]
  verbs: [create, update, delete]
{{- end }}
- apiGroups: [batch]
  resources: [jobs]
  verbs: [get, list, watch, create, patch]
- apiGroups: [""]
  resources: [pods]
  verbs: [list, watch]
- apiGroups: [""]
  resources: [secrets]
  {{- with .Values.rbac.secretNames }}
  resourceNames: {{ toJson . }}
  {{- end }}
  verbs: [get]
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [get, create, patch]
{{- range $group, $launcher := dict "sparkoperator.k8s.io" .Values.launchers.sparkOperator "spark.apache.org" .Values.launchers.apacheSparkOperator }}
{{- if $launcher.enabled }}
- apiGroups: [{{ $group }}]
  resources: [sparkapplications]
  verbs: [get, list, watch, create, delete]
{{- end }}
{{- end }}
{{- end -}}
