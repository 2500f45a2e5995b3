"""Replies of S3 whose status alone says something else than they mean."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from hudi_table.errors import AccessDeniedError, InvalidRequestError, OutcomeUnknownError, UnavailableError
from hudi_table.table.store.opening import open_storage
from hudi_table.table.store.ports import Storage
from tests.support.s3 import Replies, s3_replies

pytestmark = pytest.mark.s3
CALLS: dict[str, Callable[[Storage], object]] = {
    "get": lambda storage: storage.get("k"),
    "list": lambda storage: storage.list("p"),
    "open_read": lambda storage: storage.open_read("k"),
    "put": lambda storage: storage.put("k", b"x"),
    "put_if_absent": lambda storage: storage.put_if_absent("k", b"x"),
}


@pytest.fixture
def store() -> Iterator[Replies]:
    with s3_replies() as replies:
        yield replies


@pytest.fixture
def storage(store: Replies) -> Storage:
    return open_storage("s3://lake/table", store.options)


@pytest.mark.parametrize("call", ["get", "list", "open_read"])
def test_a_read_that_the_store_waited_for_in_vain_is_sent_again(store: Replies, storage: Storage, call: str) -> None:
    store.answer = (400, "RequestTimeout")
    with pytest.raises(UnavailableError, match="400 RequestTimeout"):
        CALLS[call](storage)
    assert len(store.requests) == 3


def test_a_put_that_the_store_waited_for_in_vain_is_done_when_its_repetition_is(
    store: Replies, storage: Storage
) -> None:
    store.script[:] = [(400, "RequestTimeout"), (200, "")]
    storage.put("k", b"x")
    assert len(store.requests) == 2


def test_a_create_that_the_store_waited_for_in_vain_is_unknown(store: Replies, storage: Storage) -> None:
    store.answer = (400, "RequestTimeout")
    with pytest.raises(OutcomeUnknownError):
        storage.put_if_absent("k", b"x")
    assert len(store.requests) == 1


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("code", ["ExpiredToken", "InvalidToken"])
def test_a_session_that_has_ended_asks_for_new_credentials(
    store: Replies, storage: Storage, call: str, code: str
) -> None:
    store.answer = (400, code)
    with pytest.raises(AccessDeniedError, match=f"{code}.: get new credentials and open the table again"):
        CALLS[call](storage)
    assert len(store.requests) == 1


@pytest.mark.parametrize("call", CALLS)
def test_a_state_of_the_bucket_is_no_other_writer(store: Replies, storage: Storage, call: str) -> None:
    store.answer = (409, "InvalidBucketState")
    with pytest.raises(InvalidRequestError, match="409 InvalidBucketState"):
        CALLS[call](storage)
    assert len(store.requests) == 1
