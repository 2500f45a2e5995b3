"""The indexes that are raced, by the names that both sides have for them. This module runs in two
Pythons."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class IndexKind:
    """`ours`: the resource's name; `hudi`: the value of `hoodie.index.type`; `filters`: files carry
    bloom filters; `more`: what both sides' writes are told beside."""

    ours: str
    hudi: str
    filters: bool = False
    more: Mapping[str, str] = field(default_factory=dict)


KINDS = {
    "bloom": IndexKind("Bloom", "BLOOM", filters=True),
    "global-simple": IndexKind("GlobalSimple", "GLOBAL_SIMPLE"),
    "record": IndexKind(
        "RecordIndex",
        "RECORD_INDEX",
        more={
            "hoodie.metadata.enable": "true",
            "hoodie.metadata.global.record.level.index.enable": "true",
            "hoodie.metadata.index.column.stats.enable": "false",
            "hoodie.record.index.update.partition.path": "true",
        },
    ),
}
"""Bloom within the partitions of the rows, and a key that is unique in the whole table, looked up
in the files or in the metadata table."""
