"""Keys and partition paths that Hudi itself makes, held against ours for the same rows; and where
its versions differ.

Aspects: the text of every type; composite keys with missing parts; a complex key of one field
(whose encoding changed between the versions); timestamps through the row writer; `:` in the first
folder. Tables going back and forth between the engines with each key generator: `test_layouts.py`.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_table.api import create_table, open_table
from hudi_table.model.service.findings import Check
from hudi_table.model.table.config import PartitionField, TableConfig, TableType
from hudi_table.table.keys.record_keys import record_keys
from hudi_table.write.keygen.columns import partition_paths
from tests.interop import ours
from tests.interop.conftest import Hudis
from tests.support.hudi_oracle import HudiFailedError, HudiOracle

pytestmark = pytest.mark.interop

AT = [
    datetime(2024, 2, 29, 12, 34, 56, 789000, UTC),
    datetime(1970, 1, 1, tzinfo=UTC),
    datetime(2024, 1, 1, 0, 0, 1, 100000, UTC),
]
ROWS = pa.table(
    {
        "id": ["a b", "é中😀", "x:y,z"],
        "yes": [True, False, True],
        "i32": pa.array([1, -(2**31), 2**31 - 1], pa.int32()),
        "i64": [-(2**63), 0, 2**63 - 1],
        "f32": pa.array([1e-5, 123456.789, 1e7], pa.float32()),
        "f64": [0.1, -1.5e300, 123456.789],
        "d10": pa.array([Decimal("1.50"), Decimal("-0.05"), Decimal(0)], pa.decimal128(10, 2)),
        "d24": pa.array([Decimal("1E-10"), Decimal(0), Decimal("12345678901234.123456789")], pa.decimal128(24, 10)),
        "day": [date(2024, 2, 29), date(1969, 12, 31), date(9999, 12, 31)],
        "at": pa.array(AT, pa.timestamp("us", "UTC")),
        "part": ["x", None, ""],
        "ts": [1, 1, 1],
    }
)
LOGGED = {"hoodie__datasource__write__table__type": "MERGE_ON_READ"}
BUCKETS = {"hoodie__index__type": "BUCKET", "hoodie__bucket__index__num__buckets": "2"}
ENCODED = {"cow": {}, "mor": LOGGED, "cow-bucket": BUCKETS, "mor-bucket": LOGGED | BUCKETS}
FIELDS = ("yes", "i32", "i64", "f32", "f64", "d10", "d24", "day", "at", "part")


def options(operation: str, key: str, partition: str, generator: str, **more: str) -> dict[str, str]:
    return {
        "hoodie.table.name": "table",
        "hoodie.datasource.write.operation": operation,
        "hoodie.datasource.write.recordkey.field": key,
        "hoodie.datasource.write.partitionpath.field": partition,
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.keygenerator.class": f"org.apache.hudi.keygen.{generator}KeyGenerator",
        "hoodie.metadata.enable": "false",
    } | {key.replace("__", "."): value for key, value in more.items()}


def keys_of(base: Path) -> list[tuple[str, str]]:
    """(record key, partition path) of the rows in order of `i32`, read by ourselves from the
    files."""
    found = open_table(str(base)).scan(["i32", "_hoodie_record_key", "_hoodie_partition_path"], meta=True).to_arrow()
    rows = found.sort_by("i32").to_pylist()
    return [(row["_hoodie_record_key"], row["_hoodie_partition_path"]) for row in rows]


def mine(key: str, *partitions: str, rows: pa.Table = ROWS, **changes: Any) -> list[tuple[str, str]]:
    config = TableConfig(
        "t", TableType.COPY_ON_WRITE, tuple(key.split(",")), tuple(map(PartitionField, partitions)), **changes
    )
    rows = rows.sort_by("i32")
    return list(zip(record_keys(rows, config).to_pylist(), partition_paths(rows, config).to_pylist(), strict=True))


@pytest.mark.by_turns
def test_hudi_gives_every_type_the_text_that_we_give_it(hudis: Hudis, tmp_path: Path) -> None:
    """All fields in one composite key, and again as partition fields, escaped."""
    fields = ",".join(FIELDS)

    def write(oracle: HudiOracle) -> None:
        base = tmp_path / oracle.version
        more = {"hoodie__datasource__write__partitionpath__urlencode": "true"}
        oracle.write(base, ROWS, options("upsert", fields, fields, "Complex", **more), mode="overwrite")
        assert keys_of(base) == mine(fields, *FIELDS, url_encode=True)

    hudis.each(write)


def test_a_complex_key_of_one_field_is_written_as_the_files_show(hudis: Hudis, tmp_path: Path) -> None:
    """On a table of their own, 0.15.0 writes `v` and 1.1.1 `id:v`, or `v` by an option that it does
    not store, as 1.0.2 does; our upserts find them all. On ours both write `v`, with no option
    given."""

    def theirs(oracle: HudiOracle) -> None:
        checked = {"hoodie__write__complex__keygen__validation__enable": "false"}
        ways = [("plain", checked, "FieldPrefixed" if oracle.is_1x else "Raw")]
        if oracle.is_1x:
            told = {"hoodie__write__complex__keygen__new__encoding": "true"}
            ways += [(kind, checked | told | more, "Raw") for kind, more in ENCODED.items()]
        for way, more, encoding in ways:
            base = tmp_path / f"theirs-{oracle.version}-{way}"
            # Of keys with a colon the releases differ in the bucket too (case 1).
            rows = ROWS.slice(0, 2) if "bucket" in way else ROWS
            oracle.write(base, rows, options("upsert", "id", "i32,day", "Complex", **more), mode="overwrite")
            expected = mine("id", "i32", "day", rows=rows, key_encoding=encoding)
            assert keys_of(base) == expected
            buckets = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
            index = buckets if "bucket" in way else {"hoodie.index.type": "SIMPLE"}
            ours.write(base, "upsert", rows, options=index)
            assert keys_of(base) == expected
            assert not [found for found in open_table(str(base)).doctor(keys=True) if found.check is Check.WRONG_KEY]

    hudis.each(theirs)
    base = tmp_path / "table"
    create_table(base, ROWS.schema, record_key="id", partition_by=["i32", "day"], ordering_fields="ts", version=6)
    ours.write(base, "insert", ROWS)

    def go_on(oracle: HudiOracle, copy: Path) -> None:
        told = {"hoodie.table.name": "table", "hoodie.datasource.write.operation": "upsert"}
        oracle.write(copy, ROWS, told | {"hoodie.metadata.enable": "false"})
        assert keys_of(copy) == mine("id", "i32", "day")

    hudis.each_on_a_copy(base, go_on)


def test_the_row_writer_of_bulk_insert_gives_timestamps_another_text_than_upsert(hudis: Hudis, tmp_path: Path) -> None:
    texts = {"1970-01-01 00:00:00.0", "2024-02-29 12:34:56.789", "2024-01-01 00:00:01.1"}

    def write(oracle: HudiOracle) -> None:
        base = tmp_path / oracle.version
        oracle.write(base, ROWS, options("bulk_insert", "at", "", "Nonpartitioned"), mode="overwrite")
        assert {key for key, _ in keys_of(base)} == texts
        oracle.write(base, ROWS, options("upsert", "at", "", "Nonpartitioned"), mode="overwrite")
        assert keys_of(base) == mine("at")

    hudis.each(write)


def test_hudi_cannot_write_a_colon_in_the_first_folder(hudis: Hudis, tmp_path: Path) -> None:
    def write(oracle: HudiOracle) -> None:
        base = tmp_path / oracle.version
        with pytest.raises(HudiFailedError, match="URISyntaxException"):
            oracle.write(base, ROWS.slice(2), options("upsert", "i32", "id", "Simple"), mode="overwrite")

    hudis.each(write)
