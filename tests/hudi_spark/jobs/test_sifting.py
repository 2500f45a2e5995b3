"""Rows of files, statements, other tables and packages that do not hold what they must, or that a
transform cannot take: told of, left out, or kept beside the table with their place and reason."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_spark.jobs import ingest
from hudi_spark.jobs.progress import Progress
from hudi_table.api import open_table
from hudi_table.errors import TableNotFoundError
from hudi_table.model.job.jobspec import JobSpec
from hudi_table.services.transforming.steps import GROUP as TRANSFORMS
from hudi_table.sources.custom import GROUP as SOURCES
from tests.hudi_spark.jobs.test_ingest import Job
from tests.hudi_spark.jobs.test_ingest_notified import Landing
from tests.hudi_spark.jobs.test_ingest_sql import PLAIN
from tests.hudi_spark.jobs.test_ingest_sql import Job as SqlJob
from tests.hudi_spark.jobs.test_ingest_sql import job as sql_job
from tests.support.chained import Chain, rows_of
from tests.support.index_package import written_package

__all__ = ["sql_job"]
PACKAGE = """
import pyarrow as pa


def strict(rows):
    bad = [n for n in rows["n"].to_pylist() if n is not None and n < 0]
    if bad:
        raise ValueError(f"{bad[0]} is negative")
    return rows.append_column("double", pa.array([None if n is None else 2 * n for n in rows["n"].to_pylist()], pa.int64()))


def pairs(rows):
    if len(rows) > 1:
        raise ValueError("more than one")
    return rows


class Tens:
    def __init__(self, options):
        self.upto = int(options["upto"])

    def read(self, position):
        begin = int(position or 0)
        if begin >= self.upto:
            return None
        return pa.table({"id": [f"k{begin + i}" for i in range(10)], "n": [-begin, *range(1, 10)]}), str(begin + 10)
