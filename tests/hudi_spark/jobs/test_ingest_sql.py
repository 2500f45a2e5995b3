"""An ingest from a statement over other tables: asked when one of them has another commit, all rows
or those by a column that grows, each commit with the state that it is of."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_spark.jobs.__main__ import main
from hudi_table import HudiTable, create_table, open_table
from hudi_table.cli.program import main as hudictl
from hudi_table.model.job.jobspec import JobResult, JobSpec
from hudi_table.sources.checkpoints import held_query

ORDERS = pa.schema(
    [("id", pa.int64()), ("customer", pa.string()), ("amount", pa.int64()), ("seen", pa.timestamp("us", "UTC"))]
)
CUSTOMERS = pa.schema([("name", pa.string()), ("city", pa.string())])
TOTALS = "SELECT city, sum(amount)::BIGINT AS total FROM orders JOIN customers ON customer = name GROUP BY city"
PLAIN = "SELECT id, amount, seen FROM orders"


def minute(number: int) -> datetime:
    return datetime(2026, 1, 1, 12, number, tzinfo=UTC)


@dataclass
class Job:
    """An ingest of `TOTALS` in a folder of its own, with the two tables that it reads."""

    folder: Path
    key: str = "city"
    query: str = TOTALS
    work: dict[str, Any] = field(default_factory=dict)

    def table(self, name: str) -> HudiTable:
        return open_table(str(self.folder / name))

    def order(self, *found: tuple[int, str, int, int]) -> None:
        rows = [{"id": i, "customer": c, "amount": a, "seen": minute(m)} for i, c, a, m in found]
        self.table("orders").upsert(pa.Table.from_pylist(rows, ORDERS))

    def run(self, attempt: str = "one", operation: str = "Upsert", policy: str | None = None, **more: Any) -> JobResult:
        tables = [{"name": name, "location": f"file://{self.folder}/{name}"} for name in ("orders", "customers")]
        table = {
            "name": "made", "location": f"file://{self.folder}/made", "recordKey": [self.key], "index": {"type": "Simple"}, "options": {},
        }  # fmt: skip
        source = {"type": "Sql", "sql": {"query": self.query, "tables": tables, **more}}
        work = {"type": "Ingest", "name": "feed", "operation": operation, "transform": [], "source": source}
        work |= {"schemaPolicy": policy} if policy is not None else {}
        work |= self.work
        (self.folder / "spec.json").write_text(JobSpec(attempt, table, work, engine="Local").to_json())
        main([str(self.folder / "spec.json"), str(self.folder / "result.json")])
        return JobResult.from_json((self.folder / "result.json").read_text())

    def rows(self) -> list[dict[str, Any]]:
        return sorted(self.table("made").scan().to_arrow().to_pylist(), key=lambda row: row[self.key])


@pytest.fixture
def job(tmp_path: Path) -> Job:
    create_table(tmp_path / "orders", ORDERS, record_key="id")
    made = create_table(tmp_path / "customers", CUSTOMERS, record_key="name")
    made.upsert(pa.table({"name": ["ann", "bob"], "city": ["x", "y"]}, CUSTOMERS))
    found = Job(tmp_path)
    found.order((1, "ann", 10, 1), (2, "bob", 5, 2))
    return found


def test_the_answer_is_taken_again_once_a_table_has_another_commit(job: Job) -> None:
    first = job.run()
    assert (first.outcome, first.figures["recordsInserted"]) == ("Succeeded", 2)
    assert job.rows() == [{"city": "x", "total": 10}, {"city": "y", "total": 5}]
    again = job.run("two")
    assert (again.outcome, again.message) == ("NothingToDo", "none of the tables has a commit that is not in this one")
    job.order((3, "ann", 7, 3))
    assert job.run("three").outcome == "Succeeded"
    job.table("customers").upsert(pa.table({"name": ["bob"], "city": ["x"]}, CUSTOMERS))
    assert job.run("four").outcome == "Succeeded"
    assert job.rows() == [{"city": "x", "total": 22}, {"city": "y", "total": 5}], "a row that the answer lacks stays"


def test_rows_by_a_column_that_grows_are_those_behind_the_greatest_and_a_lag(job: Job) -> None:
    job.key, job.query = "id", PLAIN
    by: dict[str, Any] = {"incremental": {"column": "seen", "lag": 60}}
    assert job.run(**by).figures["recordsInserted"] == 2
    assert job.table("made").history(limit=1).to_pylist()[0]["operation"] == "UPSERT"
    job.order((1, "ann", 99, 1), (3, "bob", 1, 1), (4, "bob", 2, 3))
    second = job.run("two", **by)
    # 12:01 lies within the lag of 12:02, so what came late is taken.
    assert (second.figures["recordsInserted"], [row["amount"] for row in job.rows()]) == (2, [99, 5, 1, 2])
    job.order((5, "ann", 1, 1))
    job.run("three", **by)
    assert [row["id"] for row in job.rows()] == [1, 2, 3, 4], "12:01 lies behind the lag of 12:03"
    assert job.run("four", incremental={"column": "seen", "lag": 600}).outcome == "NothingToDo"
    table = job.table("made")
    held = held_query(table.context, "feed")
    assert held is not None
    assert held.checkpoint.value == "2026-01-01 12:03:00+00"


@pytest.mark.parametrize("column", ["id", "amount"])
def test_whole_numbers_grow_too_and_ties_are_never_lost(job: Job, column: str) -> None:
    job.key, job.query = "id", PLAIN
    by: dict[str, Any] = {"incremental": {"column": column, "lag": 0}}
    job.run(**by)
    job.order((7, "ann", 10, 9), (8, "bob", 10, 9))
    job.run("two", **by)
    assert [row["id"] for row in job.rows()] == [1, 2, 7, 8]


def test_another_statement_begins_anew(job: Job) -> None:
    job.run()
    job.query = TOTALS.replace("sum(amount)", "(sum(amount) * 2)")
    assert job.run("two").outcome == "Succeeded"
    assert [row["total"] for row in job.rows()] == [20, 10]


def test_a_table_that_is_not_there_yet_is_waited_for_and_one_without_rows_gives_none(job: Job, tmp_path: Path) -> None:
    tables = [{"name": "later", "location": f"file://{tmp_path}/later"}]
    job.key, job.query = "id", "SELECT id FROM later"
    waits = job.run(tables=tables)
    assert waits.outcome == "NothingToDo"
    assert "there is no table at file://" in waits.message
    create_table(tmp_path / "later", ORDERS, record_key="id")
    assert job.run("two", tables=tables, incremental={"column": "id"}).outcome == "NothingToDo"


@pytest.mark.parametrize(
    ("query", "more", "said"),
    [
        ("DELETE FROM orders", {}, "the query failed"),
        ("SELECT * FROM strangers", {}, "strangers"),
        ("SELECT * FROM read_csv('/etc/passwd')", {}, "the query failed"),
        ("SELECT getenv('HOME') AS id", {}, "the query failed"),
        (
            PLAIN,
            {"incremental": {"column": "nope"}},
            "sql.incremental.column 'nope' is no column of the answer: id, amount, seen",
        ),
        (
            "SELECT id, customer FROM orders",
            {"incremental": {"column": "customer"}},
            "'customer' is VARCHAR: give a column of",
        ),
        (PLAIN, {"tables": []}, "needs sql.query and sql.tables"),
        (PLAIN, {"tables": [{"name": "a b", "location": "file:///x"}]}, "a name of its own that SQL takes unquoted"),
        (PLAIN, {"operation": "Insert"}, "goes with operation Upsert"),
        ("SELECT id FROM orders) AS source; DELETE FROM orders; SELECT * FROM (SELECT 1 AS id", {}, "the query"),
    ],
)
def test_what_is_refused_is_named_and_makes_no_table(job: Job, query: str, more: dict[str, Any], said: str) -> None:
    job.key, job.query = "id", query
    result = job.run(**more)
    assert result.outcome == "Failed"
    assert said in result.message
    assert not (job.folder / "made").exists()
    assert job.table("orders").scan().count() == 2


def test_the_checkpoint_is_shown(job: Job, capsys: pytest.CaptureFixture[str]) -> None:
    job.run()
    capsys.readouterr()
    hudictl(["checkpoint", "show", f"{job.folder}/made"])
    assert "2 tables" in capsys.readouterr().out
