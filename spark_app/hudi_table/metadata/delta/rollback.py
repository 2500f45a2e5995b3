"""Taking an instant's delta back: its logs, then its files on the metadata table's timeline.

Logs of ours name their instant. One of another engine, which does not, is known by its blocks; it
is deleted if they are all of the instants that are taken back. This order keeps a block from ever
being newer than the newest instant on the timeline.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from hudi_table.codec.log.blocks import scan_blocks
from hudi_table.errors import ObjectNotFoundError
from hudi_table.metadata.reading import listed_files, read_listing
from hudi_table.metadata.table import UNREADABLE, MetadataTable
from hudi_table.model.names import HOODIE, METADATA_TABLE, instant_of_token, join, parse_log_file
from hudi_table.model.timeline.instants import Action, Instant, State, comparable_time, parse_instant
from hudi_table.table.commit.rollback import instant_named
from hudi_table.table.metadata_dropping import drop_metadata_table
from hudi_table.table.store import retry
from hudi_table.table.store.ports import ObjectInfo, Storage
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.timeline.context import TableContext

_READS_MAX = 3
"""What others clean or compact while it is read is listed anew."""
_OWN = f"{METADATA_TABLE}/{HOODIE}"


def forget_delta(ctx: TableContext, time: str) -> None:
    """Delete everything that the instant wrote to the metadata table; idempotent. Called before the
    instant leaves the timeline.

    Two kinds of delta cannot be taken out, and the whole metadata table goes. A log that holds
    blocks of others too, as no release writes it: Hudi takes the blocks of an instant that a
    rollback names. And a delta that Hudi has compacted: rolling back a commit that had completed,
    Hudi 1.1.1 compacts first, and then refuses to go on (measured).
    """
    storage = ctx.storage
    infos = storage.list(METADATA_TABLE)
    timeline = join(METADATA_TABLE, ctx.layout.timeline_folder)
    logs, shared = _logs_of(ctx, infos, time)
    if shared:
        drop_metadata_table(ctx, f"a log of it holds blocks of {time}, which was rolled back, and of other commits")
        return
    for path in logs:
        retry.delete(storage, path)
    own = [
        (found, info.path)
        for info in infos
        if info.path.rpartition("/")[0] == timeline
        and (found := parse_instant(info.path.rpartition("/")[2])) is not None
    ]
    states = [(found.state is State.COMPLETED, path) for found, path in own if found.time == time]
    if any(completed for completed, _ in states) and _has_compacted(ctx, (found for found, _ in own), time):
        drop_metadata_table(ctx, f"a compaction of it holds files of {time}, which was rolled back")
        return
    # The completed one first: without it the others make the instant pending, which counts for nothing.
    for _, path in sorted(states, reverse=True):
        retry.delete(storage, path)


def _has_compacted(ctx: TableContext, own: Iterable[Instant], time: str) -> bool:
    """Whether the metadata table lists files of the instant, though it is pending: a base file of
    it does, for no log of a pending instant counts. True too where that cannot be read."""
    after = (i for i in own if i.action is Action.COMMIT and i.state is State.COMPLETED)
    if not any(comparable_time(instant.time) > comparable_time(time) for instant in after):
        return False
    for _ in range(_READS_MAX):
        with suppress(*UNREADABLE):
            table = MetadataTable.load(ctx, load_timeline(ctx))
            files = listed_files(read_listing(table)) if table is not None else {}
            return any(instant_named(ctx, path) == time for path in files)
    return True


def instants_written(storage: Storage) -> set[str]:
    """The instants that the metadata table holds anything of: on its timeline, or in the names of
    logs."""
    found = set()
    for info in storage.list(METADATA_TABLE):
        name = info.path.rpartition("/")[2]
        instant, log = parse_instant(name), parse_log_file(name)
        time = instant.time if instant else instant_of_token(log.token) if log else None
        found |= {time} if time else set()
    return found


def _logs_of(ctx: TableContext, infos: Iterable[ObjectInfo], time: str) -> tuple[list[str], bool]:
    """The logs of the instant alone, and whether there are others that hold blocks of it."""
    mine, shared = [], False
    for info in infos:
        name = parse_log_file(info.path.rpartition("/")[2])
        if name is None or info.path.startswith(_OWN):
            continue
        writer = name.base_instant if ctx.layout.logs_tell_writers else instant_of_token(name.token)
        wrote = {writer} if writer else _instants_in(ctx.storage, info.path)
        if wrote == {time}:
            mine.append(info.path)
        shared = shared or (time in wrote and wrote != {time})
    return mine, shared


def _instants_in(storage: Storage, path: str) -> set[str]:
    try:
        with storage.open_read(path) as source:
            return {block.instant for block in scan_blocks(source, path=path) if block.instant}
    except ObjectNotFoundError:
        return set()
