"""Frames of Parquet files for tests, and the rows that tasks would read of them."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from hudi_spark.source_files.packing import pack, unpacked
from hudi_spark.source_files.scan import FileScan

ROWS = 60
_NAMES = ("", "a", "b", "Ä", "ß,:", "zzz")
_WHOLE = [-2, -1, 0, 1, 2]
COLUMNS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "flag": (pa.bool_(), [True, False]),
    "tiny": (pa.int8(), [-128, 0, 1, 127]),
    "small": (pa.int16(), [-32768, 0, 5]),
    "whole": (pa.int32(), _WHOLE),
    "large": (pa.int64(), [-(2**63), 0, 2**63 - 1, 7]),
    "single": (pa.float32(), [0.0, -0.0, 1.5, float("nan"), float("inf")]),
    "double": (pa.float64(), [0.0, -0.0, -1e300, float("nan")]),
    "money": (pa.decimal128(9, 2), [Decimal("-1.50"), Decimal("0.00"), Decimal("9999999.99")]),
    "wide": (pa.decimal128(38, 10), [Decimal("-1.5"), Decimal("12345678901234567890.0123456789")]),
    "name": (pa.string(), list(_NAMES)),
    "raw": (pa.binary(), [b"", b"\x00\xff", b"a"]),
    "day": (pa.date32(), [-719162, -141428, 0, 19000]),
    "moment": (pa.timestamp("us", "UTC"), [-62135596800000000, -1, 0, 1700000000123456]),
    "clock": (pa.timestamp("us"), [-1, 0, 1700000000123456]),
}


def flat_rows(start: int = 0, rows: int = ROWS, seed: int = 3) -> pa.Table:
    """Rows of every flat type with a key, a city and an ordering column; a fifth of the values are
    null."""
    chance = np.random.default_rng(seed)
    columns: dict[str, Any] = {
        "id": pa.array([f"k{number:04d}" for number in range(start, start + rows)]),
        "city": pa.array([f"c{number % 3}" for number in range(rows)]),
        "ts": pa.array(np.arange(rows)),
    }
    for name, (kind, values) in COLUMNS.items():
        picked = [values[number] for number in chance.integers(0, len(values), rows)]
        missing = chance.random(rows) < 0.2
        columns[name] = pa.array(
            [None if gone else value for value, gone in zip(picked, missing, strict=True)], type=kind
        )
    return pa.table(columns)


def written(folder: Path, *tables: pa.Table, **options: Any) -> str:
    """A folder with a file of each table."""
    folder.mkdir()
    for number, table in enumerate(tables):
        pq.write_table(table, folder / f"{number}.parquet", **options)
    return str(folder)


@dataclass(frozen=True)
class OneTask:
    """A numbering that gives every row to task 0."""

    def of(self, rows: pa.RecordBatch) -> Any:
        return np.zeros(len(rows), dtype=np.int32)


def packed(scan: FileScan, numbering: Any = None) -> list[tuple[int, pa.Table]]:
    """What the tasks of a scan would hand on, stream by stream."""
    numbers = pa.record_batch({"id": pa.array(range(len(scan.splits)), pa.int64())})
    found = []
    for batch in pack(iter([numbers]), scan=scan, numbering=numbering or OneTask(), sent=scan.columns.names):
        assert len(batch) == 1
        rows = pa.Table.from_batches(unpacked(batch.column(1)))
        found.append((batch.column(0)[0].as_py(), rows))
    return found


def read(scan: FileScan) -> pa.Table:
    """All rows of a scan."""
    return pa.concat_tables([scan.columns.empty_table(), *(rows for _, rows in packed(scan))])
