"""Conflicts that are found before rows are written, by the markers of others: what
`hoodie.write.concurrency.early.conflict.detection.enable` asks for.

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
from hudi_table.model.names import HEARTBEAT, TEMP, bucket_of_file_id, parse_data_file
from hudi_table.model.timeline.instants import Action, comparable_time, parse_instant
from hudi_table.table.commit.markers import MarkedFile, markers_among
from hudi_table.table.store.ports import ObjectInfo, Storage

_WRITES = frozenset({Action.COMMIT, Action.DELTA_COMMIT})
"""Who executes a plan has markers too, and others may write beside it: the plan tells."""


@dataclass(frozen=True, slots=True)
class EarlyConflicts:
    """Where the timeline lies, and after how many seconds without a sign of life a write seems
    dead."""

    timeline_folder: str
    suspect_after_seconds: float

    def refuse(self, storage: Storage, own: str, files: Iterable[MarkedFile]) -> None:
        """Look for earlier writes that go on and have markers in the file groups, or buckets, of
        `files`, whose markers of the instant `own` are there.

        One listing; of who is found in it the batched markers, and the claim where groups meet.
        Raises WriteConflictError.
        """
        found: dict[str, list[ObjectInfo]] = {}
        for info in storage.list(TEMP):
            found.setdefault(info.path[len(TEMP) + 1 :].partition("/")[0], []).append(info)
        now = max((info.modified for infos in found.values() for info in infos), default=None)
        groups = {_group(file.partition, file.name) for file in files}
        for time in sorted(found, key=comparable_time):
            if now is None or comparable_time(time) >= comparable_time(own):
                return
            meeting = sorted(groups & _marked_groups(storage, time, found[time]))
            if meeting and self._goes_on(storage, time, found[time], now):
                partition, group = meeting[0]
                raise WriteConflictError(
                    f"the write of {time} goes on and has begun to change file group {group} of partition {partition!r}, "
                    "which this one would change, too; none of its rows was written for that group, write again when that has ended",
                    base_path=storage.base_path,
                    instant=own,
                )

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


def _marked_groups(storage: Storage, time: str, infos: Sequence[ObjectInfo]) -> set[tuple[str, str]]:
    parts = (path.rpartition("/") for path in markers_among(storage, time, infos).files)
    return {_group(partition, name) for partition, _, name in parts}


def _group(partition: str, name: str) -> tuple[str, str]:
    """A file's partition, and its bucket or its file id."""
    parsed = parse_data_file(name)
    file_id = name if parsed is None else parsed.file_id
    bucket = bucket_of_file_id(file_id)
    return partition, file_id if bucket is None else f"of bucket {bucket}"
