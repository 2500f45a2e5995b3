"""Table services take no bloom filter away, and give files those of the index that they are told.

Matrix: {compaction, clustering} × {files with filters on a table that stores no index,
`hoodie.index.type` given, filters switched off}.
"""

from __future__ import annotations

import uuid

import pyarrow as pa
import pytest

from hudi_table.api import HudiTable, create_table
from hudi_table.codec.parquet import read_footer
from hudi_table.errors import InvalidOptionError, UnsupportedTableError
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.timeline.kept_properties import KEPT
from hudi_table.table.timeline.properties import replace_properties
from hudi_table.table.view.file_system_view import FileSystemView
from tests.support.beside import seen_anew

SCHEMA = pa.schema([("id", pa.string()), ("v", pa.int64())])
SIMPLE, BLOOM = {"hoodie.index.type": "SIMPLE"}, {"hoodie.index.type": "BLOOM"}
ENABLED = "hoodie.parquet.bloom.filter.enabled"


def rows(numbers: range, v: int) -> pa.Table:
    return pa.table({"id": [f"k{n}" for n in numbers], "v": [v] * len(numbers)}, schema=SCHEMA)


def table_without_index(*, filters: bool) -> HudiTable:
    """A merge-on-read table as Hudi leaves it, that stores no index; each group with a log."""
    table = create_table(f"memory://{uuid.uuid4().hex}/t", SCHEMA, record_key="id", type="MergeOnRead")
    table.context.storage.delete(KEPT)
    replace_properties(table.context, {"hoodie.index.type": None})
    table = seen_anew(table)
    told = SIMPLE | ({ENABLED: "true"} if filters else {})
    table.upsert(rows(range(10), 1), options=told)
    table.upsert(rows(range(5), 2), options=told)
    return table


def have_filters(table: HudiTable) -> set[bool]:
    ctx = table.context
    found = set()
    for item in FileSystemView(ctx, load_timeline(ctx)).latest_slices():
        assert item.base is not None
        with ctx.storage.open_read(item.base.path) as source:
            found.add(read_footer(source).bloom_text is not None)
    return found


def served(table: HudiTable, service: str, options: dict[str, str]) -> set[bool]:
    run = {"compaction": table.compact, "clustering": table.cluster}[service]
    assert run(options, force=True)
    return have_filters(table)


@pytest.mark.parametrize("service", ["compaction", "clustering"])
def test_a_service_keeps_the_filters_of_files_and_gives_those_of_the_index_that_it_is_told(service: str) -> None:
    assert served(table_without_index(filters=True), service, {}) == {True}
    assert served(table_without_index(filters=False), service, {}) == {False}
    assert served(table_without_index(filters=False), service, BLOOM) == {True}
    assert served(table_without_index(filters=True), service, {ENABLED: "false"}) == {False}


@pytest.mark.parametrize("service", ["compaction", "clustering"])
def test_an_index_that_nobody_knows_is_refused(service: str) -> None:
    with pytest.raises((InvalidOptionError, UnsupportedTableError), match="NONSUCH"):
        served(table_without_index(filters=False), service, {"hoodie.index.type": "NONSUCH"})
