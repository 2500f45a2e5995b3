"""What a table tells of its past, beside what it held then: time travel, the rows that changed
since, and the changes one by one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from hudi_table.api import HudiTable
from hudi_table.errors import ExpiredError
from hudi_table.table.timeline.active import load_timeline
from tests.interop.model import Model
from tests.support.rows import assert_same_rows, canonical


def assert_past(table: HudiTable, moments: Sequence[tuple[str, Model]], now: Model) -> int:
    """What is not cleaned or archived of the writes of before, each with what the table held behind
    it, is as it was, what a savepoint keeps above all, and every change since leads to `now`.
    Returns how many questions had an answer."""
    timeline = load_timeline(table.context)
    seen, told = timeline.completions, 0
    for time, model in moments:
        is_told = _as_of(table, time, model)
        assert is_told or time not in timeline.saved, f"the savepoint {time} is not told"
        told += is_told
        if time in seen:
            told += _changes(table, seen[time], model, now)
            told += _changed(table, seen, seen[time])
    return told


def _as_of(table: HudiTable, time: str, model: Model) -> bool:
    try:
        found = table.scan(as_of=time).to_arrow()
    except ExpiredError:
        return False
    assert_same_rows(found, model.rows(), of=f"ours as of {time}")
    return True


def _changes(table: HudiTable, since: str, model: Model, now: Model) -> bool:
    try:
        found = table.changes(since=since).to_arrow()
    except ExpiredError:
        return False
    held = {row["id"]: row for row in canonical(model.rows())}
    for change in sorted(found.to_pylist(), key=lambda change: str(change["ts_ms"])):
        before, after = (_image(found, change[name]) for name in ("before", "after"))
        key = (before or after or {})["id"]
        assert held.get(key) == before, f"changes since {since}: {change['op']} of {held.get(key)} tells {before}"
        held |= {key: after}
    assert_same_rows([row for row in held.values() if row], now.rows(), of=f"changes since {since}")
    return True


def _image(changes: pa.Table, image: dict[str, Any] | None) -> dict[str, Any] | None:
    return None if image is None else canonical([image])[0]


def _changed(table: HudiTable, seen: dict[str, str], since: str) -> bool:
    """The rows that the snapshot holds of later commits."""
    try:
        found = table.scan(query="incremental", since=since, meta=True).to_arrow()
    except ExpiredError:
        return False
    snapshot = table.scan(meta=True).to_arrow().to_pylist()
    later = [row for row in snapshot if seen.get(row["_hoodie_commit_time"], "") > since]
    names = [name for name in found.column_names if name != "_hoodie_file_name"]
    assert_same_rows(found.select(names), later, columns=names, of=f"incremental since {since}")
    return True
