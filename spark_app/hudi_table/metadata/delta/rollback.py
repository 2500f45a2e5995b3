"""Taking an instant's delta back: its logs, then its files on the metadata table's timeline.

Logs of ours name their instant. One of another engine, which does not, is known by its blocks; it
is deleted if they are all of the instants that are taken back. This order keeps a block from ever
being newer than the newest instant on the timeline.
"""

from __future__ import annotations

from collections.abc import Iterable

from hudi_table.codec.log.blocks import scan_blocks
from hudi_table.errors import ObjectNotFoundError
from hudi_table.model.names import HOODIE, METADATA_TABLE, instant_of_token, join, parse_log_file
from hudi_table.model.timeline.instants import State, parse_instant
from hudi_table.table.metadata_dropping import drop_metadata_table
from hudi_table.table.store import retry
from hudi_table.table.store.ports import ObjectInfo, Storage
from hudi_table.table.timeline.context import TableContext

_OWN = f"{METADATA_TABLE}/{HOODIE}"


def forget_delta(ctx: TableContext, time: str) -> None:
    """Delete everything that the instant wrote to the metadata table; idempotent. Called before the
    instant leaves the timeline.

    A log that holds blocks of others too, as no release writes it, cannot be deleted: then the
    whole metadata table goes, for Hudi takes the blocks of an instant that a rollback names.
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
    states = [
        (found.state is State.COMPLETED, info.path)
        for info in infos
        if info.path.rpartition("/")[0] == timeline
        and (found := parse_instant(info.path.rpartition("/")[2])) is not None
        and found.time == time
    ]
    # The completed one first: without it the others make the instant pending, which counts for nothing.
    for _, path in sorted(states, reverse=True):
        retry.delete(storage, path)


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
