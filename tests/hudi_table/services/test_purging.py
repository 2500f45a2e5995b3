"""A purge deletes the table and all its files, and nothing else; one that is interrupted leaves no
half of a table behind."""

from __future__ import annotations

import contextlib

import pytest

from hudi_table.api import open_table
from hudi_table.errors import InvalidRequestError, TableNotFoundError
from hudi_table.model.names import PROPERTIES, PROPERTIES_BACKUP
from hudi_table.model.table.config import IndexType
from hudi_table.services.purging import MARK, purge
from hudi_table.table.store.opening import open_storage
from hudi_table.table.store.ports import Storage
from tests.support.crashes import FIRST, Layout, copied, prepared, read
from tests.support.faults import Crash, Fault, FaultPlan, FaultyStorage
from tests.support.tables import memory_storage

LAYOUT = Layout(IndexType.BUCKET, True)
WRITES = ("put", "delete")


def purged(storage: Storage) -> int:
    return purge(storage, "attempt", lambda line: None).files


def test_a_purge_leaves_nothing() -> None:
    store = prepared(LAYOUT)
    files = len(store.list())
    # Its own mark comes, and the properties go before the rest is counted.
    assert purged(store) == files - 1
    assert store.list() == []


def test_a_purge_tells_how_far_it_is() -> None:
    said: list[str] = []
    found = purge(prepared(LAYOUT), "attempt", said.append)
    assert said == [f"{found.files} files deleted"]
    assert found.bytes > 0


def test_where_nothing_is_nothing_is_done() -> None:
    assert purged(memory_storage()) == 0


def test_files_that_are_no_table_are_not_touched() -> None:
    store = memory_storage()
    store.put("somebody/else.txt", b"precious")
    with pytest.raises(InvalidRequestError, match="no Hudi table: nothing is deleted"):
        purged(store)
    assert store.get("somebody/else.txt") == b"precious"


def test_a_table_whose_properties_only_the_backup_holds_is_purged() -> None:
    store = prepared(LAYOUT)
    store.put(PROPERTIES_BACKUP, store.get(PROPERTIES))
    store.delete(PROPERTIES)
    assert purged(store) > 0
    assert store.list() == []


def test_what_lies_beside_the_table_stays(tmp_path: object) -> None:
    beside = open_storage(f"{tmp_path}/lake")
    beside.put("flights2/file", b"precious")
    store = open_storage(f"{tmp_path}/lake/flights")
    store.put(PROPERTIES, b"hoodie.table.name=flights\n")
    purged(store)
    assert [info.path for info in beside.list()] == ["flights2/file"]
    with pytest.raises(TableNotFoundError):
        open_table(f"{tmp_path}/lake/flights")


@pytest.mark.parametrize("fault", [Fault.CRASH_BEFORE, Fault.CRASH_AFTER, Fault.LOST_REPLY, Fault.LOST_REQUEST])
def test_an_interruption_leaves_the_whole_table_or_none_and_the_next_attempt_completes_it(fault: Fault) -> None:
    at, whole = 0, prepared(LAYOUT)
    while True:
        at += 1
        store = copied(whole)
        plan = FaultPlan(at, fault, only=lambda call: call.method in WRITES)
        with contextlib.suppress(Crash):
            purged(FaultyStorage(store, plan))
        if not plan.fired:
            break
        paths = {info.path for info in store.list()}
        if PROPERTIES in paths:
            assert read(store) == frozenset(FIRST)
        else:
            assert PROPERTIES_BACKUP not in paths, "readers would take the table from it"
        purged(store)
        assert store.list() == [], MARK
    assert at > 8
