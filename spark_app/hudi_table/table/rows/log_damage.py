"""Whether the damaged part of a log holds what a completed commit wrote: then rows are lost; else
it is what a write left that failed.

Facts (table version 6, measured on Hudi 0.15.0): a write stat names its log, the byte at which the
commit began in it (`logOffset`) and the log's size after it (`fileSizeInBytes`), which later
appends may exceed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from hudi_table.codec.log.blocks import BlockType, LogBlock
from hudi_table.errors import CorruptTableError, ObjectNotFoundError
from hudi_table.model.timeline.commits import CommitMetadata, WriteStat
from hudi_table.model.timeline.instants import Action, Instant, State, comparable_time
from hudi_table.table.engine.local_engine import LocalEngine
from hudi_table.table.store.ports import Storage
from hudi_table.table.timeline.layout import TIMELINE_FOLDER, decode_commit
from hudi_table.table.view.file_groups import LogFile

_WRITERS = (Action.DELTA_COMMIT, Action.COMMIT, Action.REPLACE_COMMIT)
_BODIES_AHEAD = 16


def is_suspect(blocks: Sequence[LogBlock]) -> bool:
    """Whether a log's bytes show that some are missing or changed, be it for good reason."""
    return not blocks or any(block.type is BlockType.CORRUPT for block in blocks)


def refuse_damage(
    storage: Storage,
    log: LogFile,
    blocks: Sequence[LogBlock],
    source: Any,
    completed: Collection[str],
    paths: Mapping[str, str],
) -> None:
    """Raise CorruptTableError if a commit of the instants `completed` accounts for what is damaged
    in the open log `source`. Their files lie at `paths`, or where those of version 6 do.

    Commits that have been archived tell nothing any more, and neither do those of other folders.
    """
    since = comparable_time(log.name.base_instant)
    times = sorted(time for time in completed if comparable_time(time) >= since)
    source.seek(0, 2)
    size = int(source.tell())
    holes = [block.offset for block in blocks if block.type is BlockType.CORRUPT]
    for time, stats in zip(
        times, LocalEngine(_BODIES_AHEAD).map(partial(_stats, storage, log.path, paths), times), strict=True
    ):
        for stat in stats:
            fault = _fault(stat, size, holes)
            if fault is None and not blocks and (stat.num_writes or stat.num_deletes):
                fault = "holds nothing"
            if fault is not None:
                raise CorruptTableError(
                    f"log {log.path} is damaged: it {fault}, and the commit {time} wrote rows there; bring it back from a copy or a "
                    "version of the store, or roll back or restore to before it",
                    base_path=storage.base_path,
                    instant=time,
                    path=log.path,
                )


def _fault(stat: WriteStat, size: int, holes: Sequence[int]) -> str | None:
    begin = stat.extra.get("logOffset") or 0
    if size < stat.file_size_in_bytes:
        return f"has {size:,} of {stat.file_size_in_bytes:,} bytes"
    if isinstance(begin, int) and any(begin <= hole < stat.file_size_in_bytes for hole in holes):
        return f"cannot be read from byte {min(hole for hole in holes if hole >= begin):,} on"
    return None


def _stats(storage: Storage, path: str, paths: Mapping[str, str], time: str) -> tuple[WriteStat, ...]:
    """What the commit of an instant says of the log; nothing if it is not there."""
    guessed = (f"{TIMELINE_FOLDER}/{Instant(time, action, State.COMPLETED).file_name}" for action in _WRITERS)
    for name in [paths[time]] if time in paths else guessed:
        try:
            metadata = decode_commit(storage.get(name))
        except ObjectNotFoundError:
            continue
        except (ValueError, TypeError, AttributeError) as error:
            raise CorruptTableError(
                f"{name} is no commit metadata: {error}", base_path=storage.base_path, path=name
            ) from error
        return tuple(_of_log(metadata, path))
    return ()


def _of_log(metadata: CommitMetadata, path: str) -> Iterator[WriteStat]:
    return (stat for stat in metadata.stats if stat.path == path)
