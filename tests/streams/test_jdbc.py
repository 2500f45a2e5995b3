"""Rows of a real PostgreSQL in a table: all of them, or those that have grown; nothing lost at
ties, nothing committed twice, read in parts from one state; and what is refused with which
words."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml

from hudi_operator.runtime.local.loop import LocalRuntime
from hudi_spark.jobs.__main__ import main
from hudi_table.api import open_table
from hudi_table.cli.program import main as hudictl
from hudi_table.errors import InvalidRequestError
from hudi_table.model.job.jobspec import JobResult, JobSpec
from hudi_table.sources.jdbc import source
from hudi_table.sources.jdbc.columns import columns_of
from hudi_table.table.store.clock import SystemClock
from tests.support.manifests import manifest
from tests.support.postgres import PASSWORD, USER, Server, running_postgres


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running_postgres() as found:
        yield found


@dataclass
class Database:
    """A table of a name of its own, and the ingest that follows it."""

    server: Server
    folder: Path
    name: str = field(default_factory=lambda: f"t{uuid.uuid4().hex[:10]}")
    runs: int = 0

    def do(self, *statements: str) -> None:
        self.server.execute(*(each.replace("$t", self.name) for each in statements))

    @property
    def location(self) -> str:
        return str(self.folder / "lake")

    def run(self, columns: dict[str, str] | None = None, work: dict[str, Any] | None = None, **jdbc: Any) -> JobResult:
        """An attempt in this process."""
        self.runs += 1
        asked: dict[str, Any] = {"url": f"postgresql://127.0.0.1:{self.server.port}/postgres", **jdbc}
        if "query" not in asked:
            asked.setdefault("table", self.name)
        asked = json.loads(json.dumps(asked).replace("$t", self.name))
        table = {
            "name": "orders", "location": f"file://{self.location}", "type": "CopyOnWrite", "recordKey": ["id"],
            "index": {"type": "Bucket", "buckets": 2},
        }  # fmt: skip
        source = {"type": "Jdbc", "jdbc": asked, **({"columns": columns} if columns else {})}
        body = {"type": "Ingest", "name": "feed", "operation": "Upsert", "source": source, **(work or {})}
        place = self.folder / f"run-{self.runs}"
        place.mkdir()
        spec = JobSpec(attempt=f"run-{self.runs}", table=table, work=body, engine="Local")
        (place / "spec.json").write_text(spec.to_json())
        main([str(place / "spec.json"), str(place / "result.json")])
        return JobResult.from_json((place / "result.json").read_text())

    def good(self, **how: Any) -> JobResult:
        done = self.run(**how)
        assert done.outcome == "Succeeded", done.message
        return done

    def rows(self, *columns: str) -> list[dict[str, Any]]:
        found = open_table(self.location).scan(columns=list(columns)).to_arrow().to_pylist()
        return sorted(found, key=lambda each: each["id"])


@pytest.fixture
def database(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Database:
    monkeypatch.setenv("DATABASE_USERNAME", USER)
    monkeypatch.setenv("DATABASE_PASSWORD", PASSWORD)
    return Database(server, tmp_path)


GROWS = {"incremental": {"column": "at"}}


def test_a_table_is_read_whole_and_again_once_it_has_changed(database: Database) -> None:
    database.do("create table $t (id int, n text)", "insert into $t select i, 'v' || i from generate_series(1, 500) i")
    assert database.good().figures["recordsInserted"] == 500
    assert database.run().outcome == "NothingToDo"
    database.do("update $t set n = 'new' where id = 7", "insert into $t values (501, 'x')")
    done = database.good()
    assert (done.figures["rowsRead"], done.figures["recordsInserted"]) == (501, 1)
    assert database.rows("id", "n")[6] == {"id": 7, "n": "new"}
    assert database.run().outcome == "NothingToDo"


def test_rows_that_have_grown_are_read_and_those_of_one_value_are_all_taken(database: Database) -> None:
    database.do("create table $t (id int, at timestamptz, n int)")
    assert database.run(**GROWS).outcome == "NothingToDo", "there is no row to make a table of"
    database.do(
        "insert into $t select i, '2026-01-01Z'::timestamptz + i * interval '1 s', i from generate_series(1, 300) i"
    )
    assert database.good(**GROWS).figures["rowsRead"] == 300
    assert database.run(**GROWS).outcome == "NothingToDo"
    # One more of the greatest value, committed after it was read; and one behind it.
    database.do("insert into $t values (301, '2026-01-01T00:05:00Z', 301)")
    assert database.good(**GROWS).figures["rowsRead"] == 2
    database.do(
        "insert into $t values (302, '2026-01-01T00:05:00.000001Z', 302)", "update $t set n = -1 where id = 300"
    )
    assert database.good(**GROWS).figures["rowsRead"] == 3
    rows = database.rows("id", "n")
    assert ([row["id"] for row in rows], rows[299]["n"]) == (list(range(1, 303)), -1)
    assert database.run(**GROWS).outcome == "NothingToDo"


def test_a_transaction_that_ends_late_is_taken_within_the_lag(database: Database) -> None:
    late: dict[str, Any] = {"incremental": {"column": "at", "lag": 60}}
    database.do("create table $t (id int, at timestamp)", "insert into $t values (1, '2026-01-01 00:10:00')")
    database.good(**late)
    database.do("insert into $t values (2, '2026-01-01 00:09:10'), (3, '2026-01-01 00:08:00')")
    assert database.good(**late).figures["rowsRead"] == 2
    assert [row["id"] for row in database.rows("id")] == [1, 2], "3 lies before the lag"
    assert database.run(**late).outcome == "NothingToDo"


@pytest.mark.parametrize(
    ("kind", "values", "lag"),
    [("bigint", ("10", "11"), 3), ("smallint", ("-5", "6"), 0), ("date", ("2026-01-01", "2026-03-01"), 86_400)],
)
def test_numbers_and_dates_grow_too(database: Database, kind: str, values: tuple[str, str], lag: int) -> None:
    grows = {"incremental": {"column": "at", "lag": lag}}
    database.do(f"create table $t (id int, at {kind})", f"insert into $t values (1, '{values[0]}'), (2, null)")
    assert database.good(**grows).figures["rowsRead"] == 1
    database.do(f"insert into $t values (3, '{values[1]}')")
    database.good(**grows)
    assert [row["id"] for row in database.rows("id")] == [1, 3]
    assert hudictl(["checkpoint", "show", database.location]) == 0


def test_parts_are_read_at_once_from_one_state_and_hold_each_row_once(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    database.do(
        "create table $t (id int, at timestamptz, d date)",
        "insert into $t select i, '2026-01-01Z'::timestamptz + i * interval '37 min', '2026-01-01'::date + i / 9 from generate_series(1, 2000) i",
        "insert into $t values (0, null, null), (-5, 'infinity', 'infinity')",
    )
    real = source._reading

    def meanwhile(*arguments: Any) -> Any:
        """Rows that come once the state is chosen."""
        database.do("insert into $t values (9999, '2030-01-01Z', '2030-01-01')")
        return real(*arguments)

    monkeypatch.setattr(source, "_reading", meanwhile)
    for number, column in enumerate(("id", "at", "d")):
        split = {"column": column, "parts": 5}
        database.good(split=split, infinite="AsNull", filter=f"{number} = {number} and id < 9999")
        ids = [row["id"] for row in database.rows("id")]
        assert ids == [-5, *range(2001)]
        database.do("update $t set at = at + interval '1 s' where id = 5")
    monkeypatch.setattr(source, "_reading", real)
    assert database.good(split={"column": "id", "parts": 16}, infinite="AsNull").figures["rowsRead"] >= 2003


def test_a_filter_and_a_query_are_the_databases_own(database: Database) -> None:
    database.do("create table $t (id int, n int)", "insert into $t select i, i % 3 from generate_series(1, 30) i")
    assert database.good(filter="n = 1 -- a comment").figures["rowsRead"] == 10
    query = "select id, n * 10 as n from $t where n = 2 -- another\n;"
    assert database.good(query=query, filter="id > 3").figures["rowsRead"] == 9
    assert {row["n"] for row in database.rows("id", "n") if row["id"] in (5, 8)} == {20}


def test_types_are_those_of_the_database(database: Database) -> None:
    database.do(
        "create table $t (id uuid, i2 smallint, f real, n numeric(12,3), b bool, t text, j jsonb, y bytea, d date, "
        "ts timestamp, tz timestamptz, tm time, a int[], ip inet, free numeric)",
        "insert into $t values ('11111111-2222-3333-4444-555555555555', 1, 1.5, 12.345, true, 'x', '{\"a\": 1}', '\\x0102', "
        "'2026-01-02', '2026-01-02 03:04:05.678901', '2026-01-02 03:04:05+02', '03:04:05', '{1,2}', '10.0.0.1', 7.5)",
    )
    without = database.run()
    assert (without.error_class, "column free is numeric without precision" in without.message) == (
        "InvalidSchema",
        True,
    )
    database.good(columns={"free": "decimal(20,4)"})
    (row,) = database.rows("id", "n", "j", "y", "d", "ts", "tz", "tm", "a", "ip", "free")
    assert row["tm"] == "03:04:05"
    assert (row["id"], str(row["n"]), json.loads(row["j"])) == (
        "11111111-2222-3333-4444-555555555555",
        "12.345",
        {"a": 1},
    )
    assert (row["y"], str(row["d"]), row["a"], row["ip"], str(row["free"])) == (b"\1\2", "2026-01-02", [1, 2], "10.0.0.1/32", "7.5000")  # fmt: skip
    assert (row["ts"].microsecond, row["tz"].isoformat()) == (678901, "2026-01-02T01:04:05+00:00")
    database.do("insert into $t (id, free) values ('11111111-2222-3333-4444-555555555556', 'NaN')")
    refused = database.run(columns={"free": "decimal(20,4)"})
    assert (refused.error_class, "column free holds a number that decimal128(20, 4) does not" in refused.message) == ("InvalidData", True)  # fmt: skip


def test_dates_without_an_end_are_refused_or_null(database: Database) -> None:
    database.do("create table $t (id int, d date, ts timestamp)", "insert into $t values (1, 'infinity', '-infinity')")
    refused = database.run()
    assert refused.error_class == "InvalidData"
    assert "column d holds a date that is infinite" in refused.message
    database.good(infinite="AsNull")
    assert database.rows("id", "d", "ts") == [{"id": 1, "d": None, "ts": None}]


@pytest.mark.parametrize(
    ("how", "error", "words"),
    [
        ({"table": "nope"}, "InvalidRequest", 'relation "nope" does not exist'),
        ({"filter": "bad syntax here"}, "InvalidRequest", "syntax error"),
        ({"filter": "1 / (id - id) > 0"}, "InvalidData", "division by zero"),
        ({"query": "delete from $t returning id"}, "InvalidRequest", "does not take what jdbc asks for"),
        ({"query": "select 1 as id; select 2 as id"}, "InvalidRequest", "syntax error"),
        ({"incremental": {"column": "n"}}, "InvalidRequest", "jdbc.incremental.column n is text"),
        ({"incremental": {"column": "gone"}}, "InvalidRequest", "jdbc.incremental.column 'gone' is no column"),
        ({"split": {"column": "n", "parts": 2}}, "InvalidRequest", "jdbc.split.column n is text"),
        ({"split": {"column": "id", "parts": 99}}, "InvalidRequest", "give 1 to 16"),
        ({"query": "select id, id from $t"}, "InvalidSchema", "column 'id' twice"),
        ({"columns": {"gone": "int"}}, "InvalidSchema", "source.columns names 'gone'"),
        ({"url": "mysql://db/shop"}, "InvalidRequest", "no driver of MySQL and MariaDB yields columns"),
        ({"url": "postgresql://user:secret@db/shop"}, "InvalidRequest", "without user and options"),
        ({"url": "postgresql://127.0.0.1:1/shop"}, "Unavailable", "the database at 127.0.0.1:1/shop does not answer"),
        ({"tls": "Require"}, "Unavailable", "does not support SSL"),
        ({"tls": "VerifyFull"}, "InvalidRequest", "needs DATABASE_CA"),
        ({**GROWS, "work": {"operation": "Insert"}}, "InvalidRequest", "only operation Upsert"),
    ],
)
def test_what_cannot_be_read_is_told(database: Database, how: dict[str, Any], error: str, words: str) -> None:
    database.do("create table $t (id int, n text, at timestamp)", "insert into $t values (1, 'a', '2026-01-01')")
    failed = database.run(**how)
    assert (failed.error_class, words in failed.message) == (error, True), failed.message
    assert PASSWORD not in failed.message


def test_a_wrong_password_is_refused_and_no_message_shows_it(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_PASSWORD", "another password")
    failed = database.run()
    assert failed.error_class == "AccessDenied"
    assert "another password" not in failed.to_json()
    monkeypatch.delenv("DATABASE_USERNAME")
    assert "needs DATABASE_USERNAME in the Secret" in database.run().message


def test_a_driver_that_tells_no_types_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="needs adbc-driver-postgresql"):
        columns_of(pa.schema([("id", pa.int32())]), pa.schema([]))


def test_an_ingest_keeps_its_kind_of_source(database: Database) -> None:
    database.do("create table $t (id int)", "insert into $t values (1)")
    database.good()
    kafka = {"source": {"type": "Files", "path": f"file://{database.folder}", "format": "json"}}
    assert "is of a database, and its source is of type Files now" in database.run(work=kafka).message


def test_a_server_that_is_killed_while_it_is_read_leaves_nothing_and_the_next_run_has_all(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    database.do("create table $t (id int)", "insert into $t select generate_series(1, 1000)")
    real = source._reading

    def killed(*arguments: Any) -> Any:
        database.server.kill()
        return real(*arguments)

    monkeypatch.setattr(source, "_reading", killed)
    failed = database.run()
    database.server.start()
    assert failed.error_class == "Unavailable", failed.message
    monkeypatch.setattr(source, "_reading", real)
    assert database.good().figures["recordsInserted"] == 1000


def test_a_manifest_makes_the_table_and_asks_the_database_again_in_its_time(
    database: Database, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    database.do(
        "create table $t (id int, at timestamptz)", "insert into $t select i, now() from generate_series(1, 20) i"
    )
    url = f"postgresql://127.0.0.1:{database.server.port}/postgres"
    source = {"type": "Jdbc", "jdbc": {"url": url, "table": database.name, "every": "2s", **GROWS}}
    document = manifest(
        "orders", location=f"file://{database.location}", recordKey=["id"], index={"type": "Bucket", "buckets": 2},
        ingest=[{"name": "feed", "source": source}],
    )  # fmt: skip
    path = tmp_path / "manifest.yaml"
    path.write_text(yaml.safe_dump(document))

    def applied() -> dict[str, Any]:
        lines: list[str] = []
        found = LocalRuntime([path], tmp_path / "state", SystemClock(), lines.append).run()[0]
        assert PASSWORD not in "".join(lines) + json.dumps(found)
        return dict(found)

    first = applied()
    conditions = {each["type"]: (each["status"], each["reason"]) for each in first["status"]["conditions"]}
    assert (conditions["Ready"][0], conditions["Fresh"]) == ("True", ("True", "UpToDate"))
    assert first["status"]["ingest"][0]["lastCommit"]
    database.do("insert into $t values (21, now())")
    SystemClock().sleep(2.5)
    again = applied()
    assert len(database.rows("id")) == 21
    assert [run["phase"] for run in again["status"]["runs"][:2]] == ["Succeeded", "Succeeded"]
    SystemClock().sleep(2.5)
    assert applied()["status"]["runs"][0]["phase"] == "NothingToDo"
    assert PASSWORD not in caplog.text
