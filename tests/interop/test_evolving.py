"""Tables whose columns change. Those that our writes have made optional: each Hudi reads them,
rewrites and compacts what was written before, and we go on. Those that Hudi has renamed, dropped
and added again: we read them, write and compact, and Hudi reads the same rows and goes on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_table.api import open_table
from tests.interop import ours
from tests.interop.conftest import Hudis
from tests.interop.test_matrix import upsert
from tests.interop.test_merge_on_read import COMPACTING, LOGS
from tests.support.hudi_oracle import HudiOracle
from tests.support.rows import assert_same_rows

pytestmark = [pytest.mark.interop, pytest.mark.by_turns]

SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("ts", pa.int64(), nullable=False),
        pa.field("n", pa.int64(), nullable=False),
        ("place", pa.struct([pa.field("city", pa.string(), nullable=False), ("zip", pa.int32())])),
    ]
)
LESS = pa.schema([*list(SCHEMA)[:2], ("place", pa.struct([("zip", pa.int32())]))])


@pytest.mark.parametrize("kind", ["CopyOnWrite", "MergeOnRead"])
def test_hudi_reads_and_rewrites_what_was_required_and_is_no_longer(hudis: Hudis, tmp_path: Path, kind: str) -> None:
    base = tmp_path / "table"
    ours.create(base, index="bucket", partitioned=False, schema=SCHEMA, type=kind)
    whole: list[dict[str, Any]] = [{"id": key, "ts": 1, "n": 1, "place": {"city": "x", "zip": 1}} for key in "abc"]
    ours.write(base, "insert", pa.Table.from_pylist(whole, SCHEMA))
    less: list[dict[str, Any]] = [{"id": key, "ts": 2, "place": {"zip": 2}} for key in "bd"]
    open_table(str(base)).upsert(pa.Table.from_pylist(less, LESS), options={"hoodie.lakeops.schema.evolve": "true"})
    loose = open_table(str(base)).schema()
    assert loose is not None
    held = {row["id"]: row for row in whole}
    held |= {row["id"]: {**row, "n": None, "place": {"city": None, "zip": 2}} for row in less}

    def go_on(oracle: HudiOracle, copy: Path) -> None:
        ours.assert_all_read(copy, oracle, pa.Table.from_pylist(list(held.values()), loose))
        new: list[dict[str, Any]] = [
            {"id": "a", "ts": 3, "n": None, "place": None},
            {"id": "e", "ts": 3, "n": 3, "place": None},
        ]
        told = {**LOGS, **COMPACTING} if kind == "MergeOnRead" else {}
        upsert(oracle, copy, pa.Table.from_pylist(new, loose), **told)
        after = {**held, **{row["id"]: row for row in new}}
        ours.assert_all_read(copy, oracle, pa.Table.from_pylist(list(after.values()), loose))

    hudis.each_on_a_copy(base, go_on)


COLUMNS = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("name", pa.string()), ("x", pa.string())])
# 1.1.1 cannot drop a column by name, nor rename one; 1.2.0 can, once it is told that a drop is meant.
SETTINGS = ("hoodie.schema.on.read.enable", "hoodie.datasource.write.schema.allow.auto.evolution.column.drop")
RELEASES = [
    ("0.15.0", 6, "CopyOnWrite"),
    ("0.15.0", 6, "MergeOnRead"),
    ("1.0.2", 8, "MergeOnRead"),
    ("1.2.0", 9, "MergeOnRead"),
]


class Altered:
    """A table of ours whose columns Hudi changes."""

    def __init__(self, oracle: HudiOracle, base: Path) -> None:
        self.oracle, self.base = oracle, base

    def alter(self, change: str) -> None:
        self.oracle.run(f"ALTER TABLE altered {change}")
        self.assert_same(change)

    def upsert(self, *rows: tuple[Any, ...], hudi: bool = False) -> None:
        schema = open_table(str(self.base)).schema()
        assert schema is not None
        data = pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)
        if hudi:
            version = str(open_table(str(self.base)).context.config.version)
            upsert(self.oracle, self.base, data, **LOGS, **{SETTINGS[0]: "true", "hoodie.write.table.version": version})
        else:
            ours.write(self.base, "upsert", data)
        self.assert_same(f"{rows} by {'Hudi' if hudi else 'us'}")

    def assert_same(self, after: str) -> None:
        mine = open_table(str(self.base)).scan().to_arrow()
        found = self.oracle.read(self.base, hoodie__schema__on__read__enable="true")
        assert_same_rows(found, mine, columns=mine.column_names, of=f"{self.oracle!r} after {after}")

    def values(self) -> dict[str, tuple[Any, ...]]:
        return {row.pop("id"): tuple(row.values()) for row in open_table(str(self.base)).scan().to_arrow().to_pylist()}


@pytest.mark.parametrize(("release", "version", "kind"), RELEASES)
def test_we_go_on_with_columns_that_hudi_renames_and_drops_and_adds_again(
    start: Callable[[str], HudiOracle], tmp_path: Path, release: str, version: int, kind: str
) -> None:
    oracle, base = start(release), tmp_path / "table"
    ours.create(base, index="bucket", partitioned=False, schema=COLUMNS, version=version, type=kind)
    table = Altered(oracle, base)
    table.upsert(("a", 1, "na", "xa"), ("b", 1, "nb", "xb"), ("d", 1, "nd", "xd"), ("g", 1, "ng", "xg"))
    table.upsert(("b", 2, "nb2", "xb2"), ("c", 2, "nc", "xc"))
    for setting in SETTINGS:
        oracle.run(f"SET {setting}=true")
    oracle.run(f"CREATE TABLE altered USING hudi LOCATION '{base}'")
    try:
        # CREATE TABLE of 0.15.0 and 1.0.2 drops what tells the index of the table.
        open_table(str(base)).mend()
        _altered_in_turns(table, logs=kind == "MergeOnRead")
    finally:
        oracle.run("DROP TABLE altered")
        for setting in SETTINGS:
            oracle.run(f"RESET {setting}")


def _altered_in_turns(table: Altered, *, logs: bool) -> None:
    table.alter("RENAME COLUMN name TO nm")
    table.upsert(("d", 3, "nd3", "xd3"))
    table.alter("DROP COLUMN x")
    table.upsert(("e", 4, "ne"))
    table.alter("ADD COLUMNS (x string)")
    table.upsert(("f", 5, "nf", "new"))
    if logs:
        open_table(str(table.base)).compact(force=True)
        table.assert_same("a compaction of ours")
    table.alter("RENAME COLUMN nm TO name")
    table.upsert(("a", 6, "na6", "xa6"), ("c", 1, "old", "old"))
    table.upsert(("g", 7, "ng7", "xg7"), hudi=logs)
    assert table.values() == {
        "a": (6, "na6", "xa6"), "b": (2, "nb2", None), "c": (2, "nc", None), "d": (3, "nd3", None),
        "e": (4, "ne", None), "f": (5, "nf", "new"), "g": (7, "ng7", "xg7"),
    }  # fmt: skip
