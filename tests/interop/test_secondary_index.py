"""Indexes of secondary keys beside Hudi: its own that we go on with, ours that it goes on with, on
copy-on-write and merge-on-read tables of versions 8 and 9.

After each step Hudi finds by the index the rows that are there, where a failure of skipping fails
its scan, and the pairs in the index are those of the rows (`differences`). Matrix: {1.0.2 on
version 8, 1.1.1 on 8 and 9} × {copy-on-write, merge-on-read} × {Hudi's, ours}.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import get_args

import pytest

from hudi_table.api import open_table
from hudi_table.arguments import TableTypeName
from hudi_table.metadata.compaction import compact_metadata
from hudi_table.metadata.validate import differences
from tests.interop.test_data_skipping import COLUMNS, RECORD_INDEX, STATISTICS, Held, asked, create_indexes, written
from tests.interop.test_later_versions import ORACLE
from tests.support.hudi_oracle import HudiOracle

pytestmark = [pytest.mark.interop]

FEW = {name: COLUMNS[name] for name in ("i32", "text")}
NAME = "secondary_index_by_text"
LONG = pytest.mark.at_scale(2)
PAIRS = [pytest.param("1.0.2", 8, marks=LONG), pytest.param(ORACLE, 8, marks=LONG), (ORACLE, 9)]


def made_by_hudi(oracle: HudiOracle, held: Held) -> None:
    """`CREATE INDEX` of a record index and of one of the column `text`."""
    create_indexes(oracle, held, ["record_index ON {table} (id)", "by_text ON {table} (text)"])
    # `CREATE TABLE` of 1.0.2 drops what tells the index of the table's keys.
    open_table(held.base).mend()


def assert_found(oracle: HudiOracle, held: Held, where: str) -> None:
    """Hudi finds every value by the index, and the index holds the pairs of the rows alone."""
    table = open_table(held.base)
    assert NAME in table.context.config.metadata_partitions, where
    assert differences(table.context) == [], where
    told = {row["text"] for row in held.rows.values() if row["text"] is not None}
    some = sorted(told)[:: max(1, len(told) // 3)]
    values = sorted({*some, FEW["text"].value(5), FEW["text"].value(13), "nobody"})
    expected = {
        f"`text` = '{value}'": sorted(key for key, row in held.rows.items() if row["text"] == value) for value in values
    }
    assert asked(oracle, held, list(expected), "strict") == expected, where
    for condition, keys in expected.items():
        assert sorted(table.scan(filter=condition.replace("`", "")).to_arrow()["id"].to_pylist()) == keys, where


@pytest.mark.parametrize("whose", ["Hudi's", "ours"])
@pytest.mark.parametrize("kind", get_args(TableTypeName))
@pytest.mark.parametrize(("release", "version"), PAIRS)
def test_an_index_goes_on_on_both_sides(
    tmp_path: Path,
    start: Callable[[str], HudiOracle],
    release: str,
    version: int,
    kind: TableTypeName,
    whose: str,
) -> None:
    oracle = start(release)
    held = written(tmp_path / "table", version, kind, FEW, **STATISTICS)
    if whose == "ours":
        open_table(held.base).build_metadata(["record_index", f"{NAME}=text"])
    else:
        held.write_by(oracle, range(22, 26), 3)
        made_by_hudi(oracle, held)
    assert_found(oracle, held, "made")
    held.write(range(4, 9), 4)
    assert_found(oracle, held, "our upsert")
    held.write_by(oracle, range(7, 12), 5, **RECORD_INDEX)
    assert_found(oracle, held, "Hudi's upsert after ours")
    gone = held._table([held.rows[key] for key in ("k05", "k08", "k20")])
    open_table(held.base).delete(gone)
    held.rows = {key: row for key, row in held.rows.items() if key not in ("k05", "k08", "k20")}
    assert_found(oracle, held, "our delete")
    if kind == "MergeOnRead":
        open_table(held.base).compact(force=True)
        assert_found(oracle, held, "our compaction")
    compact_metadata(open_table(held.base).context, 1)
    assert_found(oracle, held, "our compaction of the metadata table")
    held.write_by(oracle, range(4, 8), 6, **RECORD_INDEX)
    assert_found(oracle, held, "Hudi's upsert after that")
