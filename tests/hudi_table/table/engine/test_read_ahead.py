"""What is fetched before it is opened: small files whole, of large ones the end; a file that is
gone is told to who opens it.

Matrix: a store behind a network (its name alone) × small, large and missing files × one group and
several, with and without room. On a local disk nothing is fetched.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from hudi_table.errors import ObjectNotFoundError
from hudi_table.table.engine.read_ahead import WHOLE_MAX, ReadAhead, open_sized
from hudi_table.table.store.at_once import all_at_once, at_once
from hudi_table.table.store.narrowed import StorageBelow
from hudi_table.table.store.opening import open_storage
from hudi_table.table.store.ports import ObjectInfo, Storage
from tests.support.recording import RecordingStorage, Trace


@dataclass(frozen=True, slots=True)
class Far(StorageBelow):
    """A store in memory that says that it lies behind a network."""

    @property
    def base_path(self) -> str:
        return "s3://bucket/table"


def far(trace: Trace | None = None) -> Storage:
    inner = open_storage(f"memory://{uuid.uuid4().hex}/table")
    return Far(inner if trace is None else RecordingStorage(inner, trace), "")


def sized(storage: Storage, **contents: bytes) -> list[ObjectInfo]:
    for path, data in contents.items():
        storage.put(path, data)
    return [storage.head(path) for path in contents]


def calls(trace: Trace) -> list[str]:
    return [f"{step.call} {step.key}" for step in trace.steps if step.call in ("get", "open_read")]


def test_small_files_come_whole_and_may_be_opened_again() -> None:
    trace = Trace()
    storage = far(trace)
    files = sized(storage, a=b"one", b=b"two")
    with ReadAhead(storage, [files]) as ahead, ahead.opened(0) as near:
        assert [near.open_read(path).read() for path in ("b", "a", "a")] == [b"two", b"one", b"one"]
    assert sorted(calls(trace)) == ["get a", "get b"]


def test_of_a_large_file_each_opening_has_its_own_position() -> None:
    trace = Trace()
    storage = far(trace)
    files = sized(storage, large=b"x" * WHOLE_MAX + b"end")
    with ReadAhead(storage, [files]) as ahead, ahead.opened(0) as near:
        first = near.open_read("large")
        first.seek(WHOLE_MAX)
        assert (first.read(), near.open_read("large").read(1)) == (b"end", b"x")
    assert calls(trace) == ["open_read large"] * 2


def test_what_has_no_room_waits_until_a_group_has_been_read() -> None:
    trace = Trace()
    storage = far(trace)
    groups = [[file] for file in sized(storage, a=b"1" * 60, b=b"2" * 60, c=b"3" * 60)]
    with ReadAhead(storage, groups, within=150) as ahead:
        with ahead.opened(0) as near:
            near.open_read("a")
            assert "get c" not in calls(trace)
        for number, path in ((1, "b"), (2, "c")):
            with ahead.opened(number) as near:
                near.open_read(path)
    assert sorted(calls(trace)) == ["get a", "get b", "get c"]


def test_without_room_a_group_is_fetched_when_it_is_opened() -> None:
    trace = Trace()
    storage = far(trace)
    groups = [[file] for file in sized(storage, a=b"one", b=b"two")]
    with ReadAhead(storage, groups, within=0) as ahead, ahead.opened(1) as near:
        near.open_read("b")
    assert calls(trace) == ["get b"]


def test_a_file_that_is_gone_is_told_to_who_opens_it() -> None:
    storage = far()
    files = sized(storage, a=b"one", b=b"two")
    storage.delete("b")
    with ReadAhead(storage, [files]) as ahead, ahead.opened(0) as near:
        assert near.open_read("a").read() == b"one"
        with pytest.raises(ObjectNotFoundError) as caught:
            near.open_read("b")
    assert caught.value.path == "b"


def test_on_a_local_disk_files_are_opened_when_they_are_read() -> None:
    trace = Trace()
    storage = RecordingStorage(open_storage(f"memory://{uuid.uuid4().hex}/table"), trace)
    files = sized(storage, a=b"one")
    with ReadAhead(storage, [files, files]) as ahead, ahead.opened(0) as near:
        assert near is storage
    assert calls(trace) == []


@pytest.mark.parametrize(("size", "call"), [(3, "get"), (0, "open_read"), (WHOLE_MAX + 1, "open_read")])
def test_a_file_whose_size_is_known_to_be_small_is_opened_by_one_request(size: int, call: str) -> None:
    trace = Trace()
    storage = far(trace)
    sized(storage, a=b"one")
    assert open_sized(storage, "a", size).read() == b"one"
    assert calls(trace) == [f"{call} a"]


def fails(error: Exception) -> Callable[[], Any]:
    def call() -> Any:
        raise error

    return call


@pytest.mark.parametrize("is_far", [True, False])
def test_the_first_error_in_their_order_is_raised(is_far: bool) -> None:
    storage = far() if is_far else open_storage(f"memory://{uuid.uuid4().hex}/table")
    assert at_once(storage, lambda: 1, lambda: "two") == (1, "two")
    with pytest.raises(KeyError):
        at_once(storage, lambda: 1, fails(KeyError()), fails(ValueError()))
    assert all_at_once(storage, [partial(abs, number) for number in range(100)]) == list(range(100))
