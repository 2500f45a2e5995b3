"""Logs merged into base rows: against a dictionary, and within a budget of memory."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import given

import hudi_table
from hudi_table.codec.avro.schema import arrow_to_avro
from hudi_table.codec.log.blocks import LogBlock, scan_blocks
from hudi_table.codec.log.rows import avro_block, delete_block, parquet_block
from hudi_table.model.names import RECORD_KEY
from hudi_table.table.rows.log_merge import Asked, folded_entries, merged_rows
from hudi_table.table.rows.merge import ALWAYS_DELETE
from hudi_table.table.rows.slice_merge import SliceMerge
from hudi_table.table.store.ports import Storage
from tests.support.scale import scale
from tests.support.tables import memory_storage

SCHEMA = pa.schema([(RECORD_KEY, pa.string()), ("name", pa.string()), ("ts", pa.int64())])
AVRO = arrow_to_avro(SCHEMA, table_name="t")
Entry = tuple[str, int | None]

KEYS = st.sampled_from("abcdefgh")
ENTRIES = st.lists(st.tuples(KEYS, st.integers(1, 4)), min_size=1, max_size=6)
BLOCKS = st.lists(st.tuples(st.sampled_from(["avro", "parquet", "flagged", "delete"]), ENTRIES), max_size=8)
BUDGETS = st.sampled_from([1, 2_000, 8_000, 1 << 28])


def rows(entries: list[Entry], name: str) -> pa.Table:
    return pa.table([[k for k, _ in entries], [name] * len(entries), [ts for _, ts in entries]], schema=SCHEMA)


def logged(storage: Storage, blocks: list[tuple[str, list[Entry]]]) -> list[LogBlock]:
    """One log file of these blocks; `name` of a row is the block's number."""
    data = b""
    for number, (kind, entries) in enumerate(blocks):
        keys, ordering = pa.array([k for k, _ in entries]), pa.array([ts for _, ts in entries], pa.int64())
        if kind in ("avro", "parquet"):
            encoded = avro_block if kind == "avro" else parquet_block
            data += encoded(rows(entries, str(number)), AVRO, "1")
        else:
            data += delete_block(keys, "", "1", ordering if kind == "flagged" else None)
    storage.put("log", data)
    with storage.open_read("log") as source:
        return list(scan_blocks(source, path="log"))


def expected_fold(blocks: list[tuple[str, list[Entry]]]) -> dict[str, tuple[str, int] | None]:
    state: dict[str, tuple[str, int] | None] = {}
    for number, (kind, entries) in enumerate(blocks):
        for key, ts in entries:
            known = state.get(key)
            assert ts is not None
            if known is not None and known[1] > ts and kind != "delete":
                continue
            state[key] = (str(number), ts) if kind in ("avro", "parquet") else None
    return state


@given(base=st.dictionaries(KEYS, st.integers(1, 4)), blocks=BLOCKS, event=st.booleans(), memory=BUDGETS)
def test_a_merge_of_logs_agrees_with_a_dictionary_in_any_memory(
    base: dict[str, int], blocks: list[tuple[str, list[Entry]]], event: bool, memory: int
) -> None:
    storage = memory_storage()
    stored = rows(list(base.items()), "base")
    found = merged_rows(
        storage, [stored.slice(0, 3), stored.slice(3)], logged(storage, blocks), SCHEMA, SliceMerge("ts", event), memory_bytes=memory
    )  # fmt: skip
    merged = [tuple(row.values()) for table in found for row in table.to_pylist()]
    expected: dict[str, tuple[str, int]] = {key: ("base", ts) for key, ts in base.items()}
    for key, entry in expected_fold(blocks).items():
        if entry is None:
            expected.pop(key, None)
        elif not (event and key in base and base[key] > entry[1]):
            expected[key] = entry
    assert {row[0]: row[1:] for row in merged} == expected
    assert len(merged) == len(expected)


