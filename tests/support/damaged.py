"""Tables, and files beside theirs that have no business there."""

from __future__ import annotations

from hudi_table.table.timeline.active import load_timeline
from tests.support.written import new_table, rows, slices


def found(table, check=None, **options):
    findings = table.doctor(**options)
    return [f for f in findings if check is None or f.check is check]


def written(index="simple", **more):
    kinds = {"simple": "Simple", "global": "GlobalSimple", "bucket": {"type": "Bucket", "buckets": 2}}
    table = new_table(index=kinds[index], **more)
    table.upsert(rows(("a", "x", 1), ("b", "x", 2), ("c", "y", 3)))
    table.upsert(rows(("a", "x", 9), ("d", "y", 4)))
    return table


def base_of(table, number=0):
    base = slices(table)[number].base
    assert base is not None
    return base


def logged(table):
    """A slice with logs."""
    return next(item for item in slices(table) if item.logs)


def orphan_of(table, instant="20250101000000000", data=None):
    """A copy of a visible base file under an instant that the timeline does not know and does not
    start after."""
    store = table.context.storage
    base = base_of(table)
    path = f"{base.partition}/{'0' * 8}-stray-0_0-0-0_{instant}.parquet"
    store.put(path, store.get(base.path) if data is None else data)
    return path


def after_start(table):
    """An instant between two of the timeline's, used by nobody."""
    return str(int(load_timeline(table.context).commits[-1].time) - 1)
