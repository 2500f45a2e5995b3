"""Keys of the metadata table: by which name the records of a file and of a column are found, and in
which file group.

Facts (measured on Hudi 0.15.0 and 1.1.1). Column statistics: ids of column, partition path and file
name, one after the other; bloom filters: ids of partition path and file name; files: the partition
path; record index: the record key. Ids are base64, of 12 characters for columns and partitions and
24 for files, so keys that start alike are statistics of one column, or of one in a partition. A key
belongs to file group `abs(hash) mod groups`. Where these names are made: `javahash`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from hudi_table.codec.hashes.javahash import file_group_index, file_id_hash, name_id

__all__ = ["NOT_PARTITIONED", "bloom_keys", "column_stats_keys", "column_stats_prefixes", "file_group_index"]

NOT_PARTITIONED: Final = "."
"""The name of the only partition of a table without partitions."""

Texts: TypeAlias = pa.Array | pa.ChunkedArray


def column_stats_keys(columns: Texts, partitions: Texts, file_names: Texts) -> pa.Array:
    """The key of each column of each file; `partitions` are paths, '' for a table without
    partitions."""
    return pc.binary_join_element_wise(
        _ids(columns, name_id), _partitions(partitions), _ids(file_names, file_id_hash), ""
    )


def column_stats_prefixes(columns: Texts, partitions: Texts) -> pa.Array:
    """What the keys of all files of a partition have in common, for each column and partition."""
    return pc.binary_join_element_wise(_ids(columns, name_id), _partitions(partitions), "")


def bloom_keys(partitions: Texts, file_names: Texts) -> pa.Array:
    """The key of the bloom filter of each file."""
    return pc.binary_join_element_wise(_partitions(partitions), _ids(file_names, file_id_hash), "")


def _partitions(paths: Texts) -> pa.Array:
    return _ids(paths, lambda path: name_id(path or NOT_PARTITIONED))


def _ids(texts: Texts, to_id: Callable[[str], str]) -> pa.Array:
    """The id of each text; each one is made once."""
    whole = texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts
    words = whole if pt.is_dictionary(whole.type) else whole.dictionary_encode()
    made = pa.array([to_id(word) for word in words.dictionary.to_pylist()], pa.string())
    return made.take(words.indices)
