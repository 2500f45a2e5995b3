"""What all checks look at, read once: two timelines with a listing of the data files between them.

A writer may be at work. Of a file that is listed, the instant stands on the later timeline, unless
it was archived or rolled back meanwhile; and what the earlier timeline has completed was there when
the files were listed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field

from hudi_table.codec.log.blocks import BlockType, LogBlock, scan_blocks
from hudi_table.errors import CorruptTableError, ObjectNotFoundError
from hudi_table.model.names import parse_base_file, parse_log_file
from hudi_table.model.timeline.commits import CommitMetadata, WriteStat
from hudi_table.model.timeline.instants import WRITE_ACTIONS, Instant, State, comparable_time
from hudi_table.table.commit.undo import UNDOING, planned_undo
from hudi_table.table.engine.local_engine import LocalEngine
from hudi_table.table.store.ports import Engine, ObjectInfo
from hudi_table.table.timeline.active import commit_metadata, load_timeline
from hudi_table.table.timeline.bucket_count import refresh_buckets
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.timeline import Timeline
from hudi_table.table.view.file_system_view import BaseFile, LogFile, replaced_groups
from hudi_table.table.view.listing import list_data_files

REQUESTS_AHEAD = 16
"""Requests at once: waiting for a store, not work."""

Group = tuple[str, str]


@dataclass(slots=True)
class Examined:
    """A table as the checks see it. `commits` are the completed writes whose body could be read,
    oldest first; `unreadable` says of the others what is wrong with them. `hidden` are replaced
    groups."""

    ctx: TableContext
    before: Timeline
    files: dict[str, ObjectInfo]
    timeline: Timeline
    engine: Engine = field(default_factory=lambda: LocalEngine(REQUESTS_AHEAD))
    commits: dict[Instant, CommitMetadata] = field(default_factory=dict)
    unreadable: dict[Instant, str] = field(default_factory=dict)
    hidden: set[Group] = field(default_factory=set)
    _at_work: set[str] = field(default_factory=set, repr=False)
    _completed: set[str] = field(default_factory=set, repr=False)

    @classmethod
    def of(cls, ctx: TableContext) -> Examined:
        """List, and read the bodies of the completed writes."""
        before = load_timeline(ctx)
        files = {info.path: info for info in list_data_files(ctx.storage)}
        examined = cls(ctx, before, files, load_timeline(ctx))

        def read(instant: Instant) -> CommitMetadata | str:
            try:
                return commit_metadata(ctx, instant)
            except CorruptTableError as error:
                return error.message

        writes = examined.timeline.commits
        for instant, body in zip(writes, examined.engine.map(read, writes), strict=True):
            if isinstance(body, str):
                examined.unreadable[instant] = body
            else:
                examined.commits[instant] = body
        both = (*before.instants, *examined.timeline.instants)
        examined._at_work = {i.time for i in both if i.grouped_action in WRITE_ACTIONS} | examined._taken_back()
        examined._completed = {i.time for i in writes}
        if not examined.unreadable:
            examined.hidden = replaced_groups(ctx, examined.timeline)
            refresh_buckets(ctx, examined.timeline)
        return examined

    def known(self, instant: str) -> bool:
        """Whether an instant's files have a reason to be there: completed, pending, being taken
        back, or older than the timeline."""
        return instant in self._at_work or self._old(instant)

    def visible(self, instant: str) -> bool:
        """Whether readers see files of an instant."""
        return instant in self._completed or self._old(instant)

    def is_used(self, path: str) -> bool:
        """Whether some reader of the timeline may open a file: a base file of a visible instant, or
        a log with a visible block."""
        name = path.rpartition("/")[2]
        base, log = parse_base_file(name), parse_log_file(name)
        if base is not None:
            return self.visible(base.instant)
        instants = None if log is None else self.instants_of(LogFile(path, self.files[path].size, log))
        return instants is None or any(self.visible(instant) for instant in instants)

    def _taken_back(self) -> set[str]:
        """What pending rollbacks and restores take back: their files are about to go."""
        times: set[str] = set()
        for instant in self.timeline.pending:
            if instant.action in UNDOING and instant.with_state(State.REQUESTED).file_name in self.timeline.files:
                with suppress(CorruptTableError):
                    times |= planned_undo(self.ctx, instant).times
        return times

    def _old(self, instant: str) -> bool:
        start = self.timeline.start
        return start is not None and comparable_time(instant) < comparable_time(start)

    def stats(self) -> Iterator[tuple[Instant, WriteStat]]:
        """Every write stat of the completed writes, oldest first."""
        for instant, metadata in self.commits.items():
            for stat in metadata.stats:
                yield instant, stat

    def bases(self) -> Iterator[BaseFile]:
        """Every base file that is there."""
        for path, info in self.files.items():
            partition, _, name = path.rpartition("/")
            found = parse_base_file(name)
            if found is not None:
                yield BaseFile(path, partition, found.file_id, found.instant, info.size)

    def logs(self) -> Iterator[LogFile]:
        """Every log file that is there, change data logs included."""
        for path, info in self.files.items():
            found = parse_log_file(path.rpartition("/")[2])
            if found is not None:
                yield LogFile(path, info.size, found)

    def instants_of(self, log: LogFile) -> set[str] | None:
        """The instants that wrote a log's blocks; of none, its base instant. None if it takes
        blocks back: then it is part of a rollback's own record. (The token is no proof: Hudi 1.1.1
        takes that of the log before its own.)"""
        blocks = self._blocks(log)
        if blocks is None or any(block.type is BlockType.COMMAND for block in blocks):
            return None
        return {block.instant for block in blocks if block.instant} or {log.name.base_instant}

    def taken_back(self, log: LogFile) -> set[str]:
        """The instants whose blocks are taken back by logs of the same file group."""
        folder = log.path.rpartition("/")[0]
        group = [other for other in self.logs() if other.name.file_id == log.name.file_id]
        siblings = [self._blocks(other) for other in group if other.path.rpartition("/")[0] == folder]
        return {block.target for blocks in siblings for block in blocks or () if block.type is BlockType.COMMAND}

    def _blocks(self, log: LogFile) -> list[LogBlock] | None:
        try:
            with self.ctx.storage.open_read(log.path) as source:
                return scan_blocks(source, path=log.path)
        except ObjectNotFoundError:
            return None
