"""`hoodie.allow.operation.metadata.field`: tables whose files have `_hoodie_operation`, ours and
Hudi's, read and continued by each other."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from hudi_table.api import open_table
from hudi_table.model.names import OPERATION_COLUMN
from tests.interop import ours
from tests.interop.conftest import Hudis
from tests.interop.model import rows
from tests.support.changelog import tell_operations
from tests.support.hudi_oracle import HudiOracle
from tests.support.rows import assert_same_rows, by_key

pytestmark = pytest.mark.interop

FIELD = "hoodie.allow.operation.metadata.field"
WITH = {FIELD: "true"}
WRITE = "hoodie.datasource.write."
TOLD = {
    "hoodie.table.name": "t",
    f"{WRITE}recordkey.field": "id",
    f"{WRITE}partitionpath.field": "city",
    f"{WRITE}precombine.field": "ts",
    f"{WRITE}operation": "upsert",
    "hoodie.metadata.enable": "false",
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": "3",
}
KEY = ("id",)


def told(base: Path, kind: str) -> dict[str, str]:
    """What Hudi's writer is told of a table at `base`; no compaction comes with a write."""
    more = {
        f"{WRITE}table.type": kind,
        "hoodie.compact.inline": "false",
        "hoodie.compact.inline.max.delta.commits": "99",
    }
    return TOLD | {"hoodie.table.name": base.name} | more


@pytest.mark.by_turns
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_hudi_reads_and_continues_tables_of_ours_that_have_the_column(hudis: Hudis, tmp_path: Path, kind: str) -> None:
    base = tmp_path / "t"
    ours.create(base, index="bucket", partitioned=True, type=kind)
    ours.write(base, "insert", rows(range(6), 1), options=WITH)
    ours.write(base, "delete", rows(range(1), 1), options=WITH)
    ours.write(base, "upsert", rows(range(3, 9), 2), options=WITH)
    mine = ours.read(base)

    def check(oracle: HudiOracle, copy: Path) -> None:
        shown = oracle.read(copy)
        assert OPERATION_COLUMN in shown.column_names
        logged = {None, "U"} if kind == "MERGE_ON_READ" else {None}
        assert set(shown[OPERATION_COLUMN].to_pylist()) == logged
        assert_same_rows(shown, mine, key=KEY, columns=mine.column_names, of=repr(oracle))
        oracle.write(copy, more := rows(range(5, 12), 3), told(base, kind))
        expected = (by_key(mine, KEY) | by_key(more, KEY)).values()
        assert_same_rows(ours.read(copy), expected, key=KEY, of=f"ours after {oracle!r}")
        assert_same_rows(oracle.read(copy), expected, key=KEY, columns=mine.column_names, of=repr(oracle))

    hudis.each_on_a_copy(base, check)


@pytest.mark.by_turns
@pytest.mark.parametrize("go_on", [WITH, {}], ids=["with", "without"])
def test_a_table_that_hudi_wrote_with_the_column_is_read_and_continued(
    hudis: Hudis, tmp_path: Path, go_on: dict[str, str]
) -> None:
    def check(oracle: HudiOracle) -> None:
        base = tmp_path / oracle.version
        oracle.write(base, rows(range(6), 1), told(base, "COPY_ON_WRITE") | WITH)
        oracle.write(base, rows(range(4, 8), 2), told(base, "COPY_ON_WRITE") | WITH)
        before = ours.read(base)
        assert before.num_rows == 8
        found = open_table(str(base)).scan(["id", OPERATION_COLUMN]).to_arrow()
        assert found[OPERATION_COLUMN].null_count == 8
        options = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "3"}
        ours.write(base, "upsert", more := rows(range(6, 10), 3), options=options | go_on)
        expected = (by_key(before, KEY) | by_key(more, KEY)).values()
        assert_same_rows(oracle.read(base), expected, key=KEY, columns=before.column_names, of=repr(oracle))

    hudis.each(check)


def test_rows_of_a_changelog_that_delete_are_gone_for_all_but_old_rows_of_updates_for_0_15(
    hudis: Hudis, tmp_path: Path
) -> None:
    base = tmp_path / "t"
    ours.create(base, index="bucket", partitioned=True, type="MERGE_ON_READ")
    ours.write(base, "insert", rows(range(6), 1))
    ours.write(base, "upsert", changed := rows(range(3), 2), options=WITH)
    tell_operations(base, {"k000": "D", "k001": "-U"})
    everything = (by_key(rows(range(6), 1), KEY) | by_key(changed, KEY)).values()
    left = [row for row in everything if row["id"] not in ("k000", "k001")]
    assert_same_rows(ours.read(base), left, key=KEY, of="ours")
    columns = pa.schema(changed.schema).names
    assert_same_rows(hudis["1.1.1"].read(base), left, key=KEY, columns=columns, of="1.1.1")
    shown = [row for row in everything if row["id"] != "k000"]
    assert_same_rows(hudis["0.15.0"].read(base), shown, key=KEY, columns=columns, of="0.15.0")


def test_hudi_itself_writes_no_rows_to_logs_that_have_the_column(hudis: Hudis, tmp_path: Path) -> None:
    """Why the docs tell Spark's users of Hudi to leave the option out of merge-on-read tables."""
    base = tmp_path / "t"
    hudis["1.1.1"].write(base, rows(range(6), 1), told(base, "MERGE_ON_READ") | WITH)
    hudis["1.1.1"].write(base, rows(range(3), 2), told(base, "MERGE_ON_READ") | WITH)
    assert {row["ts"] for row in ours.read(base).to_pylist()} == {1000}
