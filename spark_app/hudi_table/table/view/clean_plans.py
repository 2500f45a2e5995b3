"""Cleans: the plan of one, the record of what it deleted, and which of them took a file.

Facts (table version 6, measured on Hudi 0.15.0): `T.clean.requested` and `T.clean.inflight` hold
the same HoodieCleanerPlan (version 2), which names files by absolute paths per partition; `T.clean`
is HoodieCleanMetadata, which names them without their folder. A file lies in the folder of the
partition under which it stands, whatever the form of the path. The instant from which on everything
is retained is null in a plan, "" in a record, under the policy that counts file versions.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from hudi_table.errors import CorruptTableError, UnsupportedTableError
from hudi_table.model.names import join
from hudi_table.model.table.version_properties import INITIAL_VERSION
from hudi_table.model.timeline.instants import Action, Instant, State, comparable_time
from hudi_table.table.timeline.active import body
from hudi_table.table.timeline.archived import archived_entries, instant_of
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.layout import decode_records, encode_record
from hudi_table.table.timeline.lsm import Asked
from hudi_table.table.timeline.timeline import Timeline

_VERSION = 2
_TELLING = frozenset({Action.CLEAN, Action.SAVEPOINT, Action.INDEXING})
"""Actions that hide no file of another moment, but for what cleans say."""
Files = Mapping[str, tuple[str, ...]]
"""File names per partition path."""


@dataclass(frozen=True, slots=True)
class CleanPlan:
    """What a clean is to delete. `retain`: the instant from which on it keeps everything, None if
    it does not say; `last_commit` the newest completed write it has done with; `partitions` become
    empty and lose their metadata file too."""

    policy: str
    files: Files
    retain: Instant | None = None
    last_commit: str = ""
    partitions: tuple[str, ...] = ()
    extra: Mapping[str, str] = field(default_factory=dict)

    def to_avro(self, base_path: str) -> bytes:
        """The body of the requested and inflight files."""
        retain = self.retain
        paths = {
            partition: [{"filePath": join(base_path, partition, name), "isBootstrapBaseFile": False} for name in names]
            for partition, names in self.files.items()
        }
        return encode_record(
            "HoodieCleanerPlan",
            {
                "earliestInstantToRetain": None
                if retain is None
                else {"timestamp": retain.time, "action": retain.grouped_action.value, "state": retain.state.name},
                "lastCompletedCommitTimestamp": self.last_commit,
                "policy": self.policy,
                "filesToBeDeletedPerPartition": {},
                "version": _VERSION,
                "filePathsToBeDeletedPerPartition": paths,
                "partitionsToBeDeleted": list(self.partitions),
                "extraMetadata": dict(self.extra),
            },
        )


@dataclass(frozen=True, slots=True)
class CleanRecord:
    """What a completed clean did: `deleted` and `failed` files, and the instant from which on it
    kept everything ("" if it does not say)."""

    time: str
    retains: str
    last_commit: str
    deleted: Files
    failed: Files
    extra: Mapping[str, str]


def record_body(plan: CleanPlan, started: str, millis: int, deleted: Files, failed: Files) -> bytes:
    """The body of the completed file of the clean that began at the instant `started` and took
    `millis`."""
    partitions = {
        partition: {
            "partitionPath": partition,
            "policy": plan.policy,
            "deletePathPatterns": list(names),
            "successDeleteFiles": list(deleted.get(partition, ())),
            "failedDeleteFiles": list(failed.get(partition, ())),
            "isPartitionDeleted": partition in plan.partitions,
        }
        for partition, names in plan.files.items()
    }
    return encode_record(
        "HoodieCleanMetadata",
        {
            "startCleanTime": started,
            "timeTakenInMillis": millis,
            "totalFilesDeleted": sum(len(names) for names in deleted.values()),
            "earliestCommitToRetain": plan.retain.time if plan.retain else "",
            "lastCompletedCommitTimestamp": plan.last_commit,
            "partitionMetadata": partitions,
            "version": _VERSION,
            "bootstrapPartitionMetadata": {},
            "extraMetadata": dict(plan.extra),
        },
    )


def read_plan(ctx: TableContext, instant: Instant) -> CleanPlan:
    """The plan of a clean, ours or Hudi's. Raises CorruptTableError, and UnsupportedTableError for
    files outside of the table."""
    requested = instant.with_state(State.REQUESTED)
    return parse_clean(body(ctx, requested), requested.file_name)


def parse_clean(data: bytes, name: str) -> CleanPlan:
    """The plan in the bytes of a requested file. Raises CorruptTableError that says `name`,
    UnsupportedTableError."""
    try:
        (record,) = decode_records(data)
        entries = record["filePathsToBeDeletedPerPartition"] or {}
        legacy = record["filesToBeDeletedPerPartition"] or {}
        if any(entry["isBootstrapBaseFile"] for found in entries.values() for entry in found):
            raise UnsupportedTableError(f"{name} deletes files of a bootstrap source; let Hudi execute it", path=name)
        files = {p: tuple(_name(entry["filePath"]) for entry in found) for p, found in entries.items()}
        files |= {p: tuple(_name(path) for path in found) for p, found in legacy.items() if p not in files}
        retain = record["earliestInstantToRetain"]
        return CleanPlan(
            record["policy"],
            files,
            None if retain is None else Instant(retain["timestamp"], Action(retain["action"]), State[retain["state"]]),
            record["lastCompletedCommitTimestamp"] or "",
            tuple(record.get("partitionsToBeDeleted") or ()),
            record.get("extraMetadata") or {},
        )
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise CorruptTableError(f"{name} is no clean plan: {error}", path=name) from error


def read_record(ctx: TableContext, instant: Instant) -> CleanRecord:
    """What a completed clean recorded. Raises CorruptTableError."""
    try:
        (record,) = decode_records(body(ctx, instant))
        return _record(instant.time, record)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise CorruptTableError(
            f"{instant.file_name} is no clean metadata: {error}", base_path=ctx.base_path, path=instant.file_name
        ) from error


def archived_cleans(ctx: TableContext) -> Iterator[CleanRecord]:
    """The records of completed cleans in the archive, those of the newest file first. Raises
    CorruptTableError."""
    for entries in archived_entries(ctx):
        for entry in entries:
            instant, record = instant_of(entry), entry.get("hoodieCleanMetadata")
            if instant is not None and instant.completed and instant.action is Action.CLEAN and record:
                yield _record(instant.time, record)


def archived_since(ctx: TableContext, since: str) -> dict[str, Files] | None:
    """What the cleans of the archive after the moment `since` deleted, as `taken_files` tells it of
    those on the timeline. None if something behind it is archived that may have hidden or taken
    back files, or if the archive may lack instants. Raises CorruptTableError."""
    if not ctx.layout.tells_completions and INITIAL_VERSION in ctx.config.extra:
        # The archive that a downgrade of Hudi's makes lacks every eleventh instant (measured on 1.1.1).
        return None
    found: dict[str, Files] = {}
    for entries in archived_entries(ctx, Asked(since)):
        for entry in entries:
            moments = (str(entry["commitTime"]), str(entry.get("completionTime") or ""))
            if max(map(comparable_time, moments)) <= since:
                continue
            instant, record = instant_of(entry), entry.get("hoodieCleanMetadata") or {}
            if instant is None or instant.action not in _TELLING or (_is_clean(instant) and not record):
                return None
            if _is_clean(instant):
                clean = _record(instant.time, record)
                found |= {} if _keeps(ctx, clean.retains, since) else {clean.time: clean.deleted}
    return found


def _is_clean(instant: Instant) -> bool:
    return instant.completed and instant.action is Action.CLEAN


def _record(time: str, record: Mapping[str, Any]) -> CleanRecord:
    partitions = record["partitionMetadata"]
    return CleanRecord(
        time,
        record["earliestCommitToRetain"] or "",
        record["lastCompletedCommitTimestamp"] or "",
        {p: tuple(_name(path) for path in partitions[p]["successDeleteFiles"]) for p in partitions},
        {p: tuple(_name(path) for path in partitions[p]["failedDeleteFiles"]) for p in partitions},
        record.get("extraMetadata") or {},
    )


def completed_cleans(ctx: TableContext, timeline: Timeline) -> Iterator[CleanRecord]:
    """The records of the completed cleans on the timeline, oldest first."""
    return (read_record(ctx, i) for i in timeline.completed if i.action is Action.CLEAN)


def last_clean(ctx: TableContext, timeline: Timeline) -> CleanRecord | None:
    """The record of the newest completed clean."""
    newest = [i for i in timeline.completed if i.action is Action.CLEAN][-1:]
    return read_record(ctx, newest[0]) if newest else None


def pending_cleans(ctx: TableContext, timeline: Timeline, since: str = "") -> dict[str, CleanPlan]:
    """The plans of cleans after `since` that have not completed, by their instants, oldest first.
    What they name may be gone."""
    waiting = (i for i in timeline.pending if i.action is Action.CLEAN and comparable_time(i.time) > since)
    return {i.time: read_plan(ctx, i) for i in waiting}


def taken_files(ctx: TableContext, timeline: Timeline, since: str = "") -> dict[str, Files]:
    """What each clean after the instant `since` deleted, or is to delete if it has not completed:
    names per partition, by its instant. Without those that kept what was current at `since`, as
    they say: a group that was replaced before may be named no more."""
    done = (i for i in timeline.completed if i.action is Action.CLEAN and comparable_time(i.time) > since)
    records = (read_record(ctx, i) for i in done)
    found: dict[str, Files] = {r.time: r.deleted for r in records if not _keeps(ctx, r.retains, since)}
    waiting = pending_cleans(ctx, timeline, since).items()
    return found | {time: p.files for time, p in waiting if not _keeps(ctx, p.retain.time if p.retain else "", since)}


def taken_by(ctx: TableContext, timeline: Timeline, times: Container[str]) -> dict[str, Files]:
    """The same of the cleans of these instants, whatever they say that they keep."""
    cleans = [i for i in timeline.instants if i.action is Action.CLEAN and i.time in times]
    return {i.time: read_record(ctx, i).deleted if i.completed else read_plan(ctx, i).files for i in cleans}


def _keeps(ctx: TableContext, retains: str, since: str) -> bool:
    """Whether a clean that retains an instant kept what was current at a moment. Where moments are
    completions, what it says does not tell: of a write that began before the retained instant and
    completed behind it, a clean of Hudi's keeps nothing that it superseded."""
    return bool(retains and since) and not ctx.layout.tells_completions and comparable_time(retains) <= since


def clean_of(ctx: TableContext, timeline: Timeline, path: str) -> str | None:
    """The clean that took the file at `path`, relative to the base path; None if no clean on the
    timeline did."""
    partition, _, name = path.rpartition("/")
    return next((time for time, files in taken_files(ctx, timeline).items() if name in files.get(partition, ())), None)


def _name(path: str) -> str:
    return path.rpartition("/")[2]
