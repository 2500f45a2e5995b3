"""Rows that wait for their commit: kept beside the table, read back as they were, and swept when
their write has died."""

from __future__ import annotations

import os
from datetime import UTC, datetime

import pyarrow as pa
import pytest

from hudi_table.errors import InvalidDataError
from hudi_table.model.names import STAGED
from hudi_table.services.cleaning.plan import prepare_clean
from hudi_table.table.rows.staged import STALE, discard_staged, stage_rows, staged_rows, sweep_staged
from hudi_table.table.store.clock import SystemClock
from hudi_table.table.store.opening import open_storage
from hudi_table.table.timeline.active import load_timeline
from tests.support.tables import TestClock, memory_storage, new_context

SCHEMA = pa.schema([("id", pa.string()), ("at", pa.timestamp("us", "UTC")), ("tags", pa.list_(pa.string()))])
MOMENT = datetime(2026, 11, 21, 9, 44, 55, 123456, tzinfo=UTC)


def batch(*keys: str) -> pa.RecordBatch:
    columns = [
        pa.array(keys),
        pa.array([MOMENT] * len(keys), SCHEMA.field("at").type),
        pa.array([["x", None]] * len(keys)),
    ]
    return pa.record_batch(columns, schema=SCHEMA)


@pytest.mark.parametrize("kind", ["memory", "disk"])
def test_rows_come_back_in_their_order_and_types(kind: str, tmp_path) -> None:
    storage = open_storage(str(tmp_path)) if kind == "disk" else memory_storage()
    paths = [
        stage_rows(storage, "w-0.arrow", iter([batch(), batch("a", "b"), batch("c")]), SCHEMA),
        stage_rows(storage, "w-1.arrow", iter([batch()]), SCHEMA),
        stage_rows(storage, "w-2.arrow", iter([batch("d")]), SCHEMA),
    ]
    assert paths == [f"{STAGED}/w-0.arrow", None, f"{STAGED}/w-2.arrow"]
    found = staged_rows(storage, [path for path in paths if path], SCHEMA).read_all()
    assert found.equals(pa.Table.from_batches([batch("a", "b", "c", "d")]).combine_chunks())
    discard_staged(storage, "other")
    assert len(storage.list(STAGED)) == 2
    discard_staged(storage, "w")
    assert storage.list(STAGED) == []


def test_a_task_that_fails_leaves_no_file(tmp_path) -> None:
    storage = open_storage(str(tmp_path))

    def rows():
        yield batch("a")
        raise RuntimeError("the source is gone")

    with pytest.raises(RuntimeError, match="the source is gone"):
        stage_rows(storage, "w-0.arrow", rows(), SCHEMA)
    assert storage.list(STAGED) == []


def test_what_is_old_goes_and_who_comes_too_late_is_told(tmp_path) -> None:
    storage = open_storage(str(tmp_path))
    path = stage_rows(storage, "w-0.arrow", iter([batch("a")]), SCHEMA)
    assert path is not None
    made = storage.head(path).modified.timestamp() - STALE.total_seconds()
    os.utime(tmp_path / path, (made + 600, made + 600))
    assert sweep_staged(storage) == 0
    os.utime(tmp_path / path, (made - 1, made - 1))
    assert sweep_staged(storage) == 1
    with pytest.raises(InvalidDataError, match=r"w-0\.arrow are gone.* 24 hours"):
        staged_rows(storage, [path], SCHEMA).read_all()


def test_a_clean_whose_clock_is_days_ahead_leaves_what_a_write_has_just_staged() -> None:
    ctx = new_context()
    assert isinstance(ctx.clock, TestClock)
    path = stage_rows(ctx.storage, "w-0.arrow", iter([batch("a")]), SCHEMA)
    ctx.clock.advance((SystemClock().now() - ctx.clock.now()).total_seconds() + 3 * STALE.total_seconds())
    prepare_clean(ctx, load_timeline(ctx), {})
    assert [info.path for info in ctx.storage.list(STAGED)] == [path]
