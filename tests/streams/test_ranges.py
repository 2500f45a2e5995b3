"""Ranges of files, of a database and of another table beside the ingest that follows them: exactly
what lies in one, once, never over newer rows, with a checkpoint of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_table import create_table, open_table
from hudi_table.model.job.jobspec import JobResult
from hudi_table.sources.checkpoints import all_checkpoints
from hudi_table.table.timeline.active import load_timeline
from tests.support import polled, postgres
from tests.support.polled import Polled

ORDERED = {"orderingFields": ["n"], "mergeMode": "EventTime"}


def of_keys(*rows: tuple[str, int]) -> pa.Table:
    return pa.table({"id": [key for key, _ in rows], "n": pa.array([n for _, n in rows], pa.int64())})


def backfill(feed: Polled, since: str | None, until: str, name: str = "old", **more: Any) -> JobResult:
    """A run of a range; `more` is laid over it."""
    asked = {"until": until, **({"since": since} if since else {}), **more}
    return feed.run(source={"range": asked}, mode="Backfill", name=name)


def rows(feed: Polled) -> dict[str, int]:
    found = open_table(feed.location).scan(["id", "n"]).to_arrow().to_pylist()
    assert len({row["id"] for row in found}) == len(found)
    return {row["id"]: row["n"] for row in found}


def land(feed: Polled, name: str, day: int, table: pa.Table) -> None:
    """A file that was last changed on a day of January."""
    path = feed.folder / "landing" / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(polled.parquet(table))
    at = datetime(2026, 1, day, tzinfo=UTC).timestamp()
    os.utime(path, (at, at))


@pytest.fixture
def files(tmp_path: Path) -> Polled:
    feed = polled.of_folder(tmp_path)
    feed.operation, feed.table = "Upsert", ORDERED
    for day in range(1, 6):
        land(feed, f"{day}.parquet", day, of_keys((f"k{day}", day), ("same", day)))
    return feed


def test_files_of_a_range_of_time_are_taken_once_and_no_others(files: Polled) -> None:
    done = backfill(files, "2026-01-02T00:00:00Z", "2026-01-04T00:00:00Z")
    assert done.figures["filesConsumed"] == 2, done.message
    assert rows(files) == {"k2": 2, "k3": 3, "same": 3}
    assert backfill(files, "2026-01-02T00:00:00Z", "2026-01-04T00:00:00Z").outcome == "NothingToDo"
    land(files, "late.parquet", 3, of_keys(("late", 1)))
    assert backfill(files, "2026-01-02T00:00:00Z", "2026-01-04T00:00:00Z").figures["filesConsumed"] == 1


def test_files_of_a_range_of_names_are_taken_however_old_they_are(files: Polled) -> None:
    assert backfill(files, "2.", "4.", by="Name").figures["filesConsumed"] == 2
    assert rows(files) == {"k2": 2, "k3": 3, "same": 3}


def test_a_range_has_a_checkpoint_of_its_own_and_no_old_row_takes_a_newer_one(files: Polled) -> None:
    land(files, "9.parquet", 9, of_keys(("same", 100), ("k2", 50)))
    following = files.run(name="new", source={"maxBytes": 1})
    assert following.outcome == "Succeeded"
    assert rows(files)["same"] == 100
    done = backfill(files, None, "2026-01-04T00:00:00Z")
    assert done.figures["filesConsumed"] == 3
    assert rows(files) == {"k1": 1, "k2": 50, "k3": 3, "k4": 4, "k5": 5, "same": 100}
    names = {key.rpartition(".")[2] for key, _, _ in all_checkpoints(open_table(files.location).context)}
    assert names == {"new", "old"}
    assert files.run(name="new").outcome == "NothingToDo"


def test_what_no_range_may_be_is_refused_by_name(files: Polled, tmp_path: Path) -> None:
    for asked, said in (
        ({"until": "2026-01-04"}, "range.until is '2026-01-04'; give a moment"),
        ({"since": "2026-01-04T00:00:00Z", "until": "2026-01-04T01:00:00+02:00"}, "nothing is between them"),
        ({"since": "2026-01-04T00:00:00Z"}, "range.until is missing"),
        ({"until": "4", "by": "Size"}, "range.by is 'Size'"),
    ):
        refused = files.run(source={"range": asked}, mode="Backfill")
        assert (refused.error_class, said in refused.message) == ("InvalidRequest", True), refused.message
    good = {"until": "2026-01-04T00:00:00Z"}
    for work, said in (
        ({"mode": "Once"}, "mode Backfill needs a range, and no other mode has one"),
        ({"mode": "Backfill", "operation": "Insert"}, "mode Backfill needs operation Upsert, orderingFields"),
    ):
        refused = files.run(source={"range": good}, **work)
        assert (refused.error_class, said in refused.message) == ("InvalidRequest", True), refused.message
    files.table = {}
    assert "orderingFields and mergeMode EventTime" in files.run(source={"range": good}, mode="Backfill").message
    files.table = ORDERED
    assert "needs a range" in files.run(mode="Backfill").message
    assert not (tmp_path / "lake").exists()


@pytest.mark.parametrize("kind", ["Sql", "Custom"])
def test_sources_without_ranges_are_refused_by_name(tmp_path: Path, kind: str) -> None:
    feed = Polled(tmp_path, {"type": kind, kind.lower(): {}}, lambda _: None, table=ORDERED)
    refused = feed.run(mode="Backfill")
    if kind == "Sql":
        statement = polled.of_statement(tmp_path)
        statement.table, statement.runs = ORDERED, feed.runs
        refused = statement.run(mode="Backfill")
    assert refused.error_class == "InvalidRequest"
    assert f"a source of type {kind} has no range that mode Backfill could take" in refused.message


@pytest.mark.parametrize(("kind", "why"), [("Sql", "in DuckDB's SQL"), ("Kinesis", "five reads a second")])
def test_what_tasks_of_spark_do_not_read_is_refused_with_the_reason(tmp_path: Path, kind: str, why: str) -> None:
    feed = Polled(tmp_path, {"type": kind, kind.lower(): {}}, lambda _: None, engine="Spark")
    refused = feed.run()
    assert refused.error_class == "InvalidRequest"
    assert f"a source of type {kind} is not read in tasks of Spark" in refused.message
    assert why in refused.message


@pytest.fixture(scope="module")
def server() -> Iterator[postgres.Server]:
    with postgres.running_postgres() as found:
        yield found


@pytest.fixture
def database(server: postgres.Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Polled:
    monkeypatch.setenv("DATABASE_USERNAME", postgres.USER)
    monkeypatch.setenv("DATABASE_PASSWORD", postgres.PASSWORD)
    feed = polled.of_database(tmp_path, server)
    feed.table = ORDERED
    return feed


def test_rows_of_a_range_of_a_database_are_taken_once(database: Polled) -> None:
    database.put(range(100))
    done = backfill(database, "20", "40")
    assert (done.outcome, done.figures["rowsRead"]) == ("Succeeded", 20), done.message
    assert database.numbers() == list(range(20, 40))
    assert backfill(database, "20", "40").outcome == "NothingToDo"
    database.put([1000])
    assert backfill(database, "20", "40").outcome == "NothingToDo"
    assert backfill(database, "20", "60").outcome == "Succeeded", "another end goes on from what was read"
    assert database.numbers() == list(range(20, 60))


def test_a_range_of_a_database_takes_no_newer_row(database: Polled, server: postgres.Server) -> None:
    database.put(range(10))
    assert database.run(name="new").outcome == "Succeeded"
    open_table(database.location).upsert(of_keys(("k3", 300)))
    assert backfill(database, None, "5").figures["rowsRead"] == 5
    assert rows(database)["k3"] == 300


@pytest.mark.parametrize(
    ("since", "until", "said"),
    [
        (None, "soon", "range.until is 'soon', and column n is int8: give a whole number"),
        ("2026-01-01", "5", "range.since is '2026-01-01', and column n is int8"),
    ],
)
def test_a_value_of_another_type_is_refused(database: Polled, since: str | None, until: str, said: str) -> None:
    database.put([1])
    refused = backfill(database, since, until)
    assert (refused.error_class, said in refused.message) == ("InvalidRequest", True), refused.message


def upstream(folder: Path, version: int) -> tuple[Polled, list[str]]:
    """A table of four commits, and an ingest from it."""
    above = create_table(str(folder / "above"), polled.SCHEMA, record_key="id", version=version)
    for number in range(4):
        above.upsert(of_keys((f"k{number}", number), ("same", number)))
    instants = load_timeline(above.context).commits
    source = {"type": "Hudi", "hudi": {"location": f"file://{folder}/above"}}
    (folder / "work").mkdir()
    feed = Polled(folder / "work", source, lambda _: None, table=ORDERED)
    return feed, sorted(each.moment for each in instants)[-4:]


@pytest.mark.parametrize("version", [6, 9])
def test_commits_of_a_range_of_another_table_are_taken_once(tmp_path: Path, version: int) -> None:
    feed, moments = upstream(tmp_path, version)
    done = backfill(feed, moments[1], moments[3])
    assert done.outcome == "Succeeded", done.message
    assert rows(feed) == {"k1": 1, "k2": 2, "same": 2}
    assert backfill(feed, moments[1], moments[3]).outcome == "NothingToDo"
    assert backfill(feed, None, moments[1], name="older").outcome == "Succeeded"
    assert rows(feed) == {"k0": 0, "k1": 1, "k2": 2, "same": 2}, "an older row takes no newer one"


def test_a_range_of_another_table_is_an_instant_and_takes_no_deletes(tmp_path: Path) -> None:
    feed, moments = upstream(tmp_path, 9)
    assert "range.until: 'soon' is not an instant time" in backfill(feed, None, "soon").message
    feed.source["hudi"]["deletes"] = "Delete"
    assert "an old delete could take a newer row" in backfill(feed, None, moments[1]).message
