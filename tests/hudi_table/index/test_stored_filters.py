"""With `hoodie.bloom.index.use.metadata` keys are looked up in filters of the metadata table: files
that cannot hold any are not opened, and rows go where the footers would send them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hudi_table.api import HudiTable
from hudi_table.index import stored_filters
from hudi_table.index.stored_filters import FiltersOfMetadata
from hudi_table.metadata.port import open_context
from hudi_table.model.names import METADATA_TABLE
from hudi_table.table.timeline.active import load_timeline
from tests.hudi_table.index.test_bloom import filled, key_of
from tests.support.recording import RecordingStorage, Trace
from tests.support.written import contents, rows

FILES, EACH = 6, 50
BY_METADATA = {"hoodie.bloom.index.use.metadata": "true", "hoodie.parquet.small.file.limit": "0"}


@pytest.fixture
def table() -> HudiTable:
    """Six files of fifty keys, all of nearly the same range, and their filters in a metadata
    table."""
    made = filled(FILES, EACH)
    made.build_metadata(["bloom_filters", "column_stats"])
    return made


def upserted(table: HudiTable, *numbers: int) -> set[str]:
    """The base files that an upsert of these keys opened before it wrote."""
    before = {info.path for info in table.context.storage.list("x")}
    trace = Trace()
    again = HudiTable(open_context(RecordingStorage(table.context.storage, trace)))
    again.upsert(rows(*((key_of(n), "x", -n) for n in numbers)), options=BY_METADATA)
    return {step.key for step in trace.steps if step.call == "open_read" and step.key in before}


def changed(table: HudiTable, *numbers: int) -> list[tuple[Any, ...]]:
    """What the table holds after that upsert."""
    found = {key: (key, city, value) for key, city, value in contents(table)}
    return sorted((found | {key_of(n): (key_of(n), "x", -n) for n in numbers}).values())


@pytest.mark.parametrize("at_once", [1, 4, 64])
def test_no_file_is_opened_that_holds_none_of_the_keys(
    table: HudiTable, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored_filters, "FILES_AT_ONCE", at_once)
    numbers = (7, 7 + FILES, FILES * EACH + 1)
    expected = changed(table, *numbers)
    assert len(upserted(table, *numbers)) == 1
    assert contents(table) == expected


def test_filters_of_later_commits_are_found_too(table: HudiTable) -> None:
    expected = changed(table, 7)
    upserted(table, 7)
    assert len(upserted(table, 7)) == 1
    assert contents(table) == expected


@pytest.mark.parametrize("ready", ["", "files"], ids=["no metadata table", "no filters in it"])
def test_footers_are_asked_where_no_filters_are_ready(ready: str) -> None:
    table = filled(FILES, EACH)
    if ready:
        table.build_metadata()
    assert FiltersOfMetadata.of(table.context, load_timeline(table.context)) is None
    expected = changed(table, 7)
    assert len(upserted(table, 7)) == FILES
    assert contents(table) == expected


def damaged(table: HudiTable) -> None:
    for path in hfiles(table):
        table.context.storage.put(path, b"no HFile")


def missing(table: HudiTable) -> None:
    """The entries of another table, so none is found."""
    other = filled(1, 1)
    other.build_metadata(["bloom_filters"])
    content = other.context.storage.get(hfiles(other)[0])
    for path in hfiles(table):
        table.context.storage.put(path, content)


def hfiles(table: HudiTable) -> list[str]:
    found = table.context.storage.list(f"{METADATA_TABLE}/bloom_filters")
    return [info.path for info in found if info.path.endswith(".hfile")]


@pytest.mark.parametrize("spoil", [damaged, missing])
def test_footers_are_asked_where_filters_are_not_to_be_had(
    table: HudiTable, spoil: Callable[[HudiTable], None]
) -> None:
    spoil(table)
    expected = changed(table, 7)
    assert len(upserted(table, 7)) == FILES
    assert contents(table) == expected


def test_filters_of_files_whose_ranges_hold_no_key_are_not_fetched(table: HudiTable) -> None:
    trace = Trace()
    again = HudiTable(open_context(RecordingStorage(table.context.storage, trace)))
    again.upsert(rows(("~", "x", 1)), options=BY_METADATA)
    fetched = {
        step.key.split("/")[2] for step in trace.steps if step.call == "open_read" and METADATA_TABLE in step.key
    }
    assert fetched & {"bloom_filters", "column_stats"} == {"column_stats"}