"""


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path)


@pytest.fixture
def package(tmp_path: Path) -> Iterator[None]:
    names = "strict = sifted_package:strict\npairs = sifted_package:pairs\n"
    entries = f"{names}\n[{SOURCES}]\ntens = sifted_package:Tens"
    with written_package(tmp_path / "package", "sifted_package", PACKAGE, entries, TRANSFORMS):
        yield


def rows(*numbers: int | None, begin: int = 0) -> pa.Table:
    return pa.table(
        {
            "id": [f"k{begin + i}" for i in range(len(numbers))],
            "ts": pa.array(range(len(numbers)), pa.int64()),
            "n": pa.array(numbers, pa.int64()),
        }
    )


def expects(sql: str, on_fail: str, **more: Any) -> dict[str, Any]:
    return {"expectations": [{"name": "sound", "sql": sql, "onFail": on_fail}], "maxErrorRatio": 0.05, **more}


def is_table(location: Path) -> bool:
    return (location / ".hoodie" / "hoodie.properties").exists()


def errors(location: Path | str) -> list[dict[str, Any]]:
    try:
        table: pa.Table = open_table(f"{location}_row_errors").scan().to_arrow()
    except TableNotFoundError:
        return []
    return sorted(table.to_pylist(), key=lambda each: each["id"])


WORDS = "it does not meet expectation 'sound': n >= 0"


def test_rows_of_files_are_kept_with_file_number_reason_and_what_they_hold(job: Job) -> None:
    job.land("1.parquet", rows(0, -1, 2))
    job.land("2.parquet", rows(3, 4, None, begin=3))
    code, done = job.run(job.spec("one", **expects("n >= 0", "Quarantine")))
    assert (code, done.outcome) == (0, "Succeeded"), done.message
    assert (done.figures["recordsRefused"], done.figures["recordsInserted"]) == (2, 4)
    assert [row["n"] for row in job.rows()] == [0, 2, 3, 4]
    first, second = errors(job.location)
    assert {name: first[name] for name in ("ingest", "place", "row", "rule", "reason", "attempt")} == {
        "ingest": "feed", "place": "1.parquet", "row": 2, "rule": "sound", "reason": WORDS, "attempt": "one",
    }  # fmt: skip
    assert json.loads(first["value"]) == {"id": "k1", "ts": 1, "n": -1}
    assert (second["place"], second["row"]) == ("2.parquet", 3)
    assert job.run(job.spec("two", **expects("n >= 0", "Quarantine")))[1].outcome == "NothingToDo"


def test_rows_of_text_files_have_their_numbers_too(job: Job) -> None:
    job.landing.mkdir()
    (job.landing / "1.csv").write_text("id,ts,n\na,1,5\nb,2,-5\nc,3,6\nd,4,-6\n")
    done = job.run(job.spec("one", format="csv", **expects("n >= 0", "Quarantine")))[1]
    assert done.outcome == "Succeeded", done.message
    assert [(each["place"], each["row"]) for each in errors(job.location)] == [("1.csv", 2), ("1.csv", 4)]


def test_rows_may_be_left_out_or_end_the_ingest_with_the_first_of_them_named(job: Job) -> None:
    job.land("1.parquet", rows(0, 1, -2, -3))
    failed = job.run(job.spec("one", **expects("n >= 0", "Fail")))[1]
    assert failed.error_class == "InvalidData"
    assert "row 3 of file 1.parquet does not meet expectation 'sound': n >= 0, nor do 1 more" in failed.message
    assert (is_table(job.location), errors(job.location)) == (False, [])
    done = job.run(job.spec("two", **expects("n >= 0", "Drop")))[1]
    assert (done.outcome, done.figures["recordsDropped"]) == ("Succeeded", 2), done.message
    assert ([row["n"] for row in job.rows()], errors(job.location)) == ([0, 1], [])


def test_more_than_may_be_refused_end_the_ingest_and_nothing_is_kept(job: Job) -> None:
    job.land("1.parquet", rows(*range(189), *[-1] * 11))
    failed = job.run(job.spec("one", **expects("n >= 0", "Quarantine")))[1]
    assert failed.error_class == "InvalidData"
    assert "11 of 200 rows of one commit are refused, more than maxErrorRatio 0.05 lets through" in failed.message
    assert "the first now: row 190 of file 1.parquet: it does not meet" in failed.message
    assert (is_table(job.location), errors(job.location)) == (False, [])
    asked = {**expects("n >= 0", "Quarantine"), "maxErrorRatio": 0.06}
    assert job.run(job.spec("two", **asked))[1].figures["recordsRefused"] == 11


def test_an_attempt_that_dies_between_the_two_tables_keeps_each_row_once(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    job.land("1.parquet", rows(0, -1, 2))
    work = expects("n >= 0", "Quarantine")

    def dies(ctx: Any, batches: Any, *more: Any) -> Any:
        list(batches)
        raise MemoryError("here")

    with monkeypatch.context() as patched:
        patched.setattr("hudi_spark.jobs.batch.commit_behind", dies)
        assert job.run(job.spec("one", **work))[1].outcome == "Failed"
    assert len(errors(job.location)) == 1
    assert job.run(job.spec("two", **work))[1].figures["recordsRefused"] == 1
    assert [(each["row"], each["attempt"]) for each in errors(job.location)] == [(2, "two")]
    assert [row["n"] for row in job.rows()] == [0, 2]


def test_a_condition_that_a_row_cannot_be_asked_is_not_met_by_it_alone(job: Job) -> None:
    texts = pa.table({"id": ["a", "b", "c"], "ts": pa.array([1, 2, 3]), "n": ["1", "one", "-1"]})
    job.land("1.parquet", texts)
    done = job.run(job.spec("one", **expects("cast(n as int) >= 0", "Quarantine")))[1]
    assert done.outcome == "Succeeded", done.message
    assert [row["id"] for row in job.rows()] == ["a"]
    first, second = errors(job.location)
    assert (first["row"], second["row"]) == (2, 3)
    assert "which cannot be asked of it" in first["reason"]
    assert "one is no whole number" in first["reason"]
    assert "cannot be asked" not in second["reason"]


@pytest.mark.usefixtures("package")
def test_rows_that_a_function_cannot_take_are_found_and_kept_whichever_file_they_are_of(job: Job) -> None:
    job.land("1.parquet", rows(0, 1, -2, 3))
    job.land("2.parquet", rows(4, -5, 6, begin=4))
    work = {"transform": [{"sql": "select id, ts, n from source"}, {"function": "strict", "onFail": "Quarantine"}]}
    done = job.run(job.spec("one", **work, **expects("n is null or n <> 1", "Drop")))[1]
    assert done.outcome == "Succeeded", done.message
    assert (done.figures["recordsRefused"], done.figures["recordsDropped"]) == (2, 1)
    assert [(row["n"], row["double"]) for row in job.rows()] == [(0, 0), (3, 6), (4, 8), (6, 12)]
    told = [(each["place"], each["row"], each["rule"]) for each in errors(job.location)]
    assert told == [("1.parquet", 3, "transform 2"), ("2.parquet", 2, "transform 2")]
    assert errors(job.location)[0]["reason"].endswith("ValueError: -2 is negative")


@pytest.mark.usefixtures("package")
def test_a_function_that_fails_on_rows_together_keeps_none_apart(job: Job) -> None:
    job.land("1.parquet", rows(0, 1, 2))
    work = {"transform": [{"function": "pairs", "onFail": "Quarantine"}], "maxErrorRatio": 1.0}
    failed = job.run(job.spec("one", **work))[1]
    assert failed.error_class == "InvalidData"
    assert "transform 1 fails on rows together each of which it takes alone" in failed.message
    assert not is_table(job.location)


def test_rows_that_a_statement_cannot_cast_are_kept(job: Job) -> None:
    texts = pa.table({"id": ["a", "b", "c"], "ts": pa.array([1, 2, 3]), "n": ["1", "one", "3"]})
    job.land("1.parquet", texts)
    select = {"sql": "select id, ts, cast(n as int) as n from source"}
    failed = job.run(job.spec("one", transform=[select]))[1]
    assert failed.error_class == "InvalidData"
    done = job.run(job.spec("two", transform=[{**select, "onFail": "Quarantine"}]))[1]
    assert done.outcome == "Succeeded", done.message
    assert [(row["id"], row["n"]) for row in job.rows()] == [("a", 1), ("c", 3)]
    (kept,) = errors(job.location)
    assert (kept["row"], json.loads(kept["value"])["n"]) == (2, "one")
    assert "one is no whole number" in kept["reason"]


def test_what_is_refused_is_kept_though_no_row_comes_out_of_the_transform(job: Job) -> None:
    job.land("1.parquet", rows(0, -1))
    work = {"transform": [{"sql": "select * from source where 1 = 0"}], **expects("n >= 0", "Quarantine")}
    done = job.run(job.spec("one", **work))[1]
    assert (done.outcome, done.figures["recordsRefused"]) == ("Succeeded", 1), done.message
    assert len(errors(job.location)) == 1


@pytest.mark.parametrize(
    ("work", "words"),
    [
        ({"transform": [{"sql": "select id, max(ts) ts from source group by id", "onFail": "Quarantine"}]}, "groups"),
        ({"transform": [{"flatten": {}, "onFail": "Quarantine"}]}, "flatten, which takes every row"),
        ({"transform": [{"sql": "select * from source", "onFail": "Drop"}]}, "onFail 'Drop': give onFail Fail"),
        ({"onUndecodable": "Quarantine"}, "onUndecodable Quarantine goes with a source of type Kafka"),
        ({"expectations": [{"name": "sound", "sql": "count(*) > 0"}]}, "is no condition on one row"),
    ],
)
def test_what_cannot_be_told_by_row_is_refused_before_anything_is_read(
    job: Job, work: dict[str, Any], words: str
) -> None:
    job.land("1.parquet", rows(0, 1))
    refused = job.run(job.spec("one", **work))[1]
    assert (refused.error_class, words in refused.message) == ("InvalidRequest", True), refused.message
    assert not is_table(job.location)


def test_what_spark_does_not_tell_by_row_is_refused_by_name(job: Job) -> None:
    job.land("1.parquet", rows(0, -1))
    spec = job.spec("one", transform=[{"sql": "select * from source", "onFail": "Quarantine"}])
    refused = job.run(JobSpec(spec.attempt, spec.table, spec.work, engine="Spark"))[1]
    assert refused.error_class == "InvalidRequest"
    assert "transform 1 has onFail Quarantine, and Spark tells no row that a statement fails on" in refused.message


@pytest.mark.spark
@pytest.mark.usefixtures("session_as_it_was")
def test_tasks_of_spark_keep_the_same_rows_as_one_process(job: Job, tmp_path: Path) -> None:
    here = Job(tmp_path / "here")
    here.folder.mkdir()
    for each in (job, here):
        # One file of several row groups, of which each may be another task's, and one of text.
        each.landing.mkdir(parents=True)
        pq.write_table(rows(0, -1, 2, 3, -4, 5), each.landing / "1.parquet", row_group_size=2)
        each.land("2.parquet", rows(6, None, -7, begin=6))
    shaped = {**expects("n >= 0", "Quarantine"), "transform": [{"sql": "select id, ts, n * 2 as n from source"}]}
    spec = job.spec("one", **shaped)
    done = job.run(JobSpec(spec.attempt, spec.table, spec.work, engine="Spark"))[1]
    assert done.outcome == "Succeeded", done.message
    assert here.run(here.spec("one", **shaped))[1].outcome == "Succeeded"
    assert done.figures["recordsRefused"] == 4
    assert job.rows() == here.rows()
    told = [[(each["place"], each["row"], each["reason"]) for each in errors(of.location)] for of in (job, here)]
    assert told[0] == told[1]
    assert [place[:2] for place in told[0]] == [("1.parquet", 2), ("1.parquet", 5), ("2.parquet", 2), ("2.parquet", 3)]


@pytest.mark.spark
@pytest.mark.usefixtures("session_as_it_was")
@pytest.mark.parametrize("on_fail", ["Quarantine", "Drop", "Fail"])
def test_tasks_of_spark_judge_what_changed_in_another_table(tmp_path: Path, on_fail: str) -> None:
    chain = Chain(tmp_path)
    chain.begin()
    chain.above.upsert(rows_of(("a", "x", 1), ("b", "x", -1)))
    done = chain.follow("one", engine="Spark", **expects("n >= 0", on_fail))
    if on_fail == "Fail":
        assert done.error_class == "InvalidData"
        assert "a row of commit " in done.message
        assert "of above does not meet expectation 'sound': n >= 0" in done.message
        return
    told = {name: done.figures[name] for name in ("recordsRefused", "recordsDropped") if name in done.figures}
    assert told == ({"recordsRefused": 1} if on_fail == "Quarantine" else {"recordsDropped": 1}), done.message
    assert chain.shown(chain.below) == [("a", "x", 1)]
    assert len(errors(tmp_path / "below")) == (on_fail == "Quarantine")


@pytest.mark.spark
@pytest.mark.usefixtures("session_as_it_was")
def test_tasks_of_spark_commit_nothing_where_more_is_refused_than_may_be(job: Job) -> None:
    job.land("1.parquet", rows(*range(40), *[-1] * 6))
    job.land("2.parquet", rows(*range(40), *[-1] * 5, begin=100))
    spec = job.spec("one", **expects("n >= 0", "Quarantine"))
    failed = job.run(JobSpec(spec.attempt, spec.table, spec.work, engine="Spark"))[1]
    assert "11 of 91 rows of one commit are refused, more than maxErrorRatio 0.05" in failed.message
    assert (is_table(job.location), errors(job.location)) == (False, [])


def test_rows_of_a_statement_that_is_answered_again_are_kept_once(sql_job: SqlJob) -> None:
    sql_job.key, sql_job.query = "id", PLAIN
    sql_job.work = expects("amount >= 6", "Quarantine")
    assert sql_job.run("one").figures["recordsRefused"] == 1
    sql_job.order((3, "ann", 7, 3))
    assert sql_job.run("two").figures["recordsRefused"] == 1
    assert [row["id"] for row in sql_job.rows()] == [1, 3]
    (kept,) = errors(sql_job.folder / "made")
    assert (kept["place"], kept["row"], kept["attempt"]) == ("all rows", None, "two")
    assert json.loads(kept["value"])["amount"] == 5
    sql_job.order((4, "ann", 1, 9))
    assert sql_job.run("three", incremental={"column": "seen", "lag": 0}).outcome == "Succeeded"
    assert {each["place"] for each in errors(sql_job.folder / "made")} == {
        "rows with seen up to 2026-01-01 12:09:00+00"
    }


def test_rows_of_another_table_are_kept_with_its_commit_and_deletes_have_nothing_to_meet(tmp_path: Path) -> None:
    chain = Chain(tmp_path)
    chain.begin()
    chain.above.upsert(rows_of(("a", "x", 1), ("b", "x", -1)))
    work = {**expects("n >= 0", "Quarantine"), "deletes": "Delete"}
    done = chain.follow("one", **work)
    assert (done.outcome, done.figures["recordsRefused"]) == ("Succeeded", 1), done.message
    instant = chain.above.upsert(rows_of(("c", "x", -2), ("d", "x", 2))).instant
    chain.above.delete(rows_of(("a", "x", 1)))
    assert chain.follow("two", **work).figures["recordsRefused"] == 1
    assert chain.shown(chain.below) == [("d", "x", 2)]
    kept = errors(tmp_path / "below")
    assert sorted(json.loads(each["value"])["id"] for each in kept) == ["b", "c"]
    assert instant is not None
    assert all(each["place"].startswith("commit ") and each["place"].endswith(" of above") for each in kept)


@pytest.mark.usefixtures("package")
def test_rows_of_a_package_are_kept_with_its_position_and_counted_over_the_run(tmp_path: Path) -> None:
    table = {
        "name": "made", "location": f"file://{tmp_path}/made", "recordKey": ["id"], "index": {"type": "Simple"}, "options": {},
    }  # fmt: skip
    source = {"type": "Custom", "custom": {"name": "tens", "options": {"upto": "30"}}}
    work = {"type": "Ingest", "name": "feed", "operation": "Upsert", "transform": [], "source": source}
    spec = JobSpec("one", table, {**work, **expects("n >= 0", "Quarantine")}, engine="Local")
    done = ingest.run_ingest(spec, Progress(""))
    assert (done.figures["recordsRefused"], done.figures["commits"]) == (2, 3)
    assert len(open_table(str(tmp_path / "made")).scan().to_arrow()) == 28
    assert sorted(each["place"] for each in errors(tmp_path / "made")) == ["position 20", "position 30"]


@pytest.mark.s3
def test_files_that_a_queue_tells_of_are_judged_by_row_and_none_is_set_aside_for_it(told_landing: Landing) -> None:
    told_landing.land("1.parquet", rows(0, -1, 2).drop_columns(["ts"]))
    told_landing.land("2.parquet", rows(3, begin=3).drop_columns(["ts"]))
    failed = told_landing.run(asked=expects("n >= 0", "Fail"))
    assert failed.error_class == "InvalidData"
    assert "row 2 of file 1.parquet does not meet expectation 'sound'" in failed.message
    done = told_landing.good(asked=expects("n >= 0", "Quarantine"))
    assert (done.figures["filesConsumed"], done.figures["recordsRefused"]) == (2, 1)
    assert "set aside" not in done.message
    assert [(each["place"], each["row"]) for each in errors(f"{told_landing.lake}/orders")] == [("1.parquet", 2)]
    assert len(open_table(f"{told_landing.lake}/orders").scan().to_arrow()) == 3
