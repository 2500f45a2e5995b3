"""Which of the indexes that look keys up is meant, and what the options say of it.

Facts. `hoodie.bloom.index.update.partition.path` and `hoodie.simple.index.update.partition.path` are true by default: a global
index moves a key to the partition of its new row. If false, the row stays in the partition of the stored one, whatever its
partition column says then (measured on Hudi 0.15.0 and 1.1.1 with the bloom index).
"""

from __future__ import annotations

from collections.abc import Mapping

from hudi_table.errors import InvalidOptionError
from hudi_table.index.base import Index
from hudi_table.index.bloom import BloomIndex
from hudi_table.index.simple import SimpleIndex
from hudi_table.model.options import WriteOptions
from hudi_table.model.table_config import IndexType

_MOVES = {
    IndexType.GLOBAL_SIMPLE: "hoodie.simple.index.update.partition.path",
    IndexType.GLOBAL_BLOOM: "hoodie.bloom.index.update.partition.path",
}


def lookup_index(kind: IndexType, options: Mapping[str, str]) -> Index:
    """A simple or bloom index. Raises InvalidOptionError for options that it does not know or cannot follow."""
    chosen = WriteOptions.parse(options)
    key = _MOVES.get(kind)
    if key is not None and options.get(key, "true").strip().lower() != "true":
        raise InvalidOptionError(
            f"option {key}={options[key]} would keep a row in a partition that its own columns contradict, where reads "
            "that filter by these columns miss it; remove the option, or use an index that is not global"
        )
    if not kind.needs_filters:
        return SimpleIndex(is_global=kind.is_global)
    return BloomIndex(is_global=kind.is_global, prune_by_ranges=chosen.bloom_by_ranges)
