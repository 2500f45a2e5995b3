"""The external index: what it saves, and that its store cannot make it wrong.

Matrix: a real PostgreSQL server × {the store knows the snapshot, lags behind it, belongs to another
copy of the table}. Secrets, refusals, rebuilding.

Omitted: what every index does (`test_conformance.py`, which runs this one too), deaths
(`test_external_deaths.py`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from hudi_table.api import HudiTable, open_table
from hudi_table.cli import main
from hudi_table.errors import AccessDeniedError, InvalidOptionError, InvalidRequestError, UnavailableError
from hudi_table.index.keystore.external import missing_keys
from hudi_table.index.keystore.postgres import BATCH_KEYS, open_postgres
from hudi_table.index.keystore.store import Change
from hudi_table.model.table.index_properties import CONNECTION
from hudi_table.table.engine.local_engine import LocalEngine
from hudi_table.table.timeline.context import TableContext
from hudi_table.write.index_learn import snapshot
from tests.support.crashes import copied, opened
from tests.support.key_stores import held, indexed, lose, parts, stopped_learning
from tests.support.postgres import PASSWORD, Server, namespace, running_postgres
from tests.support.recording import RecordingStorage, Trace
from tests.support.scale import scaled
from tests.support.written import contents, new_table, rows

APART = {"hoodie.parquet.small.file.limit": "0"}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running_postgres() as started:
        yield started


def opened_files(table: HudiTable, write: Callable[[HudiTable], object]) -> set[str]:
    """The base files and logs that a write opened."""
    trace = Trace()
    ctx = table.context
    storage = RecordingStorage(ctx.storage, trace, "p")
    recorded = HudiTable(TableContext(storage, ctx.config, ctx.clock, ctx.metadata, ctx.settings))
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
        with pytest.raises(InvalidRequestError, match=r"pip install 'hudi-table\[postgres\]'"):
            table.upsert(rows(("a", "x", 1)))
        assert contents(open_table(table.base_path)) == []

    @pytest.mark.parametrize(("name", "value"), [("globl", "true"), ("global", "yes")])
    def test_settings_that_it_does_not_know_are_refused(self, name: str, value: str) -> None:
        with pytest.raises(InvalidOptionError, match=name):
            new_table(index=indexed(**{name: value}))


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
