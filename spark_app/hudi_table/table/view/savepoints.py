"""Savepoints: which files one keeps.

Facts (table version 6, measured on Hudi 0.15.0): `T.savepoint` has the time of the commit that it
keeps; its body is HoodieSavepointMetadata, which names per partition the files of the slices that
were the newest then, without their folder. Deleting it is removing its files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hudi_table.errors import CorruptTableError
from hudi_table.model.timeline.instants import Action, Instant, State
from hudi_table.table.timeline.active import body
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.layout import decode_records, encode_record
from hudi_table.table.timeline.timeline import Timeline


@dataclass(frozen=True, slots=True)
class Savepoint:
    """A commit that is kept: its time, who made it and when (milliseconds since 1970), and the
    names of its files per partition."""

    instant: str
    by: str
    at_millis: int
    comment: str
    files: Mapping[str, tuple[str, ...]]

    def to_avro(self) -> bytes:
        """The body of its file."""
        return encode_record(
            "HoodieSavepointMetadata",
            {
                "savepointedBy": self.by,
                "savepointedAt": self.at_millis,
                "comments": self.comment,
                "partitionMetadata": {
                    partition: {"partitionPath": partition, "savepointDataFile": list(names)}
                    for partition, names in self.files.items()
                },
                "version": 1,
            },
        )


def savepoint_instant(time: str) -> Instant:
    """The completed savepoint of a commit."""
    return Instant(time, Action.SAVEPOINT, State.COMPLETED)


def savepoints(ctx: TableContext, timeline: Timeline) -> list[Savepoint]:
    """Those on the timeline, oldest first. Raises CorruptTableError."""
    return [_read(ctx, i) for i in timeline.completed if i.action is Action.SAVEPOINT]


def _read(ctx: TableContext, instant: Instant) -> Savepoint:
    try:
        (record,) = decode_records(body(ctx, instant))
        return Savepoint(
            instant.time,
            record["savepointedBy"],
            record["savepointedAt"],
            record["comments"],
            {p: tuple(found["savepointDataFile"]) for p, found in record["partitionMetadata"].items()},
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CorruptTableError(
            f"{instant.file_name} is no savepoint: {error}", base_path=ctx.base_path, path=instant.file_name
        ) from error
