"""A server that is gone, a process that dies: a write with an external index fails before anything
is visible, or it stands.

Matrix: a server that is killed before a lookup, and between lookup and commit; a death, or a lost
connection, at every call to the server; a death at calls to the storage of copies of a table that
tell one store. Then the next write: nothing comes twice.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from adbc_driver_postgresql import dbapi

from hudi_table.errors import UnavailableError
from hudi_table.index.keystore import external
from hudi_table.index.keystore.external import ExternalIndex
from hudi_table.model.table.config import TableType
from hudi_table.model.table.index_properties import CONNECTION
from hudi_table.table.store.ports import Storage
from hudi_table.table.timeline.active import load_timeline
from tests.hudi_table.index.test_conformance import WRITES, Interrupted, begun
from tests.support.crashes import copied, opened, read
from tests.support.fault_points import SUSPECTS, attempt
from tests.support.faults import Crash
from tests.support.indexes import Case, Subject
from tests.support.key_stores import Calls, held, indexed
from tests.support.postgres import PASSWORD, Server, namespace, running_postgres
from tests.support.scale import scale
from tests.support.written import contents, new_table, rows

APART = {"hoodie.parquet.small.file.limit": "0"}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running_postgres() as started:
        yield started


def test_a_write_fails_clearly_while_the_server_is_away_and_leaves_nothing(server: Server) -> None:
    table = new_table(index=indexed())
    table.insert(rows(("a", "x", 1)))
    before = {info.path for info in table.context.storage.list() if info.path.endswith(".parquet")}
    server.kill()
    try:
        with pytest.raises(UnavailableError, match=rf"external index did not answer \(connection in {CONNECTION}\)"):
            table.upsert(rows(("a", "x", 2), ("b", "x", 3)))
        assert contents(table) == [("a", "x", 1)]
        assert {info.path for info in table.context.storage.list() if info.path.endswith(".parquet")} == before
        assert not load_timeline(table.context).pending
    finally:
        server.start()
    table.upsert(rows(("a", "x", 2), ("b", "x", 3)))
    assert contents(table) == [("a", "x", 2), ("b", "x", 3)]


def test_a_server_that_dies_between_lookup_and_commit_leaves_the_write_and_is_told_later(
    server: Server, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    table = new_table(index=indexed())
    table.insert(rows(("a", "x", 1)))
    route = ExternalIndex.route

    def route_then_die(*arguments: Any) -> Any:
        answer = route(*arguments)
        server.kill()
        return answer

    try:
        with monkeypatch.context() as patched, caplog.at_level(logging.WARNING):
            patched.setattr(ExternalIndex, "route", route_then_die)
            result = table.upsert(rows(("a", "x", 2), ("b", "x", 3)), options=APART)
        assert contents(table) == [("a", "x", 2), ("b", "x", 3)]
        assert f"the write of {result.instant} is committed" in caplog.text
        assert PASSWORD not in caplog.text
    finally:
        server.start()
    table.upsert(rows(("a", "x", 4), ("b", "x", 5)), options=APART)
    assert contents(table) == [("a", "x", 4), ("b", "x", 5)]
    assert held(table) == 2


@pytest.mark.parametrize(
    ("kind", "operation"), [(TableType.COPY_ON_WRITE, "upsert"), (TableType.MERGE_ON_READ, "delete")], ids=str
)
def test_a_fault_at_a_storage_call_leaves_a_store_that_misleads_nobody(
    server: Server, kind: TableType, operation: str, figure: Callable[[int, str], None]
) -> None:
    """All copies of the table tell one store, so each meets what the others, and their dead, have
    told it."""
    settings = {"global": "true", "namespace": namespace()}
    case = Case(Subject("external", indexed(**settings), is_global=True, costly=True), kind)
    figure(Interrupted(case, operation).every_point(), "crash points")


@pytest.mark.parametrize("lost", [False, True], ids=["dies", "loses its connection"])
def test_a_process_that_dies_at_a_call_to_the_server_leaves_the_old_or_the_new_rows(
    server: Server, monkeypatch: pytest.MonkeyPatch, lost: bool, figure: Callable[[int, str], None]
) -> None:
    case = Case(Subject("external", indexed(**{"global": "true"}), is_global=True), TableType.COPY_ON_WRITE)
    start = begun(case).context.storage
    old = read(start)
    calls = Calls()
    with monkeypatch.context() as patched:
        patched.setattr(external, "open_postgres", calls.opener())
        twin = copied(start)
        case.write(opened(twin), "upsert", *WRITES["upsert"])
    new, count = read(twin), calls.made
    outcomes: dict[str, int] = {}
    for number in range(1, count + 1, 1 if scale() > 1 else 3):
        store = copied(start)
        error: BaseException = dbapi.OperationalError("lost", status_code=10) if lost else Crash("at the server")

        def write(store: Storage = store) -> None:
            case.write(opened(store), "upsert", *WRITES["upsert"])

        with monkeypatch.context() as patched:
            patched.setattr(external, "open_postgres", Calls(number, error).opener())
            outcome = attempt(write)
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
        found = read(store)
        assert found in (old, new), f"call {number}, {outcome}: {sorted(found)}"
        assert (found == old) == (outcome == "failed") or outcome == "crashed"
        for suspect in SUSPECTS if scale() > 1 else SUSPECTS[number % 2 :][:1]:
            after = copied(store)
            case.write(opened(after, suspect=suspect), "upsert", *WRITES["upsert"])
            assert read(after) == new, f"call {number}, {outcome}: the next write left {sorted(read(after))}"
    assert set(outcomes) == ({"failed", "succeeded"} if lost else {"crashed"})
    figure(sum(outcomes.values()), "crash points of the external index")
