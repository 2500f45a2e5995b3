-- Health of HudiTable, HudiTableSet and TableService for Argo CD, from the conditions of kstatus. docs/how-to/argo-cd.md says how to make it known.
-- A run that is at work is no reason to wait: a table that takes in files all day is Healthy as long as it can be read.
local status = obj.status or {}
if status.conditions == nil then
  return {status = "Progressing", message = "waits for the operator"}
end
if status.observedGeneration ~= obj.metadata.generation then
  return {status = "Progressing", message = "the operator has not seen this generation yet"}
end
if obj.spec.suspend then
  return {status = "Suspended", message = "suspend is set"}
end

local found = {}
for _, condition in ipairs(status.conditions) do
  found[condition.type] = condition
end
local function is(kind, wanted)
  return found[kind] ~= nil and found[kind].status == wanted
end

if is("Stalled", "True") then
  return {status = "Degraded", message = found.Stalled.message}
end
if status.phase == "Planned" then
  return {status = "Suspended", message = "a plan waits for approval"}
end
if is("Ready", "True") then
  return {status = "Healthy", message = found.Ready.message}
end
if is("Reconciling", "True") then
  return {status = "Progressing", message = found.Reconciling.message}
end
if is("Ready", "False") then
  return {status = "Degraded", message = found.Ready.message}
end
return {status = "Progressing", message = found.Ready and found.Ready.message or "waits for the operator"}
