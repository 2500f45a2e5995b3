"""The events that are reported: each once, when something changes between two statuses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hudi_operator.api.status import CONDITION_LENGTH_MAX, Condition, HudiTableStatus, RunStatus
from hudi_operator.api.words import one_line
from hudi_operator.plan import index
from hudi_operator.plan.effects import Emit, EventType
from hudi_operator.plan.schedule.runs import DONE
from hudi_operator.plan.status import bootstrapped, callbacks, versions
from hudi_operator.plan.status.conditions import AT_RISK, FRESH, LATE, METADATA_TABLE, PARTITION_GONE


def of_table(before: HudiTableStatus, after: HudiTableStatus) -> list[Emit]:
    """Everything that is new in the status of a HudiTable."""
    phases, old, new = {run.name: run.phase for run in before.runs}, before.conditions, after.conditions
    found = changes(phases, reversed(after.runs), old, new)
    for each in (_switched_off, _at_risk, _late, bootstrapped.news, versions.news, callbacks.news):
        found += each(old, new)
    return found + index.news(before.index, after.index)


def changes(
    phases: Mapping[str, str], runs: Iterable[RunStatus], before: Iterable[Condition], after: Iterable[Condition]
) -> list[Emit]:
    """Events of runs, oldest first, whose phase was another (`phases` by name), and of a new
    standstill."""
    events = []
    for run in runs:
        if phases.get(run.name) == run.phase:
            continue
        # Texts of files and stores are in it, and terminals obey control characters.
        said = one_line(f"{run.work}: {run.message or run.name}", CONDITION_LENGTH_MAX)
        if run.phase == "Running":
            events.append(Emit(EventType.NORMAL, "Started", f"{run.work}: attempt {run.attempt} as {run.name}"))
        elif run.phase in DONE:
            events.append(Emit(EventType.NORMAL, run.phase, said))
        else:
            events.append(Emit(EventType.WARNING, run.reason or "Failed", said))
    messages = {emit.message for emit in events}
    old = {c.type: (c.reason, c.message) for c in before}
    for condition in after:
        new = (condition.reason, condition.message)
        if condition.type == "Stalled" and old.get("Stalled") != new and not any(new[1] in m for m in messages):
            events.append(Emit(EventType.WARNING, *new))
    return events


def _switched_off(before: Iterable[Condition], after: Iterable[Condition]) -> list[Emit]:
    """An event where the metadata table, or a partition of it alone, is gone since the last
    status."""
    old = next((c for c in before if c.type == METADATA_TABLE), None)
    new = next((c for c in after if c.type == METADATA_TABLE), None)
    if new is None:
        return []
    if new.status == "False" and (old is None or old.status != "False"):
        return [Emit(EventType.WARNING, "MetadataTableSwitchedOff", new.message)]
    if new.reason == PARTITION_GONE and (old is None or old.reason != PARTITION_GONE):
        return [Emit(EventType.WARNING, "MetadataPartitionDropped", new.message)]
    return []


def _at_risk(before: Iterable[Condition], after: Iterable[Condition]) -> list[Emit]:
    """An event where messages that wait have come to be at risk since the last status."""
    known = any(c.type == AT_RISK and c.status == "True" for c in before)
    found = [c for c in after if c.type == AT_RISK and c.status == "True"]
    return [] if known else [Emit(EventType.WARNING, c.reason, c.message) for c in found]


def _late(before: Iterable[Condition], after: Iterable[Condition]) -> list[Emit]:
    """An event where something has come to wait for longer than `freshness`, and where nothing does
    any more. What only waits for the next run is none."""
    old = next((c.reason for c in before if c.type == FRESH and c.reason in LATE), None)
    new = next((c for c in after if c.type == FRESH), None)
    if new is None or new.reason == old:
        return []
    if new.reason in LATE:
        return [Emit(EventType.WARNING, new.reason, new.message)]
    return [Emit(EventType.NORMAL, new.reason, new.message)] if old is not None and new.status == "True" else []