@pytest.mark.parametrize(("ordering", "left"), [(3, ["1"]), (5, []), (None, [])])
def test_a_delete_takes_away_rows_of_its_key_that_are_not_newer_and_all_of_them_if_it_has_no_ordering_value(
    ordering: int | None, left: list[str]
) -> None:
    storage = memory_storage()
    kind = "delete" if ordering is None else "flagged"
    blocks = logged(storage, [("avro", [("a", 2)]), ("avro", [("a", 5)]), (kind, [("a", ordering)])])
    found = pa.concat_tables(merged_rows(storage, [rows([], "base")], blocks, SCHEMA, SliceMerge("ts", True)))
    assert found.column("name").to_pylist() == left


ASKED = pa.schema([SCHEMA.field("name")])


@given(
    base=st.dictionaries(KEYS, st.integers(1, 4), min_size=1),
    blocks=BLOCKS,
    event=st.booleans(),
    memory=BUDGETS,
    tells=st.booleans(),
)
def test_a_reader_that_asks_for_some_columns_gets_those_of_the_merge(
    base: dict[str, int], blocks: list[tuple[str, list[Entry]]], event: bool, memory: int, tells: bool
) -> None:
    storage, how = memory_storage(), SliceMerge("ts", event)
    stored, logs = rows(list(base.items()), "base"), logged(storage, blocks)

    def read(columns: pa.Schema) -> list[pa.Table]:
        return [stored.select(columns.names)]

    asked = Asked(ASKED, lambda _: max(base.values()) if tells else None, read)
    found = merged_rows(storage, read(SCHEMA), logs, SCHEMA, how, memory_bytes=memory, asked=asked)
    whole = merged_rows(storage, [stored], logs, SCHEMA, how, memory_bytes=memory)
    assert [name for table in found for name in table.select(["name"]).to_pydict()["name"]] == [
        name for table in whole for name in table.to_pydict()["name"]
    ]


def test_ordering_values_are_read_unless_every_entry_is_newer() -> None:
    storage, read = memory_storage(), []
    logs = logged(storage, [("avro", [("a", 5), ("c", 7)])])

    def base(columns: pa.Schema) -> list[pa.Table]:
        read.append(columns.names)
        return [rows([("a", 4), ("b", 5)], "base").select(columns.names)]

    for largest, names in ((5, [RECORD_KEY, "name"]), (6, SCHEMA.names), (None, SCHEMA.names)):
        read.clear()
        asked = Asked(ASKED, lambda _, largest=largest: largest, base)  # type: ignore[misc]
        found = merged_rows(storage, base(SCHEMA), logs, SCHEMA, SliceMerge("ts", True), asked=asked)
        assert [table.schema.names for table in found] == [["name"], ["name"]]
        assert read[-1] == names


@given(blocks=BLOCKS, memory=BUDGETS)
def test_entries_fold_to_one_row_or_delete_of_each_key(blocks: list[tuple[str, list[Entry]]], memory: int) -> None:
    storage = memory_storage()
    tables = list(folded_entries(storage, logged(storage, blocks), SCHEMA, SliceMerge("ts"), memory_bytes=memory))
    found = [row for table in tables for row in table.to_pylist()]
    shown = {row[RECORD_KEY]: None if row[ALWAYS_DELETE] else (row["name"], row["ts"]) for row in found}
    assert shown == expected_fold(blocks)
    assert len(found) == len(shown)


