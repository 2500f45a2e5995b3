"""The bytes of timeline files that are to be archived, a few instants at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from hudi_table.errors import ObjectNotFoundError
from hudi_table.model.timeline.instants import Instant
from hudi_table.table.engine.local_engine import LocalEngine
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.timeline import Timeline

BODIES_AHEAD = 16
FILE_BYTES = 16 << 20
"""An archive file is begun anew beyond this: what is held in memory at once."""


def bodies_of(
    ctx: TableContext, timeline: Timeline, instants: Sequence[Instant]
) -> Iterator[tuple[Sequence[Instant], Mapping[str, bytes]]]:
    """Some instants at a time, oldest first, and what stands in each file of theirs. It ends where
    another archiver has deleted one: what that has not finished is found by the next run."""
    states = timeline.states()
    for first in range(0, len(instants), BODIES_AHEAD):
        some = instants[first : first + BODIES_AHEAD]
        names = [s.file_name for instant in some for s in states[instant.time, instant.grouped_action]]
        bodies = LocalEngine(BODIES_AHEAD).map(lambda name: held(ctx, ctx.layout.timeline_path(name)), names)
        known = {name: data for name, data in zip(names, bodies, strict=True) if data is not None}
        if len(known) < len(names):
            return
        yield some, known


def held(ctx: TableContext, path: str) -> bytes | None:
    """The object at a path, None if there is none."""
    try:
        return ctx.storage.get(path)
    except ObjectNotFoundError:
        return None
