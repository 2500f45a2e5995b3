"""Indexes of expressions beside Hudi: its own that we go on with, ours that it goes on with, on
copy-on-write and merge-on-read tables of versions 8 and 9.

After each step Hudi finds by the index the rows that are there, where a failure of skipping fails
its scan, and the bounds in the index are those of the rows (`differences`). Matrix: {1.0.2 on
version 8, 1.1.1 on 8 and 9, 1.2.0 on 9} × {copy-on-write, merge-on-read} × {Hudi's, ours}; then each
function that is kept, of texts, numbers, dates and instants as Spark itself computes it.

Omitted: numbers of texts and dates (`length`, `year`, …), by whose bounds Hudi cannot filter
(docs/reference/compatibility.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import get_args

import pytest

from hudi_table.api import open_table
from hudi_table.arguments import TableTypeName
from hudi_table.metadata.compaction import compact_metadata
from hudi_table.metadata.validate import differences
from tests.interop.further import Releases
from tests.interop.test_data_skipping import COLUMNS, STATISTICS, Held, asked, written
from tests.interop.test_later_versions import ORACLE
from tests.support.hudi_oracle import HudiOracle

pytestmark = [pytest.mark.interop]

FEW = {name: COLUMNS[name] for name in ("i32", "i64", "text", "day", "at")}
ASKED = {
    "by_upper": ("column_stats", "text", "upper", ""),
    "by_added": ("column_stats", "day", "date_add", "days='3'"),
    "by_month": ("column_stats", "i64", "from_unixtime", "format='yyyy-MM'"),
    "by_id": ("bloom_filters", "id", "upper", ""),
}
"""Hudi has no bloom filters of logs: the last one is of copy-on-write tables alone."""
PAIRS = [("1.0.2", 8), (ORACLE, 8), (ORACLE, 9), ("1.2.0", 9)]


@pytest.fixture(scope="module")
def start() -> Iterator[Callable[[str], HudiOracle]]:
    """Starts a release for the first test that asks for it."""
    with ExitStack() as stack:
        further = Releases(stack)

        @cache
        def started(release: str) -> HudiOracle:
            return stack.enter_context(HudiOracle(release)) if release == ORACLE else further[release]

        yield started


def made_by_hudi(oracle: HudiOracle, held: Held, names: list[str]) -> None:
    """`CREATE INDEX` of each of them."""
    name = f"made_{held.base.parent.name}".replace("-", "_")
    told = STATISTICS | {
        "hoodie.write.table.version": str(held.version),
        "hoodie.write.auto.upgrade": "false",
        "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider",
    }
    oracle.run(f"CREATE TABLE {name} USING hudi LOCATION '{held.base}'")
    for key, value in told.items():
        oracle.run(f"SET {key}={value}")
    try:
        for index in names:
            using, column, function, options = ASKED[index]
            more = f", {options}" if options else ""
            oracle.run(f"CREATE INDEX {index} ON {name} USING {using}({column}) OPTIONS(expr='{function}'{more})")
    finally:
        for key in told:
            oracle.run(f"RESET {key}")
        oracle.run(f"DROP TABLE {name}")
    # `CREATE TABLE` of 1.0.2 drops what tells the index of the table's keys.
    open_table(held.base).mend()


def conditions(held: Held) -> dict[str, list[str]]:
    """Filters by the expressions, with the keys of the rows that meet them."""
    told = [(key, row) for key, row in held.rows.items() if row["text"] is not None]
    some = sorted({row["text"] for _, row in told})[:: max(1, len(told) // 4)]
    found = {f"upper(`text`) = upper('{text}')": [key for key, row in told if row["text"] == text] for text in some}
    found["upper(`text`) IN ('NOBODY', upper('t13 é中'))"] = [
        key for key, row in told if row["text"] == FEW["text"].value(13)
    ]
    for number in (5, 13, 21):
        day = FEW["day"].value(number)
        found[f"date_add(`day`, 3) = date_add(DATE'{day}', 3)"] = [key for key, row in told if row["day"] == day]
        seconds = FEW["i64"].value(number)
        found[f"from_unixtime(`i64`, 'yyyy-MM') = from_unixtime({seconds}, 'yyyy-MM')"] = [
            key for key, row in told if row["i64"] == seconds
        ]
    for key in ("k05", "k13", "k99"):
        found[f"upper(id) = upper('{key}')"] = [key] if key in held.rows else []
    return {condition: sorted(keys) for condition, keys in found.items()}


def assert_found(oracle: HudiOracle, held: Held, where: str) -> None:
    """Hudi finds every row by the indexes, and they hold the bounds of the rows."""
    table = open_table(held.base)
    names = list(ASKED) if held.kind == "CopyOnWrite" else list(ASKED)[:-1]
    assert {f"expr_index_{name}" for name in names} <= set(table.context.config.metadata_partitions), where
    assert differences(table.context) == [], where
    expected = conditions(held)
    found = asked(oracle, held, list(expected), "strict")
    wrong = {each: (found[each], keys) for each, keys in expected.items() if found[each] != keys}
    assert not wrong, f"{where}, found and expected: {wrong}"


@pytest.mark.parametrize("whose", ["Hudi's", "ours"])
@pytest.mark.parametrize("kind", get_args(TableTypeName))
@pytest.mark.parametrize(("release", "version"), PAIRS)
def test_indexes_go_on_on_both_sides(
    tmp_path: Path,
    start: Callable[[str], HudiOracle],
    release: str,
    version: int,
    kind: TableTypeName,
    whose: str,
) -> None:
    oracle = start(release)
    held = written(tmp_path / "table", version, kind, FEW, **STATISTICS)
    names = list(ASKED) if kind == "CopyOnWrite" else list(ASKED)[:-1]
    if whose == "ours":
        asked_for = [
            f"expr_index_{name}={function}({column}) using {using} {options}"
            for name in names
            for using, column, function, options in [ASKED[name]]
        ]
        open_table(held.base).build_metadata(asked_for)
    else:
        held.write_by(oracle, range(22, 26), 3)
        made_by_hudi(oracle, held, names)
    assert_found(oracle, held, "made")
    held.write(range(4, 9), 4)
    assert_found(oracle, held, "our upsert")
    held.write_by(oracle, range(7, 12), 5)
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
    held.write_by(oracle, range(4, 8), 6)
    assert_found(oracle, held, "Hudi's upsert after that")
    open_table(held.base).clean({"hoodie.cleaner.commits.retained": "1"}, force=True)
    assert_found(oracle, held, "our clean")
