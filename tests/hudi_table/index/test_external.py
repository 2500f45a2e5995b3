"""The external index: what it saves, and that neither its store nor a death can make it wrong.

Matrix: a real PostgreSQL server × {the store knows the snapshot, lags behind it, belongs to another copy of the table, is gone};
a death or a lost connection at every call to the server and at calls to the storage. Secrets, refusals, rebuilding.

Omitted: what every index does (`test_conformance.py`, which runs this one too).
"""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from adbc_driver_postgresql import dbapi

from hudi_table.api import HudiTable, open_table
from hudi_table.cli import main
from hudi_table.errors import AccessDeniedError, InvalidOptionError, InvalidRequestError, UnavailableError
from hudi_table.index import external
from hudi_table.index.custom import CustomIndex
from hudi_table.index.external import CONNECTION, ExternalIndex, missing_keys
from hudi_table.index.key_store import Change
from hudi_table.index.postgres import BATCH_KEYS, PostgresStore, open_postgres
from hudi_table.model.table_config import TableType
from hudi_table.table.engine import LocalEngine
from hudi_table.table.ports import Storage
from hudi_table.table.timeline import load_timeline
from hudi_table.write.prepare import resolve_index
from hudi_table.write.remembering import snapshot
from tests.hudi_table.index.test_conformance import WRITES, _Interrupted, begun
from tests.hudi_table.test_crash_points import attempt
from tests.support.crashes import copied, opened, read
from tests.support.faults import Crash
from tests.support.indexes import Case, Subject
from tests.support.postgres import PASSWORD, Server, namespace, running_postgres
from tests.support.recording import RecordingStorage, Trace
from tests.support.scale import scale, scaled
from tests.support.written import contents, new_table, rows

APART = {"hoodie.parquet.small.file.limit": "0"}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running_postgres() as started:
        yield started


def indexed(**settings: str) -> dict[str, Any]:
    return {"type": "Custom", "class": "postgres", "settings": settings}


def parts(table: HudiTable) -> ExternalIndex:
    index, _ = resolve_index(table.context.config, {})
    assert isinstance(index, CustomIndex)
    assert isinstance(index.inner, ExternalIndex)
    return index.inner


def held(table: HudiTable) -> int:
    """How many (key, group) pairs the store has of a table."""
    lookup = snapshot(table.context, LocalEngine(1))
    with parts(table).store(lookup) as store:
        assert isinstance(store, PostgresStore)
        return store.key_count()


def opened_files(table: HudiTable, write: Callable[[HudiTable], object]) -> set[str]:
    """The base files and logs that a write opened."""
    trace = Trace()
    recorded = HudiTable(table.context.__class__(
        RecordingStorage(table.context.storage, trace, "p"), table.context.config, table.context.clock, table.context.settings
    ))  # fmt: skip
    write(recorded)
    return {step.key for step in trace.steps if step.call == "open_read"}


def test_a_write_opens_the_files_of_its_keys_alone(server: Server) -> None:
    table = new_table(index=indexed(**{"global": "true"}))
    for number in range(6):
        table.insert(rows((f"k{number}", "xyz"[number % 3], number)), options=APART)
    holding = {row["id"]: row["_hoodie_file_name"] for row in table.scan(meta=True).to_arrow().to_pylist()}
    before = opened_files(table, lambda t: t.upsert(rows(("k4", "y", 40), ("new", "x", 1)), options=APART))
    assert {path.rpartition("/")[2] for path in before if path.endswith(".parquet")} >= {holding["k4"]}
    others = {name for key, name in holding.items() if key != "k4"}
    assert not {path.rpartition("/")[2] for path in before} & others


def test_what_the_store_was_not_told_of_is_read_from_the_files(server: Server) -> None:
    name = namespace()
    table = new_table(index=indexed(**{"global": "true", "namespace": name}))
    table.insert(rows(*((f"k{number}", "x", number) for number in range(4))), options=APART)
    # A copy of the table goes its own way and tells the same store of it; then services go on here, which tell nobody.
    other = opened(copied(table.context.storage))
    other.upsert(rows(("k0", "y", 100), ("k9", "z", 9)))
    table.insert(rows(("k4", "x", 4)), options=APART)
    table.cluster(force=True)
    table.upsert(rows(*((f"k{number}", "y", number) for number in range(0, 5, 2))))
    assert contents(table) == [("k0", "y", 0), ("k1", "x", 1), ("k2", "y", 2), ("k3", "x", 3), ("k4", "y", 4)]
    other.upsert(rows(("k0", "x", 101), ("k9", "z", 10), ("k1", "x", 11)))
    assert contents(other) == [("k0", "x", 101), ("k1", "x", 11), ("k2", "x", 2), ("k3", "x", 3), ("k9", "z", 10)]


