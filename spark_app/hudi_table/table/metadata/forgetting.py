"""Taking an instant's delta back: its logs, then its files on the metadata table's timeline.

Logs of ours name their instant. One of another engine, which does not, is known by its blocks; it is deleted if they are
all of the instants that are taken back. This order keeps a block from ever being newer than the newest instant on the timeline.
"""

from __future__ import annotations

from collections.abc import Iterable

from hudi_table.codec.log_blocks import scan_blocks
from hudi_table.errors import ObjectNotFoundError
from hudi_table.model.instants import State, parse_instant
from hudi_table.model.names import HOODIE, METADATA_TABLE, instant_of_token, parse_log_file
from hudi_table.table import settle
from hudi_table.table.ports import ObjectInfo, Storage

_TIMELINE = f"{METADATA_TABLE}/{HOODIE}"


def forget_delta(storage: Storage, time: str) -> None:
    """Delete everything that the instant wrote to the metadata table; idempotent. Called before the instant leaves the timeline."""
    infos = storage.list(METADATA_TABLE)
    for path in _logs_of(storage, infos, time):
        settle.delete(storage, path)
    states = [
        (found.state is State.COMPLETED, info.path)
        for info in infos
        if info.path.rpartition("/")[0] == _TIMELINE
        and (found := parse_instant(info.path.rpartition("/")[2])) is not None
        and found.time == time
    ]
    # The completed one first: without it the others make the instant pending, which counts for nothing.
    for _, path in sorted(states, reverse=True):
        settle.delete(storage, path)


def instants_written(storage: Storage) -> set[str]:
    """The instants that the metadata table holds anything of: on its timeline, or in the names of logs."""
    found = set()
    for info in storage.list(METADATA_TABLE):
        name = info.path.rpartition("/")[2]
        instant, log = parse_instant(name), parse_log_file(name)
        time = instant.time if instant else instant_of_token(log.token) if log else None
        found |= {time} if time else set()
    return found


def _logs_of(storage: Storage, infos: Iterable[ObjectInfo], time: str) -> Iterable[str]:
    for info in infos:
        name = parse_log_file(info.path.rpartition("/")[2])
        if name is None or info.path.startswith(_TIMELINE):
            continue
        mine = instant_of_token(name.token)
        if mine == time or (mine is None and _wrote_alone(storage, info.path, time)):
            yield info.path


def _wrote_alone(storage: Storage, path: str, time: str) -> bool:
    try:
        with storage.open_read(path) as source:
            found = {block.instant for block in scan_blocks(source, path=path) if block.instant}
    except ObjectNotFoundError:
        return False
    return found == {time}
