"""Product reviews as the clustering walks insert them: rows of a known size on disk, their dates in
no order."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hudi_table.api import HudiTable, create_table

SCHEMA = pa.schema(
    [
        ("review_id", pa.string()),
        ("product_category", pa.string()),
        ("customer_id", pa.int64()),
        ("star_rating", pa.int32()),
        ("review_body", pa.string()),
        ("review_date", pa.date32()),
    ]
)
CATEGORY = "Apparel"
FIRST_DAY, DAYS = 16_436, 365
"""2015, as days since 1970."""
_BODY_BYTES = 183
"""Letters of a review: with it a row takes about 175 bytes of zstd Parquet, meta columns
included."""
_ID_BYTES = 14
_PIECE = 100_000
_SAMPLE = 100_000
_LETTERS = np.frombuffer(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 .", dtype=np.uint8)


def reviews(start: int, rows: int) -> pa.Table:
    """Rows number `start` to `start + rows` of an endless, fixed sequence; every key is unique."""
    chance = np.random.default_rng(start)
    numbers = np.arange(start, start + rows, dtype=np.int64)
    prefix = _text(chance, rows, _ID_BYTES)
    suffix = pa.array(numbers).cast(pa.string())
    return pa.table(
        [
            pc.binary_join_element_wise(prefix, suffix, "-"),
            pa.repeat(pa.scalar(CATEGORY), rows),
            pa.array(chance.integers(10_000_000, 60_000_000, rows)),
            pa.array(chance.integers(1, 6, rows, dtype=np.int32)),
            _text(chance, rows, _BODY_BYTES),
            pa.array(chance.integers(FIRST_DAY, FIRST_DAY + DAYS, rows, dtype=np.int32)).cast(pa.date32()),
        ],
        schema=SCHEMA,
    )


def pieces(start: int, rows: int) -> Iterator[pa.Table]:
    """The same rows, a bounded number at a time."""
    for first in range(start, start + rows, _PIECE):
        yield reviews(first, min(_PIECE, start + rows - first))


def land(path: Path, start: int, rows: int) -> None:
    """Write the rows as a landing file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with pq.ParquetWriter(path, SCHEMA, compression="zstd") as writer:
        for piece in pieces(start, rows):
            writer.write_table(piece)


def bytes_per_row(folder: Path, rows: int = _SAMPLE) -> float:
    """What a row takes in a base file, measured on a table of its own."""
    table: HudiTable = create_table(str(folder), SCHEMA, record_key="review_id", partition_by="product_category")
    table.insert(reviews(0, rows))
    size = sum(path.stat().st_size for path in folder.rglob("*.parquet"))
    return size / rows


def _text(chance: np.random.Generator, rows: int, width: int) -> pa.Array:
    letters = _LETTERS[chance.integers(0, len(_LETTERS), rows * width, dtype=np.uint8)]
    offsets = np.arange(0, (rows + 1) * width, width, dtype=np.int32)
    return pa.StringArray.from_buffers(rows, pa.py_buffer(offsets), pa.py_buffer(letters))
