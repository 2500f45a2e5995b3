"""Azure's Blob service, by obstore's own client: how its ranges differ from those of S3, and what
its refusals mean."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pyarrow as pa
import pytest

from hudi_table.api import create_table, open_table
from hudi_table.errors import InvalidRequestError, ObjectExistsError, ObjectNotFoundError, UnavailableError
from hudi_table.table.store.opening import open_storage
from hudi_table.table.store.owned.versioned import versioned_objects
from hudi_table.table.store.ports import ObjectInfo, Storage
from tests.support.azure import BlobService, running_azure

pytestmark = pytest.mark.s3


@pytest.fixture
def azure() -> Iterator[BlobService]:
    with running_azure() as service:
        yield service


@pytest.mark.parametrize("size", [0, 1, 64 << 10, (64 << 10) + 1, 700_000])
def test_a_file_on_azure_which_has_no_ranges_from_the_end_is_read_at_any_place(azure: BlobService, size: int) -> None:
    storage = open_storage(azure.uri("t"), azure.options)
    data = os.urandom(size)
    storage.put("x", data)
    azure.requests.clear()
    with storage.open_read("x") as file:
        # A file that is small comes whole with the first request; of another one its end is asked for.
        assert len(azure.requests) == (1 if size <= 64 << 10 else 2)
        assert file.size() == size
        for start in (0, size // 3, max(0, size - 100)):
            file.seek(start)
            assert file.read(300_000) == data[start : start + 300_000]
    assert all(asked for _, _, asked in azure.requests), "no request asks for the whole of it"


def test_a_file_that_is_not_on_azure_is_not_found(azure: BlobService) -> None:
    with pytest.raises(ObjectNotFoundError, match="'x'"):
        open_storage(azure.uri("t"), azure.options).open_read("x")


def test_a_table_on_azure_with_base_files_above_a_mebibyte_is_read_and_changed(azure: BlobService) -> None:
    numbers = range(60_000)
    rows = pa.table(
        {"id": [f"k{i:09}" for i in numbers], "ts": numbers, "x": [f"{i * 7919 % 1000003:x}" for i in numbers]}
    )
    rows = rows.append_column("y", pa.array([os.urandom(16).hex() for _ in numbers]))
    table = create_table(
        azure.uri("flights"),
        rows.schema,
        record_key="id",
        ordering_fields="ts",
        index={"type": "Bucket", "buckets": 1},
        storage_options=azure.options,
    )
    table.write(rows, operation="bulk_insert")
    assert max(len(data) for data, _ in azure.blobs.values()) > 1 << 20
    open_table(azure.uri("flights"), storage_options=azure.options).upsert(rows.slice(0, 10))
    found = open_table(azure.uri("flights"), storage_options=azure.options).scan(filter="ts < 20").to_arrow()
    assert sorted(found["id"].to_pylist()) == rows["id"].to_pylist()[:20]


WRITES: dict[str, Callable[[Storage], object]] = {
    "put": lambda storage: storage.put("x", b"2"),
    "put_if_absent": lambda storage: storage.put_if_absent("x", b"2"),
    "replace": lambda storage: storage.replace(ObjectInfo("x", 1, datetime.now(UTC), '"0x1"'), b"2"),
    "create a version": lambda storage: versioned_objects(storage).create("x", b"2"),
}
EVERY = {**WRITES, "get": lambda storage: storage.get("x"), "open_read": lambda storage: storage.open_read("x")}


@pytest.mark.parametrize("call", EVERY)
def test_a_container_that_does_not_exist_is_named_by_every_request(azure: BlobService, call: str) -> None:
    """Reads were told that the object is missing, and writes that they are lost."""
    with pytest.raises(InvalidRequestError, match="az://nowhere/ does not exist: create it"):
        EVERY[call](open_storage("az://nowhere/t", azure.options))


@pytest.mark.parametrize("call", WRITES)
@pytest.mark.parametrize(
    ("refusal", "says"),
    [
        ((409, "BlobImmutableDueToPolicy"), "a policy keeps the object as it is"),
        ((409, "ContainerBeingDeleted"), "the container is being deleted"),
        ((412, "LeaseIdMissing"), "holds a lease on the object: end it"),
    ],
    ids=str,
)
def test_a_refusal_that_no_other_writer_is_the_reason_of_is_told_as_it_is(
    azure: BlobService, call: str, refusal: tuple[int, str], says: str
) -> None:
    azure.refuse = refusal
    with pytest.raises(InvalidRequestError, match=says):
        WRITES[call](open_storage(azure.uri("t"), {**azure.options, "retries": "2"}))
    assert len(azure.requests) == 1


def test_a_tag_is_the_same_in_a_listing_and_in_a_look_and_serves_as_a_condition(azure: BlobService) -> None:
    """Azure's listings leave out the quotes."""
    storage = open_storage(azure.uri("t"), azure.options)
    storage.put("x", b"1")
    (listed,) = storage.list()
    assert storage.head("x").etag == listed.etag == azure.blobs["t/x"][1]
    storage.replace(listed, b"2")
    storage.replace(storage.head("x"), b"3")
    with pytest.raises(UnavailableError, match="just replaced"):
        storage.replace(listed, b"4")
    assert storage.get("x") == b"3"
    assert len(azure.conditions) == 3
    assert all(wanted.startswith('"0x') and wanted.endswith('"') for wanted in azure.conditions)


def test_exclusive_and_conditional_writes_find_what_is_there(azure: BlobService) -> None:
    storage = open_storage(azure.uri("t"), azure.options)
    storage.put_if_absent("x", b"1")
    with pytest.raises(ObjectExistsError):
        storage.put_if_absent("x", b"2")
    objects = versioned_objects(storage)
    _, version = objects.get("x")
    objects.replace("x", b"3", version)
    with pytest.raises(ObjectExistsError):
        objects.replace("x", b"4", version)
    storage.delete("x")
    with pytest.raises(ObjectExistsError):
        objects.replace("x", b"4", version)


def test_a_listing_begins_behind_a_name_though_the_store_does_not(azure: BlobService) -> None:
    storage = open_storage(azure.uri("t"), azure.options)
    names = [f"p/{number:05}" for number in range(250)]
    for name in names:
        storage.put(name, b"1")
    assert [info.path for info in storage.list("p")] == names
    assert [info.path for info in storage.list("p", start_after=names[120])] == names[121:]
    assert [info.path for info in storage.list("p", start_after=names[120], limit=30)] == names[121:151]
