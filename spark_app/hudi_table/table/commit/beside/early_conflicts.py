"""Conflicts that are found before rows are written, by the markers of others: what
`hoodie.write.concurrency.early.conflict.detection.enable` asks for. A clustering that gives way to
writers looks for theirs, too.

Each process that writes looks behind its own markers, so of two that write to one file group at
once one sees the other at least. The later instant gives way, or both would end. An earlier one
that comes with its markers later is not seen. Nothing is decided here: that does the chain.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from hudi_table.errors import ObjectNotFoundError, WriteConflictError
from hudi_table.model.names import CHAIN, HEARTBEAT, TEMP, bucket_of_file_id, parse_data_file
from hudi_table.model.timeline.chain import ChainEntry, Kind, entry_path, sequence_of
from hudi_table.model.timeline.instants import Action, comparable_time, parse_instant
from hudi_table.table.commit.markers import MarkedFile, markers_among
from hudi_table.table.store.ports import ObjectInfo, Storage
from hudi_table.table.timeline.context import TableContext

_WRITES = frozenset({Action.COMMIT, Action.DELTA_COMMIT})
"""Who executes a plan has markers too, and others may write beside it: the plan tells."""


@dataclass(frozen=True, slots=True)
class EarlyConflicts:
    """Where the timeline lies, and after how many seconds without a sign of life a write seems
    dead."""

    timeline_folder: str
    suspect_after_seconds: float

    @classmethod
    def of(cls, ctx: TableContext) -> EarlyConflicts:
        """Those of a table."""
        return cls(ctx.layout.timeline_folder, ctx.settings.suspect_after_seconds)

    def refuse(self, storage: Storage, own: str, files: Iterable[MarkedFile], *, tail: int = 0) -> None:
        """Look for earlier writes that go on and have markers in the file groups, or buckets, of
        `files`, whose markers of the instant `own` are there. `tail`: an entry of the chain that is
        known. Raises WriteConflictError."""
        found = self._writing(storage, {_group(file.partition, file.name) for file in files}, own, tail)
        if found is not None:
            time, (partition, group) = found
            raise WriteConflictError(
                f"the write of {time} goes on and has begun to change file group {group} of partition {partition!r}, "
                "which this one would change, too; none of its rows was written for that group, write again when that has ended",
                base_path=storage.base_path,
                instant=own,
            )

    def refuse_beside(self, storage: Storage, own: str, groups: Iterable[tuple[str, str]], *, tail: int = 0) -> None:
        """Look for any write that goes on and has markers in these groups, (partition, file id),
        which the instant `own` rewrites. Raises WriteConflictError."""
        found = self._writing(storage, {(partition, _place(file_id)) for partition, file_id in groups}, None, tail)
        if found is not None:
            time, (partition, group) = found
            raise WriteConflictError(
                f"the write of {time} goes on and changes file group {group} of partition {partition!r}, to which the plan of {own} gives "
                "way; nothing of it is visible, plan again when that has ended",
                base_path=storage.base_path,
                instant=own,
            )

    def _writing(
        self, storage: Storage, groups: set[tuple[str, str]], before: str | None, tail: int
    ) -> tuple[str, tuple[str, str]] | None:
        """The oldest write, of those before an instant, that goes on and has markers in `groups`,
        and where.

        One listing; of who is found in it the batched markers, and where groups meet the claim and
        the chain: markers of what was given up stay while its quarantine lasts.
        """
        found: dict[str, list[ObjectInfo]] = {}
        for info in storage.list(TEMP):
            found.setdefault(info.path[len(TEMP) + 1 :].partition("/")[0], []).append(info)
        now = max((info.modified for infos in found.values() for info in infos), default=None)
        for time in sorted(found, key=comparable_time):
            if now is None or (before is not None and comparable_time(time) >= comparable_time(before)):
                return None
            meeting = sorted(groups & _marked_groups(storage, time, found[time]))
            if meeting and self._goes_on(storage, time, found[time], now) and not _is_given_up(storage, time, tail):
                return time, meeting[0]
        return None

    def _goes_on(self, storage: Storage, time: str, infos: Sequence[ObjectInfo], now: datetime) -> bool:
        """Whether the instant is claimed and has not completed, and somebody has shown a sign of
        life."""
        _, files = storage.list_dir(self.timeline_folder)
        ages = {instant: info.modified for info in files if (instant := parse_instant(info.path.rpartition("/")[2]))}
        states = [instant for instant in ages if instant.time == time]
        if not states or any(instant.completed or instant.action not in _WRITES for instant in states):
            return False
        signs = [ages[instant] for instant in states] + [info.modified for info in infos]
        with suppress(ObjectNotFoundError):
            signs.append(storage.head(f"{HEARTBEAT}/{time}").modified)
        return (now - max(signs)).total_seconds() < self.suspect_after_seconds


def _is_given_up(storage: Storage, time: str, tail: int) -> bool:
    """Whether the chain aborts an instant."""
    listed = storage.list(CHAIN, start_after=entry_path(tail - 1) if tail > 1 else None)
    newest = max((number for info in listed if (number := sequence_of(info.path)) is not None), default=0)
    for number in range(newest, 0, -1):
        try:
            entry = ChainEntry.from_json(storage.get(entry_path(number)))
        except ObjectNotFoundError:
            return False
        if entry.instant == time and entry.kind is not Kind.PLAN:
            return entry.kind is Kind.ABORT
        if entry.max_instant < time:
            return False
    return False


def _marked_groups(storage: Storage, time: str, infos: Sequence[ObjectInfo]) -> set[tuple[str, str]]:
    parts = (path.rpartition("/") for path in markers_among(storage, time, infos).files)
    return {_group(partition, name) for partition, _, name in parts}


def _group(partition: str, name: str) -> tuple[str, str]:
    parsed = parse_data_file(name)
    return partition, _place(name if parsed is None else parsed.file_id)


def _place(file_id: str) -> str:
    """A bucket, or a file id."""
    bucket = bucket_of_file_id(file_id)
    return file_id if bucket is None else f"of bucket {bucket}"
