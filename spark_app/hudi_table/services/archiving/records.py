"""What the archive keeps of an instant: one entry for each of its timeline files.

Facts (Hudi 0.15.0, golden archives): a compaction's pending states have the action `compaction`,
its completed one `commit`; both pending states of a clean or compaction carry the plan; of a
rollback only the completed state has a payload. Of a write stat 17 fields are kept, numbers that it
lacks as 0; the extra metadata gains `ROLLING_STAT`, empty; a pending write is of operation UNKNOWN.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hudi_table.codec.archive_entries import Entry
from hudi_table.errors import CorruptTableError, HudiError
from hudi_table.model.json_text import parse_json
from hudi_table.model.timeline.commits import CommitMetadata
from hudi_table.model.timeline.instants import Action, Instant, State, format_instant_time
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.instants import local_time
from hudi_table.table.timeline.layout import decode_records
from hudi_table.table.timeline.timeline import Timeline

_TEXTS = ("fileId", "path", "prevCommit", "partitionPath")
_NUMBERS = (
    "numWrites",
    "numDeletes",
    "numUpdateWrites",
    "totalWriteBytes",
    "totalWriteErrors",
    "totalLogRecords",
    "totalUpdatedRecordsCompacted",
    "numInserts",
    "totalLogBlocks",
    "totalCorruptLogBlock",
    "totalRollbackBlocks",
    "fileSizeInBytes",
)
_ROLLING_STAT = "ROLLING_STAT"
_PLANS = {
    Action.CLEAN: "hoodieCleanerPlan",
    Action.COMPACTION: "hoodieCompactionPlan",
    Action.LOG_COMPACTION: "hoodieCompactionPlan",
}
_REPORTS = {
    Action.CLEAN: "hoodieCleanMetadata",
    Action.ROLLBACK: "hoodieRollbackMetadata",
    Action.SAVEPOINT: "hoodieSavePointMetadata",
}
_WRITES = (Action.COMMIT, Action.DELTA_COMMIT)

Bodies = Callable[[str], bytes]
"""Bytes of a timeline file by its name."""


def entry_of(ctx: TableContext, timeline: Timeline, instant: Instant, bodies: Bodies) -> Entry:
    """The entry of one state of an instant. Raises CorruptTableError that names the file."""
    try:
        payload = _payload(timeline, instant, bodies)
    except HudiError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise CorruptTableError(
            f"{instant.file_name} cannot be archived: {error}", base_path=ctx.base_path, path=instant.file_name
        ) from error
    changed = timeline.files[instant.file_name]
    return {
        "commitTime": instant.time,
        "actionType": instant.action.value,
        "actionState": instant.state.name,
        "version": None,
        "stateTransitionTime": format_instant_time(local_time(ctx, changed)),
        **payload,
    }


def completed_entry(entry: Entry, metadata: CommitMetadata | None) -> Entry:
    """The entry of a completed state that leaves an archive of versions 8 and 9, as the archive of
    version 6 has it. `metadata`: of a write."""
    payload = {name: entry[name] for name in _REPORTS.values() if entry.get(name)}
    if metadata is not None and metadata.replaced is None:
        payload = {"hoodieCommitMetadata": _kept(metadata.to_document())}
    elif metadata is not None:
        replaced = {partition: list(ids) for partition, ids in (metadata.replaced or {}).items()}
        kept = _kept(metadata.to_document()) | {"partitionToReplaceFileIds": replaced}
        payload = {"hoodieReplaceCommitMetadata": kept}
    return {
        "commitTime": entry["commitTime"],
        "actionType": entry["actionType"],
        "actionState": entry["actionState"],
        "version": None,
        "stateTransitionTime": entry["completionTime"],
        **payload,
    }


def _payload(timeline: Timeline, instant: Instant, bodies: Bodies) -> dict[str, Any]:
    if instant.action in _WRITES:
        return {"hoodieCommitMetadata": _commit(bodies(instant.file_name))}
    if instant.action is Action.REPLACE_COMMIT:
        return _replace(instant, bodies(instant.file_name))
    names = _REPORTS if instant.completed else _PLANS
    source = instant if instant.completed else instant.with_state(State.REQUESTED)
    if instant.action not in names or source.file_name not in timeline.files:
        return {}
    return _record(names[instant.action], bodies(source.file_name))


def _replace(instant: Instant, data: bytes) -> dict[str, Any]:
    if instant.completed:
        replaced = parse_json(data).get("partitionToReplaceFileIds") or {} if data.strip() else {}
        return {"hoodieReplaceCommitMetadata": _commit(data) | {"partitionToReplaceFileIds": replaced}}
    if instant.state is State.REQUESTED:
        return _record("hoodieRequestedReplaceMetadata", data)
    return {"HoodieInflightReplaceMetadata": _commit(data)} if data.strip() else {}


def _record(name: str, data: bytes) -> dict[str, Any]:
    return {name: decode_records(data)[0]} if data else {}


def _commit(data: bytes) -> dict[str, Any]:
    return _kept(parse_json(data) if data.strip() else {})


def _kept(document: Mapping[str, Any]) -> dict[str, Any]:
    stats = document.get("partitionToWriteStats") or {}
    extra = {k: v for k, v in (document.get("extraMetadata") or {}).items() if v is not None}
    return {
        "partitionToWriteStats": {partition: [_stat(raw) for raw in raws] for partition, raws in stats.items()},
        "extraMetadata": extra | {_ROLLING_STAT: ""},
        "version": None,
        "operationType": "COMPACT" if document.get("compacted") else document.get("operationType") or "UNKNOWN",
    }


def _stat(raw: Mapping[str, Any]) -> dict[str, Any]:
    return {name: raw.get(name) for name in _TEXTS} | {name: raw.get(name) or 0 for name in _NUMBERS}
