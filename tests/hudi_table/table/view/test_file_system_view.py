"""A view lists the folders of the partitions that it is asked for, and a write those that its rows
go to."""

from __future__ import annotations

import uuid

import pyarrow as pa
import pytest

from hudi_table.api import HudiTable
from hudi_table.metadata.port import open_context
from hudi_table.model.names import HOODIE
from hudi_table.table.store.opening import open_storage
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.view import file_system_view
from hudi_table.table.view.file_system_view import FileSystemView
from hudi_table.write.checks.create_table import TableSpec, create
from tests.support.recording import RecordingStorage, Trace

SCHEMA = pa.schema([("id", pa.string()), ("city", pa.string()), ("value", pa.int64())])
CITIES = ("x", "y", "z/z")
"""The third lies inside the second, as a partition path of two fields may."""
BUCKET = {"type": "Bucket", "buckets": 2}


def rows(*cities: str, value: int = 1) -> pa.Table:
    items = [{"id": str(number), "city": city, "value": value} for city in cities for number in range(4)]
    return pa.Table.from_pylist(items, schema=SCHEMA)


@pytest.fixture
def recorded() -> RecordingStorage:
    return RecordingStorage(open_storage(f"memory://{uuid.uuid4().hex}/t"), Trace())


def table(recorded: RecordingStorage, index: object, *cities: str) -> HudiTable:
    create(recorded, TableSpec(SCHEMA, "id", partition_by=["city"], index=index, name="t"))  # type: ignore[arg-type]
    made = HudiTable(open_context(recorded))
    made.upsert(rows(*cities))
    recorded.trace.steps.clear()
    return made


def folders(recorded: RecordingStorage) -> set[str]:
    """The folders of data that were listed; '' for the base."""
    listings = (step for step in recorded.trace.steps if step.call in ("list", "list_dir"))
    return {step.key for step in listings if step.key.partition("/")[0] != HOODIE}


@pytest.mark.parametrize("index", [BUCKET, "Simple", "Bloom"], ids=["bucket", "simple", "bloom"])
def test_an_upsert_lists_the_partitions_of_its_rows_alone(recorded: RecordingStorage, index: object) -> None:
    made = table(recorded, index, *CITIES)
    done = made.upsert(rows("y", value=2))
    assert folders(recorded) == {"y"}
    assert (done.rows_updated, done.rows_inserted) == (4, 0)
    assert sorted(made.scan().to_arrow()["value"].to_pylist()) == [1] * 8 + [2] * 4


def test_a_global_index_looks_into_all_partitions(recorded: RecordingStorage) -> None:
    made = table(recorded, "GlobalSimple", "x")
    made.upsert(rows("y", value=2))
    assert "" in folders(recorded)
    assert made.scan().to_arrow()["city"].to_pylist() == ["y"] * 4


def test_what_is_listed_alone_is_what_a_listing_of_everything_shows(recorded: RecordingStorage) -> None:
    ctx = table(recorded, BUCKET, *CITIES).context
    timeline = load_timeline(ctx)
    whole, alone = FileSystemView(ctx, timeline), FileSystemView(ctx, timeline)
    assert whole.partitions() == list(CITIES)
    for city in CITIES:
        assert alone.groups(city) == whole.groups(city) != []
    assert alone.latest_slices(CITIES) == whole.latest_slices()
    assert alone.existing(["y", "nowhere"]) == whole.existing(["y", "nowhere"]) == {"y"}
    assert alone.latest_slices(["nowhere"]) == whole.latest_slices(["nowhere"]) == []


def test_the_folder_of_the_timeline_is_no_partition(recorded: RecordingStorage) -> None:
    ctx = table(recorded, BUCKET, "x").context
    assert FileSystemView(ctx, load_timeline(ctx)).groups(f"{HOODIE}/x") == []


def test_very_many_partitions_are_listed_at_once(recorded: RecordingStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_system_view, "LISTED_ALONE_MAX", 2)
    made = table(recorded, BUCKET, *CITIES)
    found = FileSystemView(made.context, load_timeline(made.context))
    assert len(found.latest_slices(CITIES)) == len(found.latest_slices())
    assert "" in folders(recorded)
    assert len([step for step in recorded.trace.steps if step.key == ""]) == 1