def test_the_store_holds_the_keys_of_the_newest_slices_and_nothing_else(server: Server) -> None:
    table = new_table(index=indexed())
    table.insert(rows(*((f"k{number}", "x", number) for number in range(10))))
    assert held(table) == 10
    table.upsert(rows(("k1", "x", 11), ("k10", "x", 10), ("z", "y", 0)))
    assert held(table) == 12
    table.delete(rows(("k0", "x", 0), ("k1", "x", 0)))
    assert held(table) == 10
    table.write(None, operation="delete_partition", partitions=["y"])
    assert held(table) == 9
    for number in range(4):
        table.upsert(rows(("k2", "x", number)))
    # The file that the store knows is gone before it is told of another: the group is taken in anew.
    with stopped_learning():
        table.upsert(rows(("k11", "x", 11)))
        table.delete(rows(("k2", "x", 0)))
        table.clean({"hoodie.clean.commits.retained": "1"}, force=True)
    table.upsert(rows(("k3", "x", 33)))
    assert held(table) == len(contents(table)) == 9


def test_keys_of_logs_are_known_before_and_after_a_compaction(server: Server) -> None:
    table = new_table(index=indexed(), type="MergeOnRead")
    table.insert(rows(("a", "x", 1), ("b", "x", 2)))
    table.upsert(rows(("a", "x", 10)))
    table.delete(rows(("b", "x", 0)))
    table.upsert(rows(("b", "x", 20), ("a", "x", 11)))
    table.compact(force=True)
    table.upsert(rows(("b", "x", 21), ("a", "x", 12), ("c", "x", 3)), options=APART)
    assert contents(table) == [("a", "x", 12), ("b", "x", 21), ("c", "x", 3)]


def test_by_event_time_an_older_row_moves_nothing(server: Server) -> None:
    table = new_table(index=indexed(**{"global": "true"}), ordering_fields="ts", merge_mode="EventTime")
    table.insert(rows(("a", "x", 1, 10), ("b", "x", 2, 10), ("c", "x", 3, 10)))
    table.upsert(rows(("a", "y", 0, 9), ("b", "y", 3, 10), ("c", "x", 0, 9)))
    assert contents(table) == [("a", "x", 1), ("b", "y", 3), ("c", "x", 3)]


