"""Google Cloud Storage, by obstore's own client: it takes one write a second of an object, and
answers 429 to others."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hudi_table.errors import ObjectExistsError, OutcomeUnknownError
from hudi_table.model.options.lock_settings import StorageLockSettings
from hudi_table.table.locks.storage import StorageLock
from hudi_table.table.store.clock import SystemClock
from hudi_table.table.store.opening import open_storage
from hudi_table.table.store.owned.versioned import versioned_objects
from tests.support.google import GoogleService, running_google

pytestmark = pytest.mark.s3


@pytest.fixture
def google() -> Iterator[GoogleService]:
    with running_google() as service:
        yield service


def test_writes_of_one_object_go_on_when_it_takes_them_with_growing_pauses(google: GoogleService) -> None:
    storage = open_storage("gs://lake/t", google.options)
    storage.put_if_absent("x", b"0")
    storage.put("x", b"1")
    storage.replace(storage.head("x"), b"2")
    _, version = versioned_objects(storage).get("x")
    versioned_objects(storage).replace("x", b"3", version)
    assert storage.get("x") == b"3"
    assert google.statuses.count(200) == 4
    assert set(google.statuses) == {200, 429}
    second = google.statuses.index(200, 1)
    pauses = [
        later - sooner for sooner, later in zip(google.writes[1:second], google.writes[2 : second + 1], strict=True)
    ]
    # Half of each is chance, so only one two further on is surely longer.
    assert all(later > sooner for sooner, later in zip(pauses, pauses[2:], strict=False)), pauses


def test_a_condition_that_does_not_hold_any_more_is_told_behind_a_429(google: GoogleService) -> None:
    storage = open_storage("gs://lake/t", google.options)
    storage.put("x", b"1")
    seen = storage.head("x")
    storage.put("x", b"2")
    with pytest.raises(ObjectExistsError):
        versioned_objects(storage).replace("x", b"3", (seen.etag, seen.version))
    assert storage.get("x") == b"2"


def test_a_write_whose_reply_was_lost_is_not_sent_again_and_a_lock_finds_that_it_was_done(
    google: GoogleService,
) -> None:
    storage = open_storage("gs://lake/t", google.options)
    google.lost = 1
    with pytest.raises(OutcomeUnknownError):
        storage.put_if_absent("x", b"1")
    assert google.statuses == [200]
    google.lost = 1
    lock = StorageLock(versioned_objects(storage), SystemClock(), StorageLockSettings(), pause=0.1)
    held = lock.acquire(20.0)
    assert held.valid()
    google.lost = 1
    held.renew()
    assert held.valid()
    assert google.statuses.count(200) == 3
