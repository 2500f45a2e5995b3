"""Columns of the types that Apache Hudi 1.2 has of its own, and its golden tables of them
(tests/data/golden-1.2/README.md)."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import pyarrow as pa

from hudi_table.codec.logical_types.variants import MARK

FOLDER = Path(__file__).resolve().parents[1] / "data" / "golden-1.2"
VARIANT = pa.struct([("metadata", pa.binary()), ("value", pa.binary())])
CONTAINER = b"0123456789" * 10
"""The file that blobs of the golden tables refer to."""
SCHEMA = pa.schema(
    [
        pa.field("id", pa.string()),
        pa.field("ts", pa.int64()),
        pa.field("v", pa.list_(pa.float32(), 3)),
        pa.field("w", pa.list_(pa.float32(), 3)),
        pa.field("d", pa.list_(pa.float64(), 2)),
        pa.field("b", pa.list_(pa.int8(), 2)),
        pa.field("x", VARIANT, metadata=dict(MARK)),
        pa.field("y", VARIANT, metadata=dict(MARK)),
    ]
)


def rows_of(numbers: range, ts: int) -> pa.Table:
    """Rows with vectors and variants, one of which has none."""
    found: list[dict[str, Any]] = []
    for n in numbers:
        some = {
            "v": [n, ts, -0.5],
            "w": [ts, 0.25, n],
            "d": [n / 4, ts],
            "b": [n % 100, -128],
            "x": {"metadata": b"\x01\x00\x00", "value": bytes([0x0C, n % 100])},
            "y": {"metadata": b"\x01\x00\x00", "value": bytes([0x0C, ts])},
        }
        found.append({"id": f"k{n:03d}", "ts": ts, **(some if n % 7 != 3 else {})})
    return pa.Table.from_pylist(found, schema=SCHEMA)


def golden_table(kind: str, into: Path) -> Path:
    """The golden table of this kind (`cow`, `mor`), unpacked below `into`."""
    with tarfile.open(FOLDER / f"v9_types_{kind}.tar.xz") as archive:
        archive.extractall(into, filter="data")
    return into / f"v9_types_{kind}"


def golden_rows() -> list[dict[str, Any]]:
    """What Hudi returned for the golden tables."""
    found: list[dict[str, Any]] = json.loads((FOLDER / "types.json").read_text("utf-8"))
    return found
