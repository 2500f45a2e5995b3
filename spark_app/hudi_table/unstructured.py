"""`vector_search` and `read_blobs`: what is asked of columns of vectors and of blobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from hudi_table.api import HudiTable, open_table
from hudi_table.errors import InvalidOptionError
from hudi_table.model.given import checked_call
from hudi_table.read.moments import Moment
from hudi_table.table.engine.memory import DEFAULT_MEMORY

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["read_blobs", "vector_search"]

MetricName = Literal["cosine", "l2", "dot_product"]


@checked_call
def vector_search(
    table: HudiTable | str | Path,
    column: str,
    vector: Sequence[float],
    k: int = 10,
    metric: MetricName = "cosine",
    *,
    columns: Sequence[str] | None = None,
    filter: object = None,  # noqa: A002 - as of a scan
    as_of: Moment | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> pa.Table:
    """The `k` rows whose vectors in `column` are nearest to `vector`, nearest first, with their
    distance in a last column `_hudi_distance`.

    `metric`: `cosine` (one minus the cosine of the angle), `l2` (Euclidean) or `dot_product` (the
    negative of the product); less is nearer in each. Every vector of the rows that `filter` leaves
    is compared, batch by batch, as Hudi's `hudi_vector_search` does; rows without a vector are left
    out. `columns`, `filter` and `as_of` are as for `HudiTable.scan`. Raises InvalidRequestError
    that names what does not fit: the column, the length of `vector`; InvalidOptionError.
    """
    from hudi_table.read.unstructured.nearest import DISTANCE, Metric, checked_vector, nearest

    if k < 1:
        raise InvalidOptionError(f"k is {k}: give 1 or more rows")
    if metric not in set(Metric):
        raise InvalidOptionError(f"metric is {metric!r}: use one of {', '.join(Metric)}")
    opened = table if isinstance(table, HudiTable) else open_table(table, storage_options=storage_options)
    asked = checked_vector(opened.schema(), column, vector)
    read = None if columns is None else [*columns, *([] if column in columns else [column])]
    rows = opened.scan(read, filter, as_of=as_of)
    with rows.to_batches() as batches:
        found = nearest(batches, column, asked, k, Metric(metric))
    if found is None:
        import pyarrow as pa

        found = rows.schema.append(pa.field(DISTANCE, pa.float64())).empty_table()
    return found if columns is None else found.select([*columns, DISTANCE])


@checked_call
def read_blobs(
    table: HudiTable | str | Path,
    blobs: pa.Array | pa.ChunkedArray,
    *,
    roots: Sequence[str] = (),
    max_memory: int = DEFAULT_MEMORY,
    storage_options: Mapping[str, str] | None = None,
) -> pa.LargeBinaryArray:
    """The bytes of blobs that a scan of `table` gave, row by row; null where there is none.

    Of a blob that is out of line they are read from the file that it refers to, in the range that
    it tells. A reference can name any file, so files are read below the table's own folder and the
    `roots` alone, which are paths or URIs of folders. `storage_options`: of the stores of the
    roots, and of the table's where it is not opened yet. More than `max_memory` bytes are refused:
    give fewer rows. Raises InvalidRequestError for a reference outside of the roots,
    InvalidDataError for one whose file is gone or too short."""
    import pyarrow as pa

    from hudi_table.read.unstructured.blobs import blob_bytes
    from hudi_table.table.store.opening import open_storage

    context = (table if isinstance(table, HudiTable) else open_table(table, storage_options=storage_options)).context
    whole = blobs.combine_chunks() if isinstance(blobs, pa.ChunkedArray) else blobs
    opened = {root: partial(open_storage, root, storage_options) for root in roots}
    return blob_bytes(whole, {**opened, context.base_path: lambda: context.storage}, max_memory)
