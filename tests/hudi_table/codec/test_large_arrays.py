"""Where the columns of a merge are put together, and that their memory goes back."""

from __future__ import annotations

import os
import subprocess
import sys

import pyarrow as pa
import pytest

from hudi_table.codec import large_arrays
from hudi_table.table.rows.merge import Merger, MergeRule

ROWS = 200_000
SCHEMA = pa.schema([("_hoodie_record_key", pa.string()), ("value", pa.int64())])


def test_a_merge_puts_its_columns_together_in_its_own_memory_and_gives_it_back() -> None:
    keys = pa.array([str(number) for number in range(ROWS)])
    base = pa.table([keys, pa.nulls(ROWS, pa.int64())], schema=SCHEMA)
    new = pa.table([keys.slice(7, 1), pa.array([1])], schema=SCHEMA)
    before = large_arrays.pool().bytes_allocated()

    merged = Merger(new, SCHEMA, MergeRule()).apply(base)

    assert merged.column("value").slice(6, 3).to_pylist() == [None, 1, None]
    assert large_arrays.pool().bytes_allocated() - before >= 8 * ROWS
    del merged
    large_arrays.give_back()
    assert large_arrays.pool().bytes_allocated() == before


@pytest.mark.parametrize(
    ("chosen", "found"), [("mimalloc", "jemalloc"), ("system", "system"), ("jemalloc", "jemalloc")]
)
def test_who_chose_an_allocator_for_arrow_keeps_it(chosen: str, found: str) -> None:
    asked = "from hudi_table.codec import large_arrays; print(large_arrays.pool().backend_name)"
    env = {**os.environ, "ARROW_DEFAULT_MEMORY_POOL": chosen}
    assert subprocess.run(
        [sys.executable, "-c", asked], env=env, capture_output=True, text=True, check=True
    ).stdout.split() == [found]
