"""Data skipping across engines: Hudi leaves files unread by statistics of ours and finds every row.

Aspects: columns of all types that have statistics, nulls, NaN, texts longer than a Parquet footer keeps; partitioned and not; that files
are left unread is seen by what a broken one does. Ours by Hudi's statistics: tests/hudi_table/read/test_skipping.py.
"""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_table.api import create_table, open_table
from tests.interop.conftest import Hudis
from tests.support.hudi_oracle import HudiOracle

pytestmark = pytest.mark.interop

INDEXED = {
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.parquet.small.file.limit": "0",
}
SKIPPING = {"hoodie__metadata__enable": "true", "hoodie__enable__data__skipping": "true"}
START = datetime(2024, 1, 1, tzinfo=UTC)
FILTERS = {
    "n = 13": ["k013"],
    "d > 1000": ["k013"],
    "text > 'y' and n is not null": [f"k{n:03d}" for n in range(20, 29)],
    "price = 3.01 or at < timestamp'2024-01-01 02:00:00'": ["k000", "k001", "k003"],
    "n is null and day is null": ["k009", "k019", "k029"],
    "wide >= 270 and name > 'n\u00e92'": ["k027", "k028"],
}
"""With the keys of the rows that match; NaN is greater than any number in Spark."""


def rows(first: int) -> pa.Table:
    """Ten rows, the last one null throughout; each batch becomes a file of its own."""
    numbers = [None if n % 10 == 9 else n for n in range(first, first + 10)]

    def column(kind: pa.DataType, value: object) -> pa.Array:
        assert callable(value)
        return pa.array([None if n is None else value(n) for n in numbers], kind)

    return pa.table(
        {
            "id": [f"k{n:03d}" for n in range(first, first + 10)],
            "city": ["sf"] * 10,
            "n": column(pa.int32(), lambda n: n),
            "big": column(pa.int64(), lambda n: n * 10**9),
            "f": column(pa.float32(), lambda n: n),
            "d": column(pa.float64(), lambda n: math.nan if n == 13 else float(n)),
            "good": column(pa.bool_(), lambda n: n >= 20),
            "name": column(pa.string(), lambda n: f"n\u00e9{n}\U0001f600"),
            "text": column(pa.string(), lambda n: ("x" if n < 20 else "z") * (5000 if n % 2 else 1)),
            "day": column(pa.date32(), lambda n: date(2024, 1, 1) + timedelta(days=n)),
            "at": column(pa.timestamp("us", tz="UTC"), lambda n: START + timedelta(hours=n)),
            "price": column(pa.decimal128(10, 2), lambda n: Decimal(n) + Decimal("0.01")),
            "wide": column(pa.decimal128(25, 10), lambda n: Decimal(n) * 10),
        }
    )


def made(base: Path, partitioned: bool) -> None:
    """Three files."""
    table = create_table(base, rows(0).schema, record_key="id", partition_by=["city"] if partitioned else [], name="t")
    for first in (0, 10, 20):
        table.insert(rows(first), options=INDEXED)


def test_hudi_finds_every_row_by_statistics_of_ours(hudis: Hudis, tmp_path: Path) -> None:
    base = tmp_path / "t"
    made(base, partitioned=True)
    assert len(open_table(str(base)).scan().plan_files()) == 3

    for where, keys in FILTERS.items():
        found = hudis.each(partial(keys_where, base, where))
        assert found == {"0.15.0": keys, "1.1.1": keys}, where


def keys_where(base: Path, where: str, hudi: HudiOracle) -> list[str]:
    return sorted(hudi.read(base, where=where, **SKIPPING)["id"].to_pylist())


def test_hudi_015_leaves_files_unread_by_statistics_of_ours(hudis: Hudis, tmp_path: Path) -> None:
    """Not so 1.1.1, which reads every file of such a table."""
    base = tmp_path / "t"
    made(base, partitioned=False)
    (other,) = open_table(str(base)).scan(filter="n = 13").plan_files()["path"].to_pylist()
    for path in base.rglob("*.parquet"):
        if path.name != Path(other).name:
            path.write_bytes(b"nothing")
    assert keys_where(base, "n = 13", hudis["0.15.0"]) == ["k013"]
    assert open_table(str(base)).scan(filter="n = 13").to_arrow()["id"].to_pylist() == ["k013"]
