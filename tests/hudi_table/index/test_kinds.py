"""Every type of index that a table can store has a class, and what layers below the classes are
told of the type is true of the class."""

from __future__ import annotations

import pytest

from hudi_table.index.base import Index
from hudi_table.index.kinds import KINDS, index_for
from hudi_table.model.table.config import IndexSpec, IndexType, TableConfig, TableType

CONFIG = TableConfig("t", TableType.MERGE_ON_READ, ("id",))
OURS = sorted(set(IndexType) - {IndexType.CUSTOM})


def made(kind: IndexType) -> Index:
    return index_for(CONFIG, IndexSpec(kind, buckets=4 if kind.hashes else None), {})


def test_every_type_has_a_class() -> None:
    assert set(KINDS) == set(IndexType)


@pytest.mark.parametrize("kind", OURS)
def test_the_facts_of_a_type_are_those_of_its_index(kind: IndexType) -> None:
    index = made(kind)
    assert index.is_global == kind.is_global
    assert index.reads_snapshot != kind.hashes
    assert index.needs_filters == kind.needs_filters
    assert (made(kind).in_tasks(()).buckets is not None) == kind.has_fixed_buckets
    assert index.moves == (kind.is_global and not kind.may_keep_partition)
