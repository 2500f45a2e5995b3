"""The rows whose vectors are nearest to one that is asked for: every vector is compared, batch by
batch.

Facts (measured on `hudi_vector_search` of Hudi 1.2.0): `cosine` is one minus the cosine of the
angle, 1 where one of the two has no length; `l2` is the Euclidean distance; `dot_product` is the
negative of the product, so that less is nearer in each. Rows without a vector are left out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_table.codec.logical_types.vectors import is_vector
from hudi_table.errors import InvalidRequestError

DISTANCE: Final = "_hudi_distance"
_PIECE_BYTES: Final = 16 << 20
"""What one comparison may take of doubles."""
Doubles = npt.NDArray[np.float64]


class Metric(StrEnum):
    """How far two vectors are apart."""

    COSINE = "cosine"
    L2 = "l2"
    DOT_PRODUCT = "dot_product"


def checked_vector(schema: pa.Schema, column: str, given: object) -> Doubles:
    """The vector that is asked for, as doubles. Raises InvalidRequestError that names what does not
    fit the column."""
    vectors = [field.name for field in schema if is_vector(field.type)]
    if column not in vectors:
        have = f"those of the table are {', '.join(vectors)}" if vectors else "the table has none"
        raise InvalidRequestError(f"column {column!r} is no column of vectors; {have}")
    try:
        asked = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidRequestError(f"vector is none: {error}; give a list of numbers") from error
    size = schema.field(column).type.list_size
    if asked.ndim != 1 or len(asked) != size:
        shape = " x ".join(map(str, asked.shape)) or "one"
        raise InvalidRequestError(f"vector has {shape} numbers, and the vectors of column {column!r} have {size}")
    if not np.isfinite(asked).all():
        raise InvalidRequestError("vector has a number that is not finite: give finite numbers")
    return asked


def nearest(batches: Iterable[pa.RecordBatch], column: str, asked: Doubles, k: int, metric: Metric) -> pa.Table | None:
    """The `k` rows nearest to `asked` with their distance in the column `_hudi_distance`, nearest
    first; of rows that are as near as each other those that came first. None of no batch."""
    best: pa.Table | None = None
    for batch in batches:
        column_at = batch.schema.get_field_index(column)
        step = max(1, _PIECE_BYTES // (8 * len(asked)))
        for start in range(0, max(1, batch.num_rows), step):
            piece = batch.slice(start, step)
            found = _with_distances(piece.filter(piece.column(column_at).is_valid()), column_at, asked, metric)
            best = _nearest(found if best is None else pa.concat_tables([best, found]), k)
    return best


def _with_distances(rows: pa.RecordBatch, column_at: int, asked: Doubles, metric: Metric) -> pa.Table:
    numbers = rows.column(column_at).flatten().to_numpy(zero_copy_only=False)
    distances = _METRICS[metric](numbers.astype(np.float64).reshape(rows.num_rows, len(asked)), asked)
    return pa.Table.from_batches([rows]).append_column(DISTANCE, pa.array(distances, pa.float64()))


def _nearest(rows: pa.Table, k: int) -> pa.Table:
    # What is no number is as far as can be; a stable sort keeps the order of what is as near.
    order = np.argsort(rows.column(DISTANCE).to_numpy(), kind="stable")[:k]
    return rows.take(pa.array(order)).combine_chunks()


def _cosine(vectors: Doubles, asked: Doubles) -> Doubles:
    lengths = np.linalg.norm(vectors, axis=1) * np.linalg.norm(asked)
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Doubles = 1.0 - np.where(lengths == 0.0, 0.0, (vectors @ asked) / lengths)
    return found


def _l2(vectors: Doubles, asked: Doubles) -> Doubles:
    found: Doubles = np.linalg.norm(vectors - asked, axis=1)
    return found


def _dot_product(vectors: Doubles, asked: Doubles) -> Doubles:
    found: Doubles = -(vectors @ asked)
    return found


_METRICS: Final[dict[Metric, Callable[[Doubles, Doubles], Doubles]]] = {
    Metric.COSINE: _cosine,
    Metric.L2: _l2,
    Metric.DOT_PRODUCT: _dot_product,
}
