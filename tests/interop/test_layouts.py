"""Keys and partition paths of our tables: read and upserted on by Apache Hudi, continued by us.

Types: `test_types.py`; schemas: `test_merging.py`; the text of single keys:
`test_key_generators.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hudi_table.api import create_table
from tests.interop import ours
from tests.interop.conftest import Hudis
from tests.interop.test_matrix import upsert
from tests.support.hudi_oracle import HudiOracle
from tests.support.rows import by_key

pytestmark = [pytest.mark.interop, pytest.mark.by_turns]

EXTRACT = "hoodie.datasource.read.extract.partition.values.from.path"
BUCKET = {"type": "Bucket", "buckets": 3}
OURS: Mapping[str, Any] = {"record_key": "id", "ordering_fields": "ts", "version": 6}
WORDS = ("plain", "s f/é%:=", "a b+c", "x.y~z", "per%20cent", "q'uote\"s")


@dataclass(frozen=True)
class Layout:
    """Columns beside `id`, `v` and `ts`, each with the value of a row's number, and how the table
    is made of them."""

    columns: Mapping[str, tuple[pa.DataType, Callable[[int], Any]]]
    table: Mapping[str, Any] = field(default_factory=dict)
    key_type: pa.DataType = field(default_factory=pa.string)
    generated: str | None = None
    """The partition field of the timestamp key generator, which no Hudi reads back as it is
    stored."""

    @property
    def schema(self) -> pa.Schema:
        more = [(name, kind) for name, (kind, _) in self.columns.items()]
        return pa.schema([("id", self.key_type), *more, ("v", pa.int32()), ("ts", pa.int64())])

    def rows(self, numbers: Iterable[int], version: int) -> pa.Table:
        found = [
            {name: of(number) for name, (_, of) in self.columns.items()}
            | {"id": self._key(number), "v": version, "ts": version}
            for number in numbers
        ]
        return pa.Table.from_pylist(found, schema=self.schema)

    def seen(self, oracle: HudiOracle, stored: pa.Table) -> pa.Table:
        """The rows as `oracle` shows them (docs/reference/compatibility.md, cases 6 and 7)."""
        if self.generated is None:
            return stored
        at = stored.schema.get_field_index(self.generated)
        if oracle.is_1x and not self.reads_paths(oracle):
            return stored.set_column(at, self.generated, stored.column(at).cast(pa.string()))
        paths = pc.replace_substring_regex(stored["_hoodie_partition_path"], f"^{self.generated}=", "")
        return stored.set_column(at, self.generated, paths)

    def reads_paths(self, oracle: HudiOracle) -> bool:
        """Whether `oracle` must be told to take the field from the path, since it fails on the
        stored type."""
        return oracle.is_1x and self.generated is not None and pa.types.is_timestamp(self.columns[self.generated][0])

    def _key(self, number: int) -> Any:
        if pa.types.is_string(self.key_type):
            return f"k{number:03d}"
        if pa.types.is_date(self.key_type):
            return date(2024, 1, 1) + timedelta(days=number)
        return number


def text(values: tuple[str | None, ...]) -> tuple[pa.DataType, Callable[[int], Any]]:
    return pa.string(), lambda number: values[number % len(values)]


def moment(kind: pa.DataType) -> tuple[pa.DataType, Callable[[int], Any]]:
    return kind, lambda number: datetime(2023, 11, 15, 22, 30, 1, 7000, tzinfo=UTC) + timedelta(days=20 * number)


CITY = text(("nyc", "sf"))
DAY = (pa.date32(), lambda number: date(2024, 2, 27) + timedelta(days=number % 3))
LAYOUTS = {
    "complex-key-bucket": Layout(
        {"city": CITY, "region": text(("a:b", "c-d", "e"))},
        {"record_key": ["id", "region"], "partition_by": ["city"], "index": BUCKET},
    ),
    "complex-key-hash-subset": Layout(
        {"city": CITY, "region": text(("east", "west"))},
        {
            "record_key": ["id", "region"],
            "partition_by": ["city"],
            "index": {"type": "Bucket", "buckets": 3, "hashFields": ["id"]},
        },
    ),
    "complex-key-simple": Layout(
        {"city": CITY, "region": text(("east", "west", "", None))},
        {"record_key": ["id", "region"], "partition_by": ["city"], "hive_style": True},
    ),
    "two-partition-fields": Layout(
        {"city": CITY, "kind": text(("x", "y"))}, {"partition_by": ["city", "kind"], "index": BUCKET}
    ),
    "hive-style": Layout({"city": CITY}, {"partition_by": ["city"], "hive_style": True, "index": BUCKET}),
    "url-encoded": Layout({"city": text(WORDS)}, {"partition_by": ["city"], "url_encode": True, "index": BUCKET}),
    "hive-style-url-encoded": Layout(
        {"city": text((*WORDS, None))}, {"partition_by": ["city"], "hive_style": True, "url_encode": True}
    ),
    "null-partition": Layout({"city": text(("nyc", None))}, {"partition_by": ["city"]}),
    "date-partition": Layout({"day": DAY}, {"partition_by": ["day"], "hive_style": True, "index": BUCKET}),
    "int-key-and-partition": Layout(
        {"shard": (pa.int32(), lambda number: number % 2)},
        {"partition_by": ["shard"], "index": BUCKET},
        key_type=pa.int64(),
    ),
    "date-key": Layout({"city": CITY}, {"partition_by": ["city"], "index": BUCKET}, key_type=pa.date32()),
    "timestamp-partition-millis": Layout(
        {"at": (pa.int64(), lambda number: 1_700_000_000_000 + number * 86_400_000 * 20)},
        {
            "partition_by": [{"field": "at", "type": "Timestamp", "format": "yyyy/MM", "input": "EPOCHMILLISECONDS"}],
            "index": BUCKET,
        },
        generated="at",
    ),
    "timestamp-partition-text": Layout(
        {"at": (pa.string(), lambda number: f"2024-01-{1 + number % 28:02d}")},
        {
            "partition_by": [
                {
                    "field": "at",
                    "type": "Timestamp",
                    "format": "yyyyMMdd",
                    "input": "DATE_STRING",
                    "inputFormat": "yyyy-MM-dd",
                }
            ],
            "hive_style": True,
        },
        generated="at",
    ),
    "timestamp-partition-micros": Layout(
        {"at": moment(pa.timestamp("us", tz="UTC"))},
        {"partition_by": [{"field": "at", "type": "Timestamp", "format": "yyyy/MM"}], "index": BUCKET},
        generated="at",
    ),
    "global-simple": Layout({"city": CITY}, {"partition_by": ["city"], "index": "GlobalSimple"}),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_hudi_reads_and_goes_on_with_our_layout(hudis: Hudis, tmp_path: Path, name: str) -> None:
    layout, base = LAYOUTS[name], tmp_path / "table"
    create_table(base, layout.schema, **{**OURS, **layout.table})
    ours.write(base, "insert", layout.rows(range(12), 1))
    ours.write(base, "upsert", layout.rows(range(8, 16), 2))
    first = by_key(layout.rows(range(12), 1), ("id",)) | by_key(layout.rows(range(8, 16), 2), ("id",))

    def go_on(oracle: HudiOracle, copy: Path) -> None:
        expected = dict(first)

        def check() -> None:
            told = {EXTRACT: "true"} if layout.reads_paths(oracle) else {}
            ours.assert_all_read(copy, oracle, expected.values(), hudi_sees=layout.seen, **told)

        check()
        upsert(oracle, copy, layout.rows([0, 1, 9, 20, 21], 3))
        expected.update(by_key(layout.rows([0, 1, 9, 20, 21], 3), ("id",)))
        check()
        ours.write(copy, "upsert", layout.rows([1, 2, 21, 22], 4))
        expected.update(by_key(layout.rows([1, 2, 21, 22], 4), ("id",)))
        check()

    hudis.each_on_a_copy(base, go_on)
