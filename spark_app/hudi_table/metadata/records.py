"""The `files` entries that a commit, a clean or a listing makes: rows of (key, name, size,
deleted).

Facts (measured on Hudi 0.15.0): a commit lists the files of its write stats, change data logs among
them, under their partition, with the sizes of the stats, and its partitions under
`__all_partitions__`; what a replacecommit hides stays until a clean; a clean lists the files of its
plan as tombstones of size 0, and a partition that it empties as a tombstone in the list of
partitions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_table.codec.metadata.keys import file_group_index, secondary_prefixes_of
from hudi_table.codec.metadata.records import FILES, PARTITIONS
from hudi_table.errors import UnsupportedTableError
from hudi_table.metadata.merging import nested
from hudi_table.model.metadata_table import ALL_PARTITIONS, AnyPartition, partition_key
from hudi_table.model.timeline.commits import CDC_STATS, CommitMetadata

ENTRIES = pa.schema([("key", pa.string()), ("name", pa.string()), ("size", pa.int64()), ("deleted", pa.bool_())])


@dataclass(frozen=True, slots=True)
class Entries:
    """What a delta says of one partition: `rows` to put, sorted by `key`, and `deleted` keys. `of`:
    the data partition whose keys they are, in a record index by partition. `whole`: as in
    `group_numbers`."""

    rows: pa.Table
    deleted: pa.Array = field(default_factory=lambda: pa.array([], pa.string()))
    of: str | None = None
    whole: bool = True


def group_numbers(keys: pa.Array | pa.ChunkedArray, groups: int, *, whole: bool) -> npt.NDArray[np.int32]:
    """In which of so many file groups each key lies: that of the `whole` key, or of a pair that of
    its value."""
    return file_group_index(keys if whole else secondary_prefixes_of(keys), groups)


class UnkeptError(UnsupportedTableError):
    """A partition that commits cannot keep any more. For whoever writes it is dropped, and nothing
    else happens."""

    internal = True

    def __init__(self, partition: AnyPartition, why: str) -> None:
        super().__init__(why)
        self.partition = partition


Derive = Callable[[AnyPartition, bool], Sequence[Entries]]
"""The entries of a partition; none for no change. Raises UnkeptError. The flag: whether its record
index is by partition."""


def file_records(entries: pa.Table) -> pa.Table:
    """Records, sorted by key, of rows of ENTRIES or of a listing: columns `key`, `type` and
    `files`."""
    found = nested(entries)
    kinds = pc.if_else(pc.equal(found["key"], ALL_PARTITIONS), PARTITIONS, FILES).cast(pa.int32())
    return found.add_column(1, "type", kinds)


def entries_of_commit(metadata: CommitMetadata) -> pa.Table:
    """Those of a commit, deltacommit, replacecommit or compaction."""
    sizes: dict[tuple[str, str], int] = {}
    for stat in metadata.stats:
        changes: Mapping[str, int] = stat.extra.get(CDC_STATS) or {}
        for path, size in [(stat.path, stat.file_size_in_bytes), *changes.items()]:
            place = (stat.partition_path, path.rpartition("/")[2])
            sizes[place] = max(size, sizes.get(place, 0))
    return entries_of_files(sizes)


def entries_of_files(sizes: Mapping[tuple[str, str], int], partitions: Iterable[str] = ()) -> pa.Table:
    """Those of files that are there, by partition and name, with their sizes in bytes; and of
    `partitions` without any."""
    known = sorted({partition for partition, _ in sizes}.union(partitions))
    rows = [(ALL_PARTITIONS, partition_key(partition), 0, False) for partition in known]
    rows += [(partition_key(partition), name, size, False) for (partition, name), size in sizes.items()]
    return _table(rows)


def entries_of_clean(deleted: Mapping[str, Iterable[str]], dropped: Iterable[str]) -> pa.Table:
    """Those of a clean: file names by partition that are gone, and partitions that are."""
    rows = [(ALL_PARTITIONS, partition_key(partition), 0, True) for partition in dropped]
    rows += [(partition_key(partition), name, 0, True) for partition, names in deleted.items() for name in names]
    return _table(rows)


def _table(rows: list[tuple[str, str, int, bool]]) -> pa.Table:
    columns = list(zip(*sorted(rows), strict=True)) if rows else [(), (), (), ()]
    return pa.Table.from_arrays([pa.array(c, f.type) for c, f in zip(columns, ENTRIES, strict=True)], schema=ENTRIES)
