"""The files of a timeline in the form of another version: their names, and what stands in them.
Nothing is read or written here.

Facts (measured on the upgrades of Hudi 1.0.2 and 1.1.1): version 6 has `T.commit` with JSON,
versions 8 and 9 `T_<completion>.commit` with an Avro container; inflight files of writes likewise;
plans and reports keep their bytes. Hudi takes the age of the old file for the completion time. Ours
is that age too, but never before the instant itself, nor at or after the next one: so slices, and
the order of changes, stay what they were, however the files were copied and whatever the clocks
showed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta

from hudi_table.model.table.layouts import Layout
from hudi_table.model.timeline.instants import (
    WRITE_ACTIONS,
    Action,
    Instant,
    State,
    comparable_time,
    format_instant_time,
    parse_instant,
    parse_instant_time,
)
from hudi_table.table.timeline.layout import decode_commit, encode_commit


def completion_times(changed: Mapping[str, str], times: Iterable[str]) -> dict[str, str]:
    """When each completed instant completed. `changed`: by its time, when its file was written, 17
    digits in the table's zone; `times`: of all instants, pending ones too."""
    order = sorted({comparable_time(time) for time in [*changed, *times]})
    following = dict(zip(order, [*order, ""][1:], strict=True))
    found = {}
    for time, written in changed.items():
        own = comparable_time(time)[:17]
        limit = following[comparable_time(time)]
        told = min(written, _before(limit)) if limit else written
        found[time] = max(told, own)
    return found


def _before(time: str) -> str:
    try:
        return format_instant_time(parse_instant_time(time) - timedelta(milliseconds=1))
    except ValueError:
        return time


def renamed(names: Iterable[str], layout: Layout, completions: Mapping[str, str]) -> dict[str, str]:
    """The new name of each timeline file, by the old one, in a table of that layout. What is no
    timeline file has none."""
    found = {}
    for name in names:
        instant = parse_instant(name)
        if instant is None:
            continue
        action = instant.action
        if action is Action.CLUSTERING and layout.clustering is not Action.CLUSTERING:
            action = layout.clustering
        completion = completions[instant.time] if instant.completed and layout.tells_completions else ""
        found[name] = Instant(instant.time, action, instant.state, completion).file_name
    return found


def rewritten(name: str, data: bytes, layout: Layout) -> bytes:
    """What stands in the new file. Raises ValueError, KeyError, TypeError or AttributeError for
    what is no commit metadata."""
    instant = parse_instant(name)
    if instant is None or not data.strip() or instant.state is State.REQUESTED or instant.action not in WRITE_ACTIONS:
        return data
    return encode_commit(layout, decode_commit(data))
