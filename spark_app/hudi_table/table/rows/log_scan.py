"""Which blocks of a slice's logs apply, and in which order: the scan of Hudi 0.15.0, but for what
stands behind a later block.

Facts (measured on Hudi 0.15.0, read from its class files where no bytes tell): blocks are taken log
after log, in order.

1. A block of a later instant than the read's ends the whole scan of Hudi. Here it is left out
   alone: a writer or log compaction with a later instant that has not completed may have put its
   log before that of a write which has.
2. Data and delete blocks of an instant that has not completed are skipped; one older than the
   timeline counts.
3. A rollback block takes back every block before it that carries its target instant, wherever it
   stands.
4. Corrupt stretches count for nothing. Here they are damage where a completed commit wrote
   (`log_damage`).

A log compaction's block names the instants whose blocks it replaces. 0.15.0 applies both, which
comes to the same unless a write lay between; we leave the replaced ones out and put the block in
their place, as its optimised scan does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from hudi_table.codec.log.blocks import BlockType, LogBlock, scan_blocks
from hudi_table.errors import ObjectNotFoundError
from hudi_table.model.timeline.instants import State, comparable_time
from hudi_table.table.rows.log_damage import is_suspect, refuse_damage
from hudi_table.table.store.ports import Storage
from hudi_table.table.timeline.timeline import Timeline
from hudi_table.table.view.file_groups import LogFile


class ShownInstants(Protocol):
    """Which blocks a scan takes: none that is later than `latest`."""

    @property
    def latest(self) -> str:
        """A block of a later instant is left out."""
        ...

    @property
    def completed(self) -> frozenset[str]:
        """Instants whose commits the timeline holds."""
        ...

    @property
    def paths(self) -> Mapping[str, str]:
        """Where the completed files of these lie, as far as that is known."""
        ...

    def __contains__(self, instant: str) -> bool: ...


@dataclass(frozen=True, slots=True)
class VisibleInstants:
    """The instants whose blocks a reader sees. None is later than `latest`; '' is before
    everything. `completions`: when each completed, where that and not its own time says what a
    moment shows."""

    latest: str
    completed: frozenset[str]
    inflight: frozenset[str]
    start: str
    paths: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)
    completions: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(cls, timeline: Timeline, as_of: str | None = None) -> VisibleInstants:
        """What a snapshot of the timeline shows, or of the moment `as_of`."""
        past = timeline if as_of is None else timeline.until(as_of)
        return cls(
            latest=past.last_commit.time if past.last_commit else "",
            completed=frozenset(i.time for i in past.commits),
            inflight=frozenset(i.time for i in timeline.pending if i.state is State.INFLIGHT),
            start=timeline.start or "",
            completions=past.completions if timeline.layout.tells_completions else {},
            paths={i.time: timeline.layout.timeline_path(i.file_name) for i in past.commits},
        )

    def upto(self, moment: str) -> VisibleInstants:
        """What was to be seen at a moment, of these."""
        if not self.completions:
            return replace(self, latest=moment)
        return replace(self, completed=frozenset(time for time, at in self.completions.items() if at <= moment))

    def __contains__(self, instant: str) -> bool:
        if instant in self.inflight:
            return False
        return instant in self.completed or comparable_time(instant) < comparable_time(self.start)


def rows_of(storage: Storage, path: str) -> frozenset[str] | None:
    """The instants of a log's data and delete blocks: who wrote its rows, whatever its token says.
    None if it is gone."""
    try:
        with storage.open_read(path) as source:
            blocks = scan_blocks(source, path=path)
    except ObjectNotFoundError:
        return None
    return frozenset(b.instant for b in blocks if b.instant and b.type not in (BlockType.CORRUPT, BlockType.COMMAND))


def slice_blocks(storage: Storage, logs: Sequence[LogFile], visible: ShownInstants) -> list[LogBlock]:
    """The data and delete blocks that apply, in their order. Raises CorruptTableError and what the
    storage raises."""
    kept: list[LogBlock] = []
    for log in logs:
        with storage.open_read(log.path) as source:
            found = scan_blocks(source, path=log.path)
            if is_suspect(found):
                refuse_damage(storage, log, found, source, visible.completed, visible.paths)
        for block in found:
            if block.type is BlockType.CORRUPT or comparable_time(block.instant) > comparable_time(visible.latest):
                continue
            if block.type is BlockType.COMMAND:
                kept = [known for known in kept if known.instant != block.target]
            elif block.instant in visible:
                kept.append(block)
    return _in_place_of_compacted(kept)


def _in_place_of_compacted(blocks: list[LogBlock]) -> list[LogBlock]:
    replaced = {instant for block in blocks for instant in block.compacted}
    if not replaced:
        return blocks
    places: dict[str, int] = {}
    placed: list[tuple[int, int, LogBlock]] = []
    for number, block in enumerate(blocks):
        place = max((places[instant] for instant in block.compacted if instant in places), default=number)
        places[block.instant] = max(place, places.get(block.instant, place))
        if block.instant not in replaced:
            placed.append((place, number, block))
    return [block for _, _, block in sorted(placed, key=lambda item: item[:2])]
