"""What an ingest does with columns that are not its table's, by its policy: what is refused leaves
no commit and no step of the checkpoint, whatever the source."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hudi_table import open_table
from hudi_table.model.job.jobspec import JobResult, JobSpec
from hudi_table.sources.checkpoints import held_files
from tests.hudi_spark.jobs.test_ingest import ROWS, Job
from tests.hudi_spark.jobs.test_ingest_notified import Landing
from tests.support.chained import Chain, rows_of

NULLS = {"hoodie.write.set.null.for.missing.columns": "true"}
MORE = ROWS.append_column("more", pa.array(range(6), pa.int32()))
LESS = ROWS.drop(["city"])
NARROW = ROWS.set_column(1, "ts", pc.cast(ROWS["ts"], pa.int32()))
TEXT = ROWS.set_column(1, "ts", pc.cast(ROWS["ts"], pa.string()))
PACKAGE = """
import pyarrow as pa


class Growing:
    \"\"\"A column more with each position.\"\"\"

    def __init__(self, options):
        self.upto = int(options["upto"])

    def read(self, position):
        begin = int(position or 0)
        if begin >= self.upto:
            return None
        return pa.table({"id": [begin], **{f"c{n}": [n] for n in range(begin)}}), str(begin + 1)
"""


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path)


def begin(job: Job, first: pa.Table = ROWS) -> int:
    """Make the table; how many commits it has then."""
    job.land("1.parquet", first)
    assert job.run(job.spec("first"))[0] == 0
    return job.commits()


def taken(job: Job, rows: pa.Table, *, first: pa.Table = ROWS, **changes: Any) -> JobResult:
    """What comes of `rows` behind those that made the table."""
    begin(job, first)
    job.land("2.parquet", rows)
    return job.run(job.spec("second", **changes))[1]


@pytest.mark.parametrize("rows", [ROWS, MORE, NARROW, TEXT], ids=["the same", "more", "narrower", "text"])
def test_without_a_policy_files_are_taken_as_with_widen(tmp_path: Path, rows: pa.Table) -> None:
    absent, widen = Job(tmp_path / "absent"), Job(tmp_path / "widen")
    for each in (absent, widen):
        each.folder.mkdir()
    outcomes = [taken(absent, rows).outcome, taken(widen, rows, schemaPolicy="Widen").outcome]
    assert outcomes == (["Failed"] * 2 if rows is TEXT else ["Succeeded"] * 2)
    assert absent.rows() == widen.rows()


def test_without_a_policy_a_missing_column_is_refused_unless_an_option_says_null(tmp_path: Path) -> None:
    options = {"options": NULLS}
    outcomes = []
    asked: list[dict[str, Any]] = [{}, {"table": options}, {"schemaPolicy": "Widen"}]
    for number, changes in enumerate(asked):
        (tmp_path / str(number)).mkdir()
        outcomes.append(taken(Job(tmp_path / str(number)), LESS, **changes).outcome)
    assert outcomes == ["Failed", "Succeeded", "Succeeded"]


@pytest.mark.parametrize(
    ("policy", "rows", "said"),
    [
        ("Refuse", MORE, "added: more (int32)"),
        ("Refuse", LESS, "missing: city (string)"),
        ("Refuse", NARROW, "changed: ts int64 -> int32"),
        ("AddColumns", NARROW, "changed: ts int64 -> int32"),
        ("Widen", TEXT, "changed: ts int64 -> string"),
    ],
)
def test_what_a_policy_refuses_leaves_table_and_checkpoint_as_they_were(
    job: Job, policy: str, rows: pa.Table, said: str
) -> None:
    commits = begin(job)
    job.land("2.parquet", rows)
    result = job.run(job.spec("second", schemaPolicy=policy))[1]
    assert (result.outcome, result.error_class) == ("Failed", "InvalidSchema")
    assert f"2.parquet: the columns of the source are not the table's, and schemaPolicy {policy}" in result.message
    assert said in result.message
    assert (job.rows(), job.commits()) == (ROWS.to_pylist(), commits)
    table = open_table(str(job.location))
    assert table.schema() is not None
    assert table.schema().names == ROWS.column_names
    held = held_files(table.context, "feed")
    assert held is not None
    assert held.checkpoint.files == ("1.parquet",)


def test_columns_come_and_go_where_the_policy_adds_them_and_the_refused_file_is_taken_then(job: Job) -> None:
    assert taken(job, MORE, schemaPolicy="Refuse").outcome == "Failed"
    assert job.run(job.spec("third", schemaPolicy="AddColumns"))[1].outcome == "Succeeded"
    assert [row["more"] for row in job.rows()] == [0, 1, 2, 3, 4, 5]
    job.land("3.parquet", LESS)
    options = {"options": {next(iter(NULLS)): "false"}}
    done = job.run(job.spec("fourth", schemaPolicy="AddColumns", table=options))[1]
    assert done.outcome == "Succeeded", "the policy wins over the table's option"
    assert {(row["city"], row["more"]) for row in job.rows()} == {(None, None)}


def test_a_wider_type_comes_in_where_the_policy_widens(job: Job) -> None:
    first = MORE.slice(0, 2)
    wider = MORE.set_column(3, "more", pa.array([1 << 40] * 6, pa.int64()))
    assert taken(job, wider, first=first, schemaPolicy="Refuse").outcome == "Failed"
    assert job.run(job.spec("third", schemaPolicy="AddColumns"))[1].outcome == "Failed"
    assert job.run(job.spec("fourth", schemaPolicy="Widen"))[1].outcome == "Succeeded"
    assert {row["more"] for row in job.rows()} == {1 << 40}


def test_a_file_that_lacks_a_column_does_not_hide_behind_one_that_has_it(job: Job) -> None:
    commits = begin(job)
    job.land("2.parquet", ROWS)
    job.land("3.parquet", LESS)
    result = job.run(job.spec("second", schemaPolicy="Refuse", table={"options": NULLS}))[1]
    assert result.error_class == "InvalidSchema"
    assert "3.parquet" in result.message
    assert job.commits() == commits


def test_what_comes_out_of_a_transform_is_judged(job: Job) -> None:
    same = [{"sql": "select id, ts, city from source"}]
    assert taken(job, MORE, schemaPolicy="Refuse", transform=same).outcome == "Succeeded"
    job.land("3.parquet", ROWS)
    other = [{"sql": "select *, 1 as one from source"}]
    result = job.run(job.spec("third", schemaPolicy="Refuse", transform=other))[1]
    assert "added: one (int32)" in result.message


def test_a_policy_that_there_is_not_is_refused_by_name(job: Job) -> None:
    result = taken(job, ROWS, schemaPolicy="Rename")
    assert result.error_class == "InvalidRequest"
    assert "schemaPolicy is 'Rename'; give one of Refuse, AddColumns, Widen, Evolve" in result.message


def test_a_required_column_that_a_file_lacks_is_null_where_the_policy_evolves(job: Job) -> None:
    required = pa.schema([field.with_nullable(field.name != "city") for field in ROWS.schema])
    first = ROWS.slice(0, 5).cast(required)
    refused = taken(job, LESS, first=first, schemaPolicy="Widen")
    assert refused.error_class == "InvalidSchema"
    assert "give schemaPolicy Evolve, or correct the source. missing: city (string)" in refused.message
    done = job.run(job.spec("third", schemaPolicy="Evolve"))[1]
    assert done.outcome == "Succeeded", done.message
    assert {row["city"] for row in job.rows()} == {None}


@pytest.mark.parametrize("engine", ["Local", pytest.param("Spark", marks=pytest.mark.spark)])
def test_a_table_that_another_follows_stops_it_where_its_columns_change(
    tmp_path: Path, request: pytest.FixtureRequest, engine: str
) -> None:
    if engine == "Spark":
        request.getfixturevalue("session_as_it_was")
    chain = Chain(tmp_path)
    chain.begin()
    chain.above.upsert(rows_of(("a", "x", 1)))
    assert chain.follow("one", engine=engine, schemaPolicy="Refuse").outcome == "Succeeded"
    chain.above.upsert(rows_of(("b", "x", 2)).append_column("more", pa.array([1], pa.int64())))
    refused = chain.follow("two", engine=engine, schemaPolicy="Refuse")
    assert (refused.error_class, "added: more (int64)" in refused.message) == ("InvalidSchema", True), refused.message
    assert len(chain.below.scan().to_arrow()) == 1
    assert chain.follow("three", engine=engine, schemaPolicy="AddColumns").outcome == "Succeeded"
    assert chain.below.scan(["id", "more"]).to_arrow().sort_by("id").to_pylist() == [
        {"id": "a", "more": None},
        {"id": "b", "more": 1},
    ]


@pytest.mark.spark
@pytest.mark.usefixtures("session_as_it_was")
def test_tasks_of_spark_write_nothing_that_the_policy_refuses(job: Job) -> None:
    shaped = [{"sql": "select *, cast(1 as long) one from source"}]

    def on_spark(spec: JobSpec) -> JobSpec:
        return JobSpec(spec.attempt, spec.table, spec.work, engine="Spark")

    job.land("1.parquet")
    assert job.run(on_spark(job.spec("one", schemaPolicy="Refuse")))[1].outcome == "Succeeded"
    commits = job.commits()
    job.land("2.parquet")
    result = job.run(on_spark(job.spec("two", schemaPolicy="Refuse", transform=shaped)))[1]
    assert (result.error_class, "added: one (int64)" in result.message) == ("InvalidSchema", True), result.message
    assert job.commits() == commits
    assert job.run(on_spark(job.spec("three", schemaPolicy="AddColumns", transform=shaped)))[1].outcome == "Succeeded"
    assert {row["one"] for row in job.rows()} == {1}


@pytest.mark.s3
def test_a_file_that_the_policy_refuses_stops_the_ingest_and_is_not_set_aside(told_landing: Landing) -> None:
    told_landing.land("1.parquet", ROWS)
    told_landing.good(policy="Refuse")
    before = told_landing.commits()
    told_landing.land("2.parquet", MORE)
    told_landing.land("3.parquet", ROWS)
    refused = told_landing.run(policy="Refuse")
    assert (refused.error_class, "2.parquet: the columns" in refused.message) == ("InvalidSchema", True)
    assert told_landing.commits() == before
    assert told_landing.good(policy="AddColumns").figures["filesConsumed"] == 2
