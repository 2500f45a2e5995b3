"""The markers of an instant: which files its attempts began, and which of them none of its write
stats names.

Facts (read by the rollbacks of Apache Hudi 0.15.0 and 1.1.1, measured): in the direct form a marker
is an empty file. In the batched form, which Hudi calls TIMELINE_SERVER_BASED, the file
`MARKERS.type` says so, without a newline, and the files `MARKERS<number>` hold a marker's path a
line, relative to the instant's folder. Of a folder with `MARKERS.type` Hudi reads no direct
markers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial

from hudi_table.errors import InvariantError, ObjectNotFoundError
from hudi_table.model.names import TEMP, MarkerType, join, parse_marker
from hudi_table.table.store import retry
from hudi_table.table.store.at_once import all_at_once
from hudi_table.table.store.ports import ObjectInfo, Storage, has_object
from hudi_table.table.timeline.context import TableContext

MARKER_TYPE = "MARKERS.type"
BATCHED = b"TIMELINE_SERVER_BASED"
_BATCH = "MARKERS"
_IS_BATCH = re.compile(rf"^{_BATCH}\d+$")


@dataclass(frozen=True, slots=True)
class MarkedFile:
    """A data file that is about to be written: a new group's first one, a rewrite, or a log."""

    partition: str
    name: str
    kind: MarkerType

    @property
    def path(self) -> str:
        """Relative to the base path."""
        return join(self.partition, self.name)


@dataclass(slots=True)
class Marks:
    """The markers that one process has made of one instant: the paths of the marked files, and of
    the objects that mark them."""

    files: set[str] = field(default_factory=set)
    objects: list[str] = field(default_factory=list)


def batch_path(time: str, number: int) -> str:
    """Where a batch of markers lies."""
    return join(TEMP, time, f"{_BATCH}{number}")


def batch_of(files: Iterable[MarkedFile]) -> bytes:
    """What stands in a batch."""
    return "".join(f"{file.path}.marker.{file.kind}\n" for file in files).encode()


def reconcile_attempts(ctx: TableContext, time: str, keep: set[str], marks: Marks | None = None) -> Marks:
    """Delete the marked files that no write stat names: what retried or speculative tasks left
    behind. Returns the markers.

    `marks`: all markers that the instant has, where this process alone wrote for it; else they are
    listed. Raises InvariantError if a deleted file is still there, or a named one never had a
    marker.
    """
    marks = marks_of(ctx, time) if marks is None else marks
    marked = marks.files
    unmarked = sorted(keep - marked)
    if unmarked:
        raise InvariantError(f"{unmarked[0]} was written without a marker", base_path=ctx.base_path, instant=time)
    strays = sorted(marked - keep)
    retry.delete_all(ctx.storage, strays)
    left = all_at_once(ctx.storage, [partial(has_object, ctx.storage, path) for path in strays])
    for path, is_there in zip(strays, left, strict=True):
        if is_there:
            raise InvariantError(f"{path} is still there after its deletion", base_path=ctx.base_path, instant=time)
    return marks


def marked_files(ctx: TableContext, time: str) -> list[str]:
    """Paths of the files that have a marker, whether they are there or not."""
    return sorted(marks_of(ctx, time).files)


def marks_of(ctx: TableContext, time: str) -> Marks:
    """The markers that an instant has."""
    return markers_among(ctx.storage, time, ctx.storage.list(join(TEMP, time)))


def markers_among(storage: Storage, time: str, infos: Iterable[ObjectInfo]) -> Marks:
    """The same, where its folder is listed already."""
    folder = join(TEMP, time)
    objects = [info.path for info in infos]
    names = [path[len(folder) + 1 :] for path in objects]
    batches = [partial(_batch, storage, join(folder, name)) for name in names if _IS_BATCH.match(name)]
    lines = (line for found in all_at_once(storage, batches) for line in found)
    return Marks({marker[0] for marker in map(parse_marker, [*names, *lines]) if marker is not None}, objects)


def _batch(storage: Storage, path: str) -> list[str]:
    """The markers in a batch, none if it has gone with its instant."""
    try:
        return storage.get(path).decode("utf-8", "replace").splitlines()
    except ObjectNotFoundError:
        return []
