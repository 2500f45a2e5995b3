"""Rows of a real PostgreSQL and of a real MariaDB in a table, by one suite: all of them, or those
that have grown; nothing lost at ties, nothing committed twice; a server that goes away."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml

from hudi_operator.runtime.local.loop import LocalRuntime
from hudi_table.api import open_table
from hudi_table.cli.program import main as hudictl
from hudi_table.model.job.checkpoint import key_of
from hudi_table.sources.checkpoints import held_mark
from hudi_table.sources.jdbc import source
from hudi_table.table.store.clock import SystemClock
from tests.support.databases import MARIADB, POSTGRES, Database, Server, Vendor
from tests.support.manifests import manifest
from tests.support.scale import scaled

GROWS: dict[str, Any] = {"incremental": {"column": "at"}}
FILLED = {"hoodie.write.set.null.for.missing.columns": "true"}


@pytest.fixture(scope="module", params=[POSTGRES, MARIADB], ids=lambda vendor: vendor.scheme)
def served(request: pytest.FixtureRequest) -> Iterator[tuple[Server, Vendor]]:
    # Nothing may depend on the zone that a server thinks in.
    settings = ["--default-time-zone=+05:30"] if request.param is MARIADB else ["timezone=Asia/Kolkata"]
    with request.param.running(*settings) as found:
        yield found, request.param


@pytest.fixture
def database(served: tuple[Server, Vendor], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Database:
    server, vendor = served
    monkeypatch.setenv("DATABASE_USERNAME", vendor.user)
    monkeypatch.setenv("DATABASE_PASSWORD", vendor.password)
    return Database(server, vendor, tmp_path)


def test_a_table_is_read_whole_and_again_once_it_has_changed(database: Database) -> None:
    database.do("create table $t (id int, n $text)", "insert into $t select i, concat('v', i) from $series(500)")
    assert database.good().figures["recordsInserted"] == 500
    assert database.run().outcome == "NothingToDo"
    database.do("update $t set n = 'new' where id = 7", "insert into $t values (501, 'x')")
    done = database.good()
    assert (done.figures["rowsRead"], done.figures["recordsInserted"]) == (501, 1)
    assert database.rows("id", "n")[6] == {"id": 7, "n": "new"}
    assert database.run().outcome == "NothingToDo"
    database.do("update $t set n = null where id = 8")
    database.good()
    assert (database.rows("id", "n")[7]["n"], database.run().outcome) == (None, "NothingToDo")


def test_rows_that_do_not_hold_what_they_must_are_kept_once_however_often_they_are_read(database: Database) -> None:
    database.do("create table $t (id int, at $time, n int)", "insert into $t select i, $later(i), i from $series(9)")
    work = {"expectations": [{"name": "small", "sql": "n < 9", "onFail": "Quarantine"}]}
    assert database.good(work=work, **GROWS).figures["recordsRefused"] == 1
    database.do("insert into $t values (10, $later(9), 8), (11, $later(10), 99)")
    done = database.good(work=work, **GROWS)
    assert (done.figures["rowsRead"], done.figures["recordsRefused"]) == (3, 2)
    assert [row["id"] for row in database.rows("id")] == [*range(1, 9), 10]
    found = open_table(f"{database.location}_row_errors").scan().to_arrow().to_pylist()
    kept = {json.loads(each["value"])["id"]: each["place"] for each in found}
    assert sorted(kept) == [9, 11]
    assert re.fullmatch("rows with at from .+:09.* to .+:10.*", kept[11])


def test_rows_that_have_grown_are_read_and_those_of_one_value_are_all_taken(database: Database) -> None:
    database.do("create table $t (id int, at $time, n int)")
    assert database.run(**GROWS).outcome == "NothingToDo", "there is no row to make a table of"
    database.do("insert into $t select i, $later(i), i from $series(300)")
    assert database.good(**GROWS).figures["rowsRead"] == 300
    assert database.run(**GROWS).outcome == "NothingToDo"
    # One more of the greatest value, committed after it was read; and one behind it.
    database.do("insert into $t values (301, $later(300), 301)")
    assert database.good(**GROWS).figures["rowsRead"] == 2
    database.do("insert into $t values (302, $later(300.000001), 302)", "update $t set n = -1 where id = 300")
    assert database.good(**GROWS).figures["rowsRead"] == 3
    rows = database.rows("id", "n")
    assert ([row["id"] for row in rows], rows[299]["n"]) == (list(range(1, 303)), -1)
    assert database.run(**GROWS).outcome == "NothingToDo"


def test_a_filter_that_lets_older_rows_in_is_refused_until_somebody_says_where_to_go_on(
    database: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    database.do(
        "create table $t (id int, at $time, n int)",
        "insert into $t select i, $later(i), i from $series(9)",
        f"create table {database.name}_other (id int, at $time, n int)",
        f"create database {database.name}",
    )
    database.good(filter="n > 5", **GROWS)
    elsewhere = database.url.replace("127.0.0.1", "localhost")
    assert database.run(filter="n > 5", url=elsewhere, **GROWS).outcome == "NothingToDo", "the same database"
    changes: list[tuple[dict[str, Any], str]] = [
        ({}, "jdbc.filter has changed"),
        ({"filter": "n > 2"}, "jdbc.filter has changed"),
        ({"filter": "n > 5", "table": "$t_other"}, "jdbc.table has changed"),
        ({"query": "select * from $t"}, "jdbc.filter, jdbc.query and jdbc.table have changed"),
        ({"filter": "n > 5", "url": f"{database.url.rpartition('/')[0]}/{database.name}"}, "jdbc.url has changed"),
    ]
    for how, said in changes:
        refused = database.run(**how, **GROWS)
        assert (refused.error_class, said in refused.message) == ("InvalidRequest", True), refused.message
    found = re.search(r"hudictl (checkpoint set) BASE (INGEST) '(at [^']+)'", refused.message)
    assert found is not None, refused.message
    assert [row["id"] for row in database.rows("id")] == [6, 7, 8, 9]
    # On from the mark, with what lies below it left out, as its author wants it.
    assert hudictl(["checkpoint", "set", database.location, "feed", found[3]]) == 0
    database.do("insert into $t values (10, $later(10), 1)")
    database.good(**GROWS)
    assert [row["id"] for row in database.rows("id")] == [6, 7, 8, 9, 10]
    # Anew, from an earlier value.
    assert database.run(filter="n < 100", **GROWS).error_class == "InvalidRequest", (
        "the next commit knows what it is of"
    )
    assert hudictl(["checkpoint", "set", database.location, "feed", "at 2025-01-01 00:00:00+00"]) == 0
    database.good(filter="n < 100", **GROWS)
    assert [row["id"] for row in database.rows("id")] == list(range(1, 11))


def test_an_ingest_whose_checkpoint_does_not_say_what_it_is_of_goes_on_and_says_it_next(database: Database) -> None:
    database.do("create table $t (id int, at $time)", "insert into $t values (1, $later(1))")
    database.good(**GROWS)
    table = open_table(database.location)
    held = held_mark(table.context, "feed")
    assert held is not None
    old = {key: value for key, value in json.loads(held.checkpoint.to_text()).items() if key != "statement"}
    one = pa.table({"id": pa.array([1], pa.int32())})
    table.upsert(one, extra_metadata={key_of("feed"): json.dumps(old)}, options=FILLED)
    database.do("insert into $t values (2, $later(2))")
    database.good(filter="id > 0", **GROWS)
    assert len(database.rows("id")) == 2
    assert "jdbc.filter has changed" in database.run(**GROWS).message


def test_a_transaction_that_ends_late_is_taken_within_the_lag(database: Database) -> None:
    late: dict[str, Any] = {"incremental": {"column": "at", "lag": 60}}
    database.do("create table $t (id int, at $local)", "insert into $t values (1, $later(600))")
    database.good(**late)
    database.do("insert into $t values (2, $later(550)), (3, $later(480))")
    assert database.good(**late).figures["rowsRead"] == 2
    assert [row["id"] for row in database.rows("id")] == [1, 2], "3 lies before the lag"
    assert database.run(**late).outcome == "NothingToDo"


@pytest.mark.parametrize(
    ("kind", "values", "lag"),
    [
        ("bigint", ("10", "11"), 3), ("smallint", ("-5", "6"), 0), ("date", ("2026-01-01", "2026-03-01"), 86_400),
        ("bigint", ("-9223372036854775808", "-9223372036854775807"), 3), ("date", ("0001-01-02", "2026-03-01"), 864_000),
    ],
)  # fmt: skip
def test_numbers_and_dates_grow_too(database: Database, kind: str, values: tuple[str, str], lag: int) -> None:
    grows = {"incremental": {"column": "at", "lag": lag}}
    database.do(f"create table $t (id int, at {kind})", f"insert into $t values (1, '{values[0]}'), (2, null)")
    assert database.good(**grows).figures["rowsRead"] == 1
    database.do(f"insert into $t values (3, '{values[1]}')")
    database.good(**grows)
    assert [row["id"] for row in database.rows("id")] == [1, 3]
    assert hudictl(["checkpoint", "show", database.location]) == 0


@pytest.mark.parametrize("column", ["id", "at", "d"])
def test_rows_that_have_grown_are_read_in_parts_at_once_each_once(database: Database, column: str) -> None:
    database.do(
        "create table $t (id int, at $time, d date)",
        "insert into $t select i, $later(i * 2220), cast($later(i * 9600) as date) from $series(2000)",
        "insert into $t values (-5, $later(9), null)",
    )
    how: dict[str, Any] = {**GROWS, "split": {"column": column, "parts": 5}}
    assert database.good(**how).figures["rowsRead"] == 2001
    assert [row["id"] for row in database.rows("id")] == [-5, *range(1, 2001)]
    database.do("update $t set at = $later(5000000) where id in (3, 4)")
    assert database.good(**how).figures["rowsRead"] == 3
    assert database.run(**how).outcome == "NothingToDo"


def test_a_filter_and_a_query_are_the_databases_own(database: Database) -> None:
    database.do("create table $t (id int, n int)", "insert into $t select i, i % 3 from $series(30)")
    assert database.good(filter="n = 1 -- a comment").figures["rowsRead"] == 10
    query = "select id, n * 10 as n from $t where n = 2 -- another\n;"
    assert database.good(query=query, filter="id > 3").figures["rowsRead"] == 9
    assert {row["n"] for row in database.rows("id", "n") if row["id"] in (5, 8)} == {20}


def test_the_table_is_the_database_after_any_history_of_inserts_and_updates(database: Database) -> None:
    database.do("create table $t (id int primary key, at $time, n int)")
    chance, clock, alive = random.Random(7), 0, 0
    how: dict[str, Any] = {"incremental": {"column": "at", "lag": 3}, "split": {"column": "id", "parts": 2}}
    for step in range(scaled(12, quick=6)):
        changes = []
        for _ in range(chance.randint(0, 6)):
            clock += chance.choice((0, 0, 1, 5))  # many of one time
            at = f"$later({max(0, clock - chance.choice((0, 0, 2)))})"  # some late, within the lag
            if alive and chance.random() < 0.6:
                changes.append(f"update $t set n = {step}, at = {at} where id = {chance.randint(1, alive)}")
            else:
                alive += 1
                changes.append(f"insert into $t values ({alive}, {at}, {step})")
        database.do(*changes or ["select 1"])
        assert database.run(**how).outcome in ("Succeeded", "NothingToDo")
        if alive:
            assert database.run(**how).outcome == "NothingToDo", "nothing has changed"
    grown = database.rows("id", "n")
    database.good(work={"name": "whole"})
    assert (len(grown), grown) == (alive, database.rows("id", "n"))


def test_an_ingest_keeps_its_kind_of_source(database: Database) -> None:
    database.do("create table $t (id int)", "insert into $t values (1)")
    database.good()
    kafka = {"source": {"type": "Files", "path": f"file://{database.folder}", "format": "json"}}
    assert "is of a database, and its source is of type Files now" in database.run(work=kafka).message


def test_a_server_that_is_killed_while_it_is_read_leaves_nothing_and_the_next_run_has_all(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    database.do(
        "create table $t (id int, n varchar(300))",
        "insert into $t select i, repeat('some text', 30) from $series(300000)",
    )
    real = source._typed

    def killed(*arguments: Any) -> Any:
        rows = real(*arguments)
        yield next(rows)
        database.server.kill()
        yield from rows

    monkeypatch.setattr(source, "_typed", killed)
    failed = database.run()
    database.server.start()
    assert failed.error_class == "Unavailable", failed.message
    assert database.vendor.password not in failed.to_json()
    monkeypatch.setattr(source, "_typed", real)
    assert database.good().figures["recordsInserted"] == 300_000


def test_a_wrong_password_is_refused_and_no_message_shows_it(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_PASSWORD", "another p@ssword")
    failed = database.run()
    assert failed.error_class == "AccessDenied"
    assert not [each for each in ("another p@ssword", "another%20p%40ssword") if each in failed.to_json()]
    monkeypatch.delenv("DATABASE_USERNAME")
    assert "needs DATABASE_USERNAME in the Secret" in database.run().message


def test_a_manifest_makes_the_table_and_asks_the_database_again_in_its_time(
    database: Database, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    database.do("create table $t (id int, at $time)", "insert into $t select i, now() from $series(20)")
    source = {"type": "Jdbc", "jdbc": {"url": database.url, "table": database.name, "every": "2s", **GROWS}}
    document = manifest(
        "orders", location=f"file://{database.location}", recordKey=["id"], index={"type": "Bucket", "buckets": 2},
        ingest=[{"name": "feed", "source": source}],
    )  # fmt: skip
    path = tmp_path / "manifest.yaml"
    path.write_text(yaml.safe_dump(document))

    def applied() -> dict[str, Any]:
        lines: list[str] = []
        found = LocalRuntime([path], tmp_path / "state", SystemClock(), lines.append).run()[0]
        assert database.vendor.password not in "".join(lines) + json.dumps(found)
        return dict(found)

    first = applied()
    conditions = {each["type"]: (each["status"], each["reason"]) for each in first["status"]["conditions"]}
    assert (conditions["Ready"][0], conditions["Fresh"]) == ("True", ("Unknown", "SourceNotAsked"))
    assert first["status"]["ingest"][0]["lastCommit"]
    database.do("insert into $t values (21, now())")
    SystemClock().sleep(2.5)
    again = applied()
    assert len(database.rows("id")) == 21
    assert [run["phase"] for run in again["status"]["runs"][:2]] == ["Succeeded", "Succeeded"]
    SystemClock().sleep(2.5)
    assert applied()["status"]["runs"][0]["phase"] == "NothingToDo"
    assert database.vendor.password not in caplog.text
