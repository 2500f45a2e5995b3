"""Keys of the metadata table: by which name the records of a file and of a column are found, and in
which file group.

Facts (measured on Hudi 0.15.0 and 1.1.1). Column statistics: ids of column, partition path and file
name, one after the other; bloom filters: ids of partition path and file name; files: the partition
path; record index: the record key. Ids are base64, of 12 characters for columns and partitions and
24 for files, so keys that start alike are statistics of one column, or of one in a partition. A key
belongs to file group `abs(hash) mod groups`. Where these names are made: `javahash`.

Of an index of a secondary key (measured on Hudi 1.0.2 and 1.1.1) a key is the value, `$` and the
record key; `\\`, `$` and NUL are escaped by `\\` in both, and a null is one NUL. Its file group is
that of the whole key in version 1 of such an index, and of the value with its `$` in version 2.

An index of an expression (measured there too) has the keys of column statistics, or of bloom
filters; and of a whole partition the ids of its column, of `__partition_stat__` and of the
partition path.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from hudi_table.codec.hashes.javahash import file_group_index, file_id_hash, name_id

__all__ = [
    "NOT_PARTITIONED",
    "bloom_keys",
    "column_stats_keys",
    "column_stats_prefixes",
    "expression_partition_keys",
    "file_group_index",
    "record_keys_of",
    "secondary_keys",
    "secondary_prefixes",
    "secondary_prefixes_of",
]

NOT_PARTITIONED: Final = "."
"""The name of the only partition of a table without partitions."""

_WHOLE_PARTITION: Final = "__partition_stat__"

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


def expression_partition_keys(columns: Texts, partitions: Texts) -> pa.Array:
    """The key of what an index of an expression says of a partition as a whole, for each column and
    partition."""
    marks = pa.repeat(pa.scalar(_WHOLE_PARTITION), len(columns))
    return pc.binary_join_element_wise(_ids(columns, name_id), _ids(marks, name_id), _partitions(partitions), "")


def bloom_keys(partitions: Texts, file_names: Texts) -> pa.Array:
    """The key of the bloom filter of each file."""
    return pc.binary_join_element_wise(_partitions(partitions), _ids(file_names, file_id_hash), "")


def secondary_keys(values: Texts, record_keys: Texts) -> pa.Array:
    """The key of each pair of a value (text, null where there is none) and a record key."""
    return _whole(pc.binary_join_element_wise(secondary_prefixes(values), _escaped(record_keys), ""))


def secondary_prefixes(values: Texts) -> pa.Array:
    """What the keys of all rows with this value have in common."""
    texts = pc.fill_null(_escaped(values), _NO_VALUE)
    return _whole(pc.binary_join_element_wise(texts, _END, ""))


def secondary_prefixes_of(keys: Texts) -> pa.Array:
    """The same of keys that are there. What is none of them is given whole."""
    return _whole(pc.fill_null(pc.struct_field(_parts(keys), [0]), _whole(keys)))


def record_keys_of(keys: Texts) -> pa.Array:
    """The record key of each key; null for what is none."""
    return _whole(pc.replace_substring_regex(pc.struct_field(_parts(keys), [1]), r"(?s)\\(.)", r"\1"))


_END: Final = "$"
_NO_VALUE: Final = "\0"
_PAIR: Final = r"(?s)^(?P<prefix>(?:[^\\$]|\\.)*\$)(?P<record_key>.*)$"


def _parts(keys: Texts) -> pa.Array:
    return pc.extract_regex(_whole(keys), _PAIR)


def of_no_value(keys: pa.Array) -> pa.Array:
    """Whether each is the key of a pair without a value."""
    return pc.starts_with(keys, f"{_NO_VALUE}$")


def _escaped(texts: Texts) -> pa.Array:
    found = _whole(texts).cast(pa.string())
    for sign in ("\\", _END, _NO_VALUE):
        found = pc.replace_substring(found, sign, f"\\{sign}")
    return found


def _whole(texts: Texts) -> pa.Array:
    return texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts


def _partitions(paths: Texts) -> pa.Array:
    return _ids(paths, lambda path: name_id(path or NOT_PARTITIONED))


def _ids(texts: Texts, to_id: Callable[[str], str]) -> pa.Array:
    """The id of each text; each one is made once."""
    whole = texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts
    words = whole if pt.is_dictionary(whole.type) else whole.dictionary_encode()
    made = pa.array([to_id(word) for word in words.dictionary.to_pylist()], pa.string())
    return made.take(words.indices)