def test_keys_go_to_the_server_in_batches_and_come_back_as_columns(
    server: Server, figure: Callable[[int, str], None]
) -> None:
    count = scaled(50_000)
    keys = pa.array([f"key-{number:09d}" for number in range(count)])
    with open_postgres(CONNECTION, namespace()) as store:
        place = ("x", "group")
        assert store.record([Change(place, (), ("file 1",), keys, None)]) == 1
        number = store.recorded()[place].number
        asked = Counting(store.cursor)
        store.cursor = asked
        found, groups = store.find(pa.concat_arrays([keys, pa.array(["nobody"])]))
        assert sorted(found.tolist()) == list(range(count))
        assert np.all(groups == number)
        assert asked.calls == -(-(count + 1) // BATCH_KEYS)
    figure(count, "keys looked up in PostgreSQL")


def test_of_two_that_record_the_same_slice_one_is_left_out(server: Server) -> None:
    name, place = namespace(), ("x", "group")
    key = {letter: pa.array([letter]) for letter in "abc"}
    nothing = pa.array([], pa.string())
    with open_postgres(CONNECTION, name) as one, open_postgres(CONNECTION, name) as other:
        assert one.record([Change(place, (), ("file 1",), key["a"], None)]) == 1
        assert other.record([Change(place, (), ("file 2",), key["b"], None)]) == 0
        assert other.record([Change(place, ("file 1",), ("file 2",), key["b"], nothing)]) == 1
        assert one.record([Change(place, ("file 1",), ("file 3",), key["c"], key["a"])]) == 0
        assert other.recorded()[place].files == ("file 2",)
        assert sorted(one.find(pa.array(list("abc")))[0].tolist()) == [0, 1]
        one.forget([one.recorded()[place].number])
        assert not other.recorded()
        assert one.key_count() == 0


def test_a_table_is_taken_in_anew_on_request_and_keys_that_are_missing_are_found(server: Server) -> None:
    table = new_table(index=indexed())
    table.insert(rows(*((f"k{number}", "x", number) for number in range(10))))
    lookup, index = snapshot(table.context, LocalEngine(1)), parts(table)
    assert not list(missing_keys(index, lookup))
    lose(server, table, "hash < '\\x80'::bytea")
    ((place, count),) = missing_keys(index, lookup)
    assert place[0] == "x"
    assert count == 10 - held(table) > 0
    index.rebuild(lookup)
    assert held(table) == 10
    assert not list(missing_keys(index, lookup))


class TestTheVerb:
    """`hudictl keystore`."""

    def test_it_shows_and_rebuilds_what_the_store_has(self, server: Server, tmp_path: Path, capsys: Any) -> None:
        table = new_table(str(tmp_path / "t"), index=indexed())
        table.insert(rows(("a", "x", 1), ("b", "y", 2)))
        with stopped_learning():
            table.insert(rows(("c", "z", 3)))
        assert main(["keystore", table.base_path, "-o", "csv"]) == 0
        assert capsys.readouterr().out.splitlines()[1].startswith("postgres,3,2,2,")
        assert main(["keystore", table.base_path, "--rebuild", "-o", "csv"]) == 0
        assert "nothing was changed" in (shown := capsys.readouterr()).err
        assert shown.out.splitlines()[1].startswith("postgres,3,2,2,")
        assert main(["keystore", table.base_path, "--rebuild", "--yes", "-o", "csv"]) == 0
        assert capsys.readouterr().out.splitlines()[1].startswith("postgres,3,3,3,")
        assert main(["keystore", table.base_path, "--check", "-o", "csv"]) == 0
        assert capsys.readouterr().out.splitlines()[1] == "postgres,3,3,3,0"

    def test_a_store_that_lost_keys_is_a_finding(self, server: Server, tmp_path: Path, capsys: Any) -> None:
        table = new_table(str(tmp_path / "t"), index=indexed())
        table.insert(rows(("a", "x", 1), ("b", "x", 2)))
        lose(server, table, "TRUE")
        assert main(["keystore", table.base_path, "--check"]) == 3
        assert "2 keys of file group" in capsys.readouterr().err

    def test_a_table_of_another_index_has_no_store(self, tmp_path: Path, capsys: Any) -> None:
        table = new_table(str(tmp_path / "t"))
        assert main(["keystore", table.base_path]) == 1
        assert "has no external index" in capsys.readouterr().err


def lose(server: Server, table: HudiTable, condition: str) -> None:
    """What nobody does but a person: delete keys, and leave what says that they are there."""
    with contextlib.closing(dbapi.connect(server.uri)) as connection, contextlib.closing(connection.cursor()) as cursor:
        cursor.execute(
            "DELETE FROM hudi_index_keys WHERE slice IN (SELECT number FROM hudi_index_slices WHERE namespace = "
            f"'{table.base_path}') AND {condition}"
        )
        connection.commit()


class TestDeath:
    """A server that is gone, a process that dies: a write fails before anything is visible, or it stands; nothing comes twice."""

    def test_a_write_fails_clearly_while_the_server_is_away_and_leaves_nothing(self, server: Server) -> None:
        table = new_table(index=indexed())
        table.insert(rows(("a", "x", 1)))
        before = {info.path for info in table.context.storage.list() if info.path.endswith(".parquet")}
        server.kill()
        try:
            with pytest.raises(
                UnavailableError, match=rf"external index did not answer \(connection in {CONNECTION}\)"
            ):
                table.upsert(rows(("a", "x", 2), ("b", "x", 3)))
            assert contents(table) == [("a", "x", 1)]
            assert {info.path for info in table.context.storage.list() if info.path.endswith(".parquet")} == before
            assert not load_timeline(table.context).pending
        finally:
            server.start()
        table.upsert(rows(("a", "x", 2), ("b", "x", 3)))
        assert contents(table) == [("a", "x", 2), ("b", "x", 3)]

    def test_a_server_that_dies_between_lookup_and_commit_leaves_the_write_and_is_told_later(
        self, server: Server, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
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
        self, server: Server, kind: TableType, operation: str, figure: Callable[[int, str], None]
    ) -> None:
        """All copies of the table tell one store, so each meets what the others, and their dead, have told it."""
        settings = {"global": "true", "namespace": namespace()}
        case = Case(Subject("external", indexed(**settings), is_global=True), kind)
        figure(_Interrupted(case, operation).every_point(), "crash points")

    @pytest.mark.parametrize("lost", [False, True], ids=["dies", "loses its connection"])
    def test_a_process_that_dies_at_a_call_to_the_server_leaves_the_old_or_the_new_rows(
        self, server: Server, monkeypatch: pytest.MonkeyPatch, lost: bool, figure: Callable[[int, str], None]
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
            for suspect in (900.0, 0.0):
                after = copied(store)
                case.write(opened(after, suspect=suspect), "upsert", *WRITES["upsert"])
                assert read(after) == new, f"call {number}, {outcome}: the next write left {sorted(read(after))}"
        assert set(outcomes) == ({"failed", "succeeded"} if lost else {"crashed"})
        figure(sum(outcomes.values()), "crash points of the external index")


class TestSecrets:
    def test_the_connection_is_stored_and_told_nowhere(self, server: Server) -> None:
        table = new_table(index=indexed())
        table.insert(rows(("a", "x", 1)))
        table.upsert(rows(("a", "x", 2)))
        stored = [table.context.storage.get(info.path) for info in table.context.storage.list()]
        assert not [data for data in stored if PASSWORD.encode() in data]
        assert PASSWORD not in repr(parts(table)) + repr(table.context)

    @pytest.mark.parametrize(
        ("uri", "error"),
        [
            ("postgresql://hudi:{secret}x@127.0.0.1:{port}/postgres", AccessDeniedError),
            ("postgresql://hudi:{secret}@127.0.0.1:{port}/nowhere", UnavailableError),
            ("postgresql://hudi:{secret}@127.0.0.1:1/postgres", UnavailableError),
            ("postgresql://hudi@127.0.0.1:{port}/postgres?pasword={secret}", UnavailableError),
            ("postgresql://hudi@127.0.0.1:{port}/postgres?{secret}", UnavailableError),
            ("host=127.0.0.1 port={port} user=hudi password={secret} {secret}", UnavailableError),
            ("{secret}", UnavailableError),
        ],
    )
    def test_a_connection_that_does_not_work_is_refused_without_its_secret(
        self, server: Server, monkeypatch: pytest.MonkeyPatch, uri: str, error: type[Exception]
    ) -> None:
        table = new_table(index=indexed(connection="OTHER_CONNECTION"))
        monkeypatch.setenv("OTHER_CONNECTION", uri.format(secret=PASSWORD, port=server.port))
        with pytest.raises(error) as caught:
            table.upsert(rows(("a", "x", 1)))
        assert PASSWORD not in f"{caught.value} {caught.value.__notes__ if hasattr(caught.value, '__notes__') else ''}"
        assert caught.value.__suppress_context__
        assert contents(table) == []

    def test_without_its_variable_or_its_driver_a_write_is_refused_by_name(
        self, server: Server, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        table = new_table(index=indexed(connection="NO_SUCH_VARIABLE"))
        with pytest.raises(InvalidOptionError, match="set the environment variable NO_SUCH_VARIABLE"):
            table.upsert(rows(("a", "x", 1)))
        monkeypatch.setitem(sys.modules, "adbc_driver_postgresql", None)
        with pytest.raises(InvalidRequestError, match=r"install hudi-operator\[postgres\]"):
            table.upsert(rows(("a", "x", 1)))
        assert contents(open_table(table.base_path)) == []

    @pytest.mark.parametrize(("name", "value"), [("globl", "true"), ("global", "yes")])
    def test_settings_that_it_does_not_know_are_refused(self, name: str, value: str) -> None:
        with pytest.raises(InvalidOptionError, match=name):
            new_table(index=indexed(**{name: value}))


@contextlib.contextmanager
def stopped_learning() -> Iterator[None]:
    """What another engine does, or a process that dies after its commit: the store is not told."""
    learn = ExternalIndex.learn
    ExternalIndex.learn = lambda *_: None  # type: ignore[method-assign]
    try:
        yield
    finally:
        ExternalIndex.learn = learn  # type: ignore[method-assign]


@dataclass
class Counting:
    """A cursor that counts its queries."""

    cursor: Any
    calls: int = 0

    def execute(self, *arguments: Any, **more: Any) -> Any:
        self.calls += 1
        return self.cursor.execute(*arguments, **more)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.cursor, name)


@dataclass
class Calls:
    """Counts the calls to the server, and raises `error` instead of call `at` and of all that follow."""

    at: int | None = None
    error: BaseException = field(default_factory=lambda: Crash("at the server"))
    made: int = 0

    def meet(self) -> None:
        self.made += 1
        if self.at is not None and self.made >= self.at:
            raise self.error

    def opener(self) -> Callable[[str, str, str], contextlib.AbstractContextManager[PostgresStore]]:
        @contextlib.contextmanager
        def opening(variable: str, name: str, secret: str = "") -> Iterator[PostgresStore]:
            with open_postgres(variable, name, secret) as store:
                store.connection, store.cursor = Meeting(store.connection, self), Meeting(store.cursor, self)
                yield store

        return opening


@dataclass
class Meeting:
    """A connection or cursor whose calls meet the fault first."""

    inner: Any
    calls: Calls

    def __getattr__(self, name: str) -> Any:
        if name in ("execute", "adbc_ingest", "commit", "fetch_arrow_table"):
            self.calls.meet()
        return getattr(self.inner, name)