def test_rows_keep_the_order_of_the_base_and_nothing_lies_on_disk_where_memory_suffices(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    storage = memory_storage()
    blocks = logged(storage, [("avro", [("z", 1), ("c", 1)]), ("delete", [("b", None)]), ("avro", [("y", 1)])])
    stored = rows([(key, 1) for key in "abcd"], "base")
    found = pa.concat_tables(merged_rows(storage, [stored], blocks, SCHEMA, SliceMerge()))
    assert found.column(RECORD_KEY).to_pylist() == ["a", "c", "d", "z", "y"]


def test_versions_of_few_keys_are_folded_instead_of_being_written_to_disk(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    storage = memory_storage()
    entries: list[Entry] = [(f"k{n}", 1) for n in range(50)]
    blocks = logged(storage, [("avro", entries)] * 40)
    (found,) = folded_entries(storage, blocks, SCHEMA, SliceMerge("ts"), memory_bytes=8 * 6_000)
    assert found.column("name").to_pylist() == ["39"] * 50


MEASURED = """
import sys
from pathlib import Path
import numpy as np
import pyarrow as pa
from hudi_table.codec.avro.schema import arrow_to_avro
from hudi_table.codec.log.blocks import scan_blocks
from hudi_table.codec.log.rows import avro_block
from hudi_table.table.rows.log_merge import merged_rows
from hudi_table.table.rows.slice_merge import SliceMerge
from hudi_table.table.store.opening import open_storage

ROW, STEP = 256, 4_000
schema = pa.schema([("_hoodie_record_key", pa.string()), ("ts", pa.int64()), ("text", pa.string())])

def rows(start, count, ts):
    keys = pa.array(np.char.add("key ", np.arange(start, start + count).astype("U12")))
    noise = np.random.default_rng(start).integers(97, 123, count * ROW, dtype=np.uint8)
    ends = pa.py_buffer(np.arange(0, (count + 1) * ROW, ROW, dtype=np.int32))
    text = pa.Array.from_buffers(pa.string(), count, [None, ends, pa.py_buffer(noise)])
    return pa.table([keys, pa.array(np.full(count, ts)), text], schema=schema)

def merge(folder, budget, total):
    storage = open_storage(str(folder))
    with storage.open_write("log") as sink:
        for start in range(0, total, STEP):
            sink.write(avro_block(rows(start, STEP, 2), arrow_to_avro(schema, table_name="t"), "1"))
    with storage.open_read("log") as source:
        blocks = list(scan_blocks(source, path="log"))
    base = (rows(start, STEP, 1) for start in range(total - total // 8, total + total // 8, STEP))
    found = [0, 0]
    for table in merged_rows(storage, base, blocks, schema, SliceMerge("ts", True), memory_bytes=budget):
        found[0] += len(table)
        found[1] += pa.compute.sum(table.column("ts")).as_py() or 0
    return found

def memory(name):
    (line,) = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(name)]
    return int(line.split()[1]) << 10

folder, budget = Path(sys.argv[1]), int(sys.argv[2])
merge(folder / "warm", 1, 8 * STEP)
before = memory('VmRSS')
total = 10 * budget // ROW // (8 * STEP) * (8 * STEP)
assert merge(folder / "big", budget, total) == [total + total // 8, total * 2 + total // 8]
print(memory('VmHWM') - before)
"""


def test_logs_ten_times_larger_than_the_memory_merge_within_it(tmp_path: Path) -> None:
    budget = (48 if scale() > 1 else 24) << 20
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, str(tmp_path), str(budget)], check=True, stdout=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": str(Path(hudi_table.__file__).parents[1])},
    )  # fmt: skip
    # What the allocator keeps of pieces that were let go varies by some MiB from run to run.
    assert budget // 8 < int(done.stdout) <= budget + (12 << 20)


def test_wide_rows_of_the_base_are_joined_up_to_the_budget_alone_however_many_keys_the_log_has() -> None:
    storage, budget = memory_storage(), 1 << 20
    blocks = logged(storage, [("avro", [(f"log{number}", 1) for number in range(200)])])
    wide = [rows([(f"base{number}", 1)], "x" * 20_000) for number in range(100)]
    tables = list(merged_rows(storage, wide, blocks, SCHEMA, SliceMerge(), memory_bytes=budget))
    assert sum(map(len, tables)) == 300
    assert max(table.nbytes for table in tables) <= budget // 2
