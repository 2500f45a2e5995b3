"""Signs by which a table shows that its rows lie in buckets, though nothing that it stores names an
index."""

from __future__ import annotations

from collections.abc import Sequence

from hudi_table.errors import InvalidOptionError
from hudi_table.model.names import bucket_of_file_id
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.view.file_system_view import FileSlice
from hudi_table.table.view.hash_rings import RINGS

SAMPLED = 4
"""Files, and rings, that are looked at: one writer names all of its own in the same way."""
_BUCKETS_MAX = 10_000


def refuse_rings(ctx: TableContext) -> None:
    """Raise InvalidOptionError for a table with hash rings, where the options name another
    index."""
    if any(info.path for info in ctx.storage.list(RINGS, limit=SAMPLED)):
        raise InvalidOptionError(
            "the table's buckets are found by consistent hashing, and the options name another index: other writers would not find our "
            "rows; give hoodie.index.type=BUCKET with hoodie.index.bucket.engine=CONSISTENT_HASHING and its number of buckets",
            base_path=ctx.base_path,
        )


def refuse_buckets(ctx: TableContext, slices: Sequence[FileSlice]) -> None:
    """Raise InvalidOptionError if the file ids are those of buckets, where the options name another
    index."""
    buckets = [bucket_of_file_id(item.file_id) for item in slices]
    if len(slices) > 1 and all(bucket is not None and bucket < _BUCKETS_MAX for bucket in buckets):
        raise InvalidOptionError(
            f"the options name another index, but file ids such as {slices[0].file_id} are those of a bucket index; "
            "give hoodie.index.type=BUCKET and its number of buckets",
            base_path=ctx.base_path,
        )
