"""What `CREATE TABLE … LOCATION` of Apache Hudi drops from the properties of a table of ours: it is
seen, nothing is written by weaker rules, and mended the table is what it was, for us and for
Hudi."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from hudi_table.api import create_table, open_table
from hudi_table.errors import UnsupportedTableError
from hudi_table.model.table.java_properties import parse_properties
from tests.interop.conftest import Hudis
from tests.support.hudi_oracle import HudiOracle

pytestmark = pytest.mark.interop
SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("v", pa.int64()), ("ts", pa.int64())])
DROPPED = {
    "0.15.0": {
        "hoodie.index.type",
        "hoodie.bucket.index.num.buckets",
        "hoodie.lakeops.bucket.colon.rule",
        "hoodie.table.timeline.timezone",
    },
    "1.0.2": {"hoodie.index.type", "hoodie.bucket.index.num.buckets", "hoodie.lakeops.bucket.colon.rule"},
    "1.1.1": set[str](),
    "1.2.0": set[str](),
}


def rows(*items: tuple[str, str, int, int]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, item, strict=True)) for item in items], schema=SCHEMA)


def test_what_create_table_drops_is_seen_and_mended(hudis: Hudis, tmp_path: Path) -> None:
    base = tmp_path / "table"
    written(base, 6)
    hudis.each_on_a_copy(base, dropped_and_mended)


def written(base: Path, version: int) -> None:
    """A table of ours by event time, with rows in logs."""
    table = create_table(
        base, SCHEMA, record_key="id", partition_by="p", ordering_fields="ts", type="MergeOnRead",
        index={"type": "Bucket", "buckets": 2}, version=version,
    )  # fmt: skip
    table.upsert(rows(("a", "x", 1, 9), ("b", "x", 1, 9)))
    table.upsert(rows(("a", "x", 2, 5)))


def dropped_and_mended(oracle: HudiOracle, copy: Path) -> None:
    """What `oracle` drops is seen, read by the copy, and put back."""
    index = open_table(copy).context.config.index
    before = parse_properties((copy / ".hoodie/hoodie.properties").read_text())
    name = f"kept_{oracle.version.replace('.', '_')}"
    oracle.run(f"CREATE TABLE {name} USING hudi LOCATION '{copy}'")
    oracle.run(f"DROP TABLE {name}")
    found = open_table(str(copy))
    assert set(found.context.lost) == DROPPED[oracle.version], dict(found.context.lost)
    assert found.context.config.index == index
    assert found.scan().to_arrow().sort_by("id")["v"].to_pylist() == [1, 1]
    if found.context.lost:
        with pytest.raises(UnsupportedTableError, match="--mend"):
            found.upsert(rows(("a", "x", 3, 1)))
    assert set(found.mend()) == DROPPED[oracle.version]
    after = parse_properties((copy / ".hoodie/hoodie.properties").read_text())
    assert {key: after.get(key) for key in before if key in DROPPED[oracle.version]} == {
        key: value for key, value in before.items() if key in DROPPED[oracle.version]
    }
    again = open_table(str(copy))
    again.upsert(rows(("a", "x", 3, 1), ("b", "x", 3, 10)))
    expected = [1, 3]
    assert again.scan().to_arrow().sort_by("id")["v"].to_pylist() == expected
    assert oracle.read(copy).sort_by("id")["v"].to_pylist() == expected
