"""Where the engines differ about values that they read back or rewrite: cases 38 to 41 of
docs/reference/compatibility.md."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_table.api import create_table
from hudi_table.arguments import TableTypeName
from tests.interop import ours
from tests.interop.conftest import Hudis
from tests.interop.test_matrix import upsert
from tests.support import hudi_rs
from tests.support.hudi_oracle import HudiFailedError, HudiOracle

pytestmark = pytest.mark.interop

PARTED = pa.schema([("id", pa.string()), ("p", pa.string()), ("ts", pa.int64())])
COSTLY = pa.schema([("id", pa.string()), ("v", pa.string()), ("d", pa.decimal128(10, 2))])
LISTED = pa.schema([("id", pa.string()), ("l", pa.list_(pa.int64())), ("d", pa.decimal128(10, 2)), ("ts", pa.int64())])
LISTS = {"a": [1, 2], "b": [3]}


@pytest.mark.parametrize("hive", [False, True])
def test_the_folder_of_a_partition_value_with_an_equals_sign_is_taken_for_a_name_by_0_15(
    hudis: Hudis, tmp_path: Path, *, hive: bool
) -> None:
    """Case 38."""
    base = tmp_path / "table"
    create_table(base, PARTED, record_key="id", ordering_fields="ts", partition_by="p", hive_style=hive, version=6)
    ours.write(base, "insert", pa.table({"id": ["k"], "p": ["a=b"], "ts": [1]}, PARTED))
    assert ours.read(base)["p"].to_pylist() == hudi_rs.read(base)["p"].to_pylist() == ["a=b"]
    found = hudis.each(lambda oracle: oracle.read(base)["p"].to_pylist())
    assert found == dict.fromkeys(("0.15.0", "1.1.1"), ["a=b"] if hive else ["b"])


def test_hudi_reads_a_nested_timestamp_in_a_log(hudis: Hudis, tmp_path: Path) -> None:
    """Case 39; that hudi-rs fails is pinned by tests/hudi_table/read/test_rs_differences.py."""
    base = tmp_path / "table"
    schema = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("s", pa.struct([("at", pa.timestamp("us", "UTC"))]))])
    create_table(base, schema, record_key="id", ordering_fields="ts", type="MergeOnRead", version=6)
    for number in (1, 2):
        ours.write(base, "upsert", pa.table({"id": ["a"], "ts": [number], "s": [{"at": number}]}, schema))
    assert list(base.rglob("*.log.*")), "the second write is a log"
    mine = ours.read(base)["s"].to_pylist()
    assert [row["at"].microsecond for row in mine] == [2]
    assert hudis.each(lambda oracle: oracle.read(base)["s"].to_pylist()) == {"0.15.0": mine, "1.1.1": mine}


def listed(ts: int, *ids: str) -> pa.Table:
    found = [{"id": key, "l": LISTS[key], "d": Decimal("3.01"), "ts": ts} for key in ids]
    return pa.Table.from_pylist(found, schema=LISTED)


@pytest.mark.parametrize("row_writer", [True, False])
def test_an_upsert_of_0_15_loses_lists_that_the_row_writer_wrote_and_it_copies(
    hudis: Hudis, tmp_path: Path, *, row_writer: bool
) -> None:
    """Case 40: two rows of one file, of which one is updated. Ours keep them on a table of either
    version."""
    told = {
        "hoodie.table.name": "table",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
        "hoodie.index.type": "SIMPLE",
        "hoodie.metadata.enable": "false",
        "hoodie.bulkinsert.shuffle.parallelism": "1",
        "hoodie.datasource.write.operation": "bulk_insert",
        "hoodie.datasource.write.row.writer.enable": str(row_writer).lower(),
    }

    def drive(oracle: HudiOracle) -> tuple[dict[str, Any], ...]:
        after = []
        for who in ("theirs", "ours"):
            base = tmp_path / f"{oracle.version}-{who}"
            oracle.write(base, listed(1, "a", "b"), told)
            if who == "ours":
                ours.write(base, "upsert", listed(2, "a"), options={"hoodie.index.type": "SIMPLE"})
            else:
                upsert(oracle, base, listed(2, "a"), **{"hoodie.metadata.enable": "false"})
            rows = oracle.read(base).to_pylist()
            assert {row["id"]: row["d"] for row in rows} == dict.fromkeys(LISTS, Decimal("3.01")), who
            after.append({row["id"]: row["l"] for row in rows})
        return tuple(after)

    found = hudis.each(drive)
    lost = LISTS | {"b": None} if row_writer else LISTS
    assert found == {"0.15.0": (lost, LISTS), "1.1.1": (LISTS, LISTS)}


@pytest.mark.parametrize("kind", ["CopyOnWrite", "MergeOnRead"])
def test_an_upsert_of_1_1_fails_where_the_ordering_column_is_a_decimal(
    hudis: Hudis, tmp_path: Path, kind: TableTypeName
) -> None:
    """Case 41: with 0.15.0 and with ours the larger value wins; of merge-on-read tables all are
    right."""
    base = tmp_path / "table"
    create_table(base, COSTLY, record_key="id", ordering_fields="d", type=kind, version=6)
    ours.write(base, "insert", costly("first", "5.00"))
    ours.write(base, "upsert", costly("second", "6.00"))
    assert ours.read(base)["v"].to_pylist() == ["second"]

    def drive(oracle: HudiOracle, copy: Path) -> str:
        without = {"hoodie.metadata.enable": "false"}
        if kind == "CopyOnWrite" and oracle.is_1x:
            with pytest.raises(HudiFailedError, match="HoodieUpsertException"):
                upsert(oracle, copy, costly("newer", "7.00"), **without)
            return ours.read(copy)["v"].to_pylist()[0]
        upsert(oracle, copy, costly("older", "4.00"), **without)
        upsert(oracle, copy, costly("newer", "7.00"), **without)
        assert oracle.read(copy)["v"].to_pylist() == ours.read(copy)["v"].to_pylist()
        return ours.read(copy)["v"].to_pylist()[0]

    found = hudis.each_on_a_copy(base, drive)
    assert found == {"0.15.0": "newer", "1.1.1": "newer" if kind == "MergeOnRead" else "second"}


def costly(value: str, price: str) -> pa.Table:
    return pa.table({"id": ["k"], "v": [value], "d": pa.array([Decimal(price)], COSTLY.field("d").type)}, COSTLY)
