"""The ingest job on the local engine: files in, one commit, and what is refused. No process and no
JVM is started.

Each refusal checks that the table shows the rows it showed before, and that a table made for it is
gone again.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_spark.jobs import ingest
from hudi_spark.jobs.__main__ import main
from hudi_spark.jobs.batch import next_batch
from hudi_table.api import open_table
from hudi_table.errors import WriteConflictError
from hudi_table.model.job.jobspec import JobResult, JobSpec
from hudi_table.model.table.config import IndexType

ROWS = pa.table(
    {
        "id": [f"k{i}" for i in range(6)],
        "ts": pa.array(range(6), pa.int64()),
        "city": ["a", "b", "a", "b", "a", None],
    }
)


@dataclass
class Job:
    """An ingest in a folder of its own."""

    folder: Path

    @property
    def landing(self) -> Path:
        return self.folder / "in"

    @property
    def location(self) -> Path:
        return self.folder / "lake" / "flights"

    def land(self, name: str, rows: pa.Table = ROWS) -> None:
        self.landing.mkdir(parents=True, exist_ok=True)
        pq.write_table(rows, self.landing / name)

    def spec(self, attempt: str = "one", **changes: Any) -> JobSpec:
        table = {
            "name": "flights",
            "location": f"file://{self.location}",
            "type": "CopyOnWrite",
            "recordKey": ["id"],
            "orderingFields": ["ts"],
            "index": {"type": "Bucket", "buckets": 2},
            "options": {"hoodie.parquet.compression.codec": "zstd"},
            **changes.pop("table", {}),
        }
        source = {"type": "Files", "path": f"file://{self.landing}", "format": changes.pop("format", "parquet")}
        work = {"type": "Ingest", "name": "feed", "operation": "Upsert", "source": source, "transform": [], **changes}
        return JobSpec(attempt, table, work, engine="Local")

    def run(self, spec: JobSpec | None = None) -> tuple[int, JobResult]:
        """Exit code and result, as a launcher finds them."""
        self.folder.mkdir(exist_ok=True)
        paths = [self.folder / "spec.json", self.folder / "result.json"]
        paths[0].write_text((spec or self.spec()).to_json())
        code = main([str(path) for path in paths])
        return code, JobResult.from_json(paths[1].read_text())

    def rows(self) -> list[dict[str, Any]]:
        found: pa.Table = open_table(str(self.location)).scan().to_arrow()
        return sorted(found.to_pylist(), key=lambda row: (row["id"], row["ts"]))

    def commits(self) -> int:
        return len(list(self.location.glob(".hoodie/timeline/*.commit")))


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path)


def test_all_waiting_files_become_one_commit(job: Job) -> None:
    job.land("1.parquet", ROWS.slice(0, 3))
    (job.landing / "more").mkdir()
    job.land("more/2.parquet", ROWS.slice(3))
    code, result = job.run()
    assert (code, result.outcome) == (0, "Succeeded")
    assert job.rows() == ROWS.to_pylist()
    assert result.figures["filesConsumed"] == 2
    assert result.figures["recordsInserted"] == 6
    assert list((job.location / ".hoodie/timeline").glob(f"{result.instants[0]}_*.commit"))


def test_a_second_attempt_finds_nothing_to_do(job: Job) -> None:
    job.land("1.parquet")
    job.run()
    before = job.commits()
    code, result = job.run(job.spec("two"))
    assert (code, result.outcome, result.instants) == (0, "NothingToDo", ())
    assert job.commits() == before


def test_inserts_are_not_repeated_either(job: Job) -> None:
    job.land("1.parquet")
    for attempt in ("one", "two", "one"):
        job.run(job.spec(attempt, operation="Insert", table={"index": {"type": "Simple"}}))
    assert job.rows() == ROWS.to_pylist()


def test_another_index_that_finds_the_same_keys_is_taken_over_by_the_next_run(job: Job) -> None:
    job.land("1.parquet")
    job.run(job.spec(table={"index": {"type": "GlobalSimple"}}))
    job.land("2.parquet", pa.table({"id": ["k0"], "ts": pa.array([10], pa.int64()), "city": ["z"]}))
    code, result = job.run(job.spec("two", table={"index": {"type": "GlobalBloom"}}))
    assert (code, result.figures["recordsUpdated"]) == (0, 1)
    stored = open_table(str(job.location)).context.config.index
    assert stored is not None
    assert stored.type is IndexType.GLOBAL_BLOOM


def test_a_table_gets_the_version_that_its_resource_names(job: Job) -> None:
    job.land("1.parquet")
    code, result = job.run(job.spec(table={"tableVersion": 6}))
    assert (code, result.outcome) == (0, "Succeeded")
    assert job.rows() == ROWS.to_pylist()
    assert open_table(str(job.location)).context.config.version == 6
    assert (job.location / ".hoodie" / f"{result.instants[0]}.commit").exists()
    assert job.run(job.spec("two", table={"tableVersion": 6}))[1].outcome == "NothingToDo"
    assert job.run(job.spec("three"))[1].outcome == "NothingToDo"


def test_rows_that_are_refused_leave_no_table_of_any_version(job: Job) -> None:
    job.land("1.parquet")
    for number, version in enumerate((6, 8, 9)):
        code, _ = job.run(job.spec(f"a{number}", table={"tableVersion": version, "recordKey": ["city"]}))
        assert code == 64
        assert not [path for path in job.location.rglob("*") if path.is_file()]


def test_an_index_that_would_move_rows_is_refused_by_name(job: Job) -> None:
    job.land("1.parquet")
    job.run(job.spec(table={"index": {"type": "Simple"}}))
    before = job.commits()
    job.land("2.parquet")
    code, result = job.run(job.spec("two", table={"index": {"type": "GlobalSimple"}}))
    assert (code, result.error_class) == (64, "InvalidRequest")
    assert "has index Simple, which cannot become GlobalSimple" in result.message
    assert job.commits() == before


def test_a_new_file_is_taken_alone(job: Job) -> None:
    job.land("1.parquet")
    job.run()
    job.land("2.parquet", pa.table({"id": ["k0"], "ts": pa.array([10], pa.int64()), "city": ["z"]}))
    _, result = job.run(job.spec("two"))
    assert result.figures["filesConsumed"] == 1
    assert result.figures["recordsUpdated"] == 1
    assert job.rows()[0] == {"id": "k0", "ts": 10, "city": "z"}


def test_a_file_that_was_replaced_in_place_is_taken_again(job: Job) -> None:
    job.land("1.parquet")
    job.run()
    job.land("1.parquet", ROWS.set_column(1, "ts", pa.array([9] * 6, pa.int64())))
    _, result = job.run(job.spec("two"))
    assert result.figures["recordsUpdated"] == 6


def test_hidden_and_empty_files_are_left_alone(job: Job) -> None:
    job.land("1.parquet")
    (job.landing / "_SUCCESS").write_text("x")
    (job.landing / ".part").write_text("x")
    (job.landing / "empty.parquet").touch()
    _, result = job.run()
    assert result.figures["filesConsumed"] == 1


def test_the_commit_says_which_files_it_took_and_who_wrote_it(job: Job) -> None:
    job.land("1.parquet")
    _, result = job.run(job.spec(table={"tableVersion": 6}))
    (path,) = job.location.glob(f".hoodie/{result.instants[0]}.commit")
    recorded = json.loads(json.loads(path.read_text())["extraMetadata"]["lakeops.ingest.feed"])
    assert (recorded["files"], recorded["attempt"], recorded["batch"]) == (["1.parquet"], "one", result.checkpoint)


def test_two_ingests_of_one_source_know_nothing_of_each_other(job: Job) -> None:
    job.land("1.parquet")
    job.run()
    _, result = job.run(job.spec("two", name="other"))
    assert result.figures["recordsUpdated"] == 6


def test_csv_files_are_read_with_their_header_and_delimiter(job: Job) -> None:
    job.landing.mkdir()
    (job.landing / "1.csv").write_text("id;ts;city\nk0;1;a\nk1;2;\n")
    spec = job.spec(format="csv")
    spec.work["source"]["csv"] = {"header": True, "delimiter": ";"}
    code, result = job.run(spec)
    assert code == 0, result.message
    assert job.rows() == [{"id": "k0", "ts": 1, "city": "a"}, {"id": "k1", "ts": 2, "city": None}]


def test_a_later_text_file_takes_the_types_of_the_table(job: Job) -> None:
    job.landing.mkdir()
    (job.landing / "1.csv").write_text("id,ts,city\nk0,1,a\n")
    job.run(job.spec(format="csv"))
    (job.landing / "2.csv").write_text("id,ts,city\n17,2,3\n")
    code, result = job.run(job.spec("two", format="csv"))
    assert code == 0, result.message
    assert job.rows()[0] == {"id": "17", "ts": 2, "city": "3"}


def test_json_lines_are_read(job: Job) -> None:
    job.landing.mkdir()
    (job.landing / "1.json").write_text('{"id": "k0", "ts": 1, "city": "a"}\n{"id": "k1", "ts": 2}\n')
    code, result = job.run(job.spec(format="json"))
    assert code == 0, result.message
    assert job.rows() == [{"id": "k0", "ts": 1, "city": "a"}, {"id": "k1", "ts": 2, "city": None}]


def test_a_field_that_a_file_of_json_has_late_is_found(job: Job) -> None:
    job.landing.mkdir()
    first = "".join(f'{{"id":"k{number:06d}","ts":1,"pad":"{"x" * 80}"}}\n' for number in range(40_000))
    (job.landing / "1.json").write_text(first + '{"id":"late","ts":1,"gate":"A1"}\n')
    code, result = job.run(job.spec(format="json"))
    assert code == 0, result.message
    assert [row["gate"] for row in job.rows()[-2:]] == [None, "A1"]


def test_files_of_different_columns_are_united(job: Job) -> None:
    job.land("1.parquet", ROWS.slice(0, 2))
    job.land("2.parquet", ROWS.slice(2, 1).drop_columns(["city"]).append_column("gate", pa.array(["A1"])))
    code, result = job.run()
    assert code == 0, result.message
    assert job.rows()[2] == {"id": "k2", "ts": 2, "city": None, "gate": "A1"}


REFUSALS: list[tuple[str, dict[str, Any], int, str, str]] = [
    ("an unknown option", {"table": {"options": {"hoodie.parquet.max.file.sise": "1"}}}, 64, "InvalidOption", "hoodie.parquet.max.file.sise"),
    ("a record key that is no column", {"table": {"recordKey": ["flight_id"]}}, 64, "InvalidSchema", "flight_id"),
    ("a partition field that is no column", {"table": {"partitionBy": [{"field": "day"}]}}, 64, "InvalidSchema", "day"),
    ("null keys", {"table": {"recordKey": ["city"]}}, 64, "InvalidData", "city"),
    ("another source", {"source": {"type": "Pulsar"}}, 64, "InvalidRequest", "it reads Files, Kafka, Debezium, Kinesis, Jdbc, Hudi, Sql, Custom"),
    ("no brokers", {"source": {"type": "Kafka"}}, 64, "InvalidRequest", "needs kafka.brokers"),
    ("another operation", {"operation": "Delete"}, 64, "InvalidRequest", "Delete"),
    ("a statement that is no SELECT", {"transform": [{"sql": "drop table source"}]}, 64, "InvalidRequest", "DROP"),
    ("nine transforms", {"transform": [{"sql": "select 1 from source"}] * 9}, 64, "InvalidRequest", "9 transforms"),
    ("what only Spark does", {"transform": [{"sql": "select hash(id) id from source"}]}, 64, "InvalidRequest", "HASH"),
    ("a column that is not there", {"transform": [{"sql": "select colour id from source"}]}, 64, "InvalidRequest", "colour"),
    ("a function that nobody has", {"transform": [{"function": "mine"}]}, 64, "InvalidRequest", "'mine' installed"),
    ("other work", {"type": "Juggling"}, 64, "InvalidRequest", "Juggling"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "exit_code", "name", "words"), [r[1:] for r in REFUSALS], ids=[r[0] for r in REFUSALS]
)
def test_what_cannot_be_done_is_refused_and_leaves_nothing(
    job: Job, changes: dict[str, Any], exit_code: int, name: str, words: str
) -> None:
    job.land("1.parquet")
    code, result = job.run(job.spec(**changes))
    assert (code, result.outcome, result.error_class) == (exit_code, "Failed", name), result.message
    assert words in result.message
    assert not [path for path in job.location.rglob("*") if path.is_file()]


def test_a_file_that_is_no_parquet_is_named(job: Job) -> None:
    job.land("1.parquet")
    (job.landing / "2.parquet").write_bytes(b"PAR1 this is not Parquet PAR1")
    code, result = job.run()
    assert (code, result.error_class) == (64, "InvalidData")
    assert "2.parquet" in result.message
    assert not job.location.exists() or not list(job.location.rglob("*.parquet"))


def test_a_file_that_is_damaged_inside_is_named(job: Job) -> None:
    job.land("1.parquet")
    path = job.landing / "1.parquet"
    data = bytearray(path.read_bytes())
    data[4:60] = b"\xff" * 56
    path.write_bytes(data)
    code, result = job.run()
    assert (code, result.error_class) == (64, "InvalidData"), result.message
    assert "1.parquet" in result.message


def test_files_that_contradict_each_other_are_refused_by_name(job: Job) -> None:
    job.land("1.parquet")
    job.land("2.parquet", ROWS.set_column(1, "ts", pa.array(["x"] * 6)))
    code, result = job.run()
    assert (code, result.error_class) == (64, "InvalidSchema")
    assert "2.parquet" in result.message
    assert not job.location.exists() or not list(job.location.rglob("*.parquet"))


def test_a_file_that_contradicts_the_table_is_named_among_those_that_fit(job: Job) -> None:
    job.land("1.parquet")
    job.run()
    job.land("2.parquet", ROWS.set_column(1, "ts", pa.array(["x"] * 6)))
    job.land("3.parquet")
    code, result = job.run(job.spec("two"))
    assert (code, result.error_class) == (64, "InvalidSchema")
    for words in ("source file 2.parquet", "column 'ts' is string in the data and int64 in the table"):
        assert words in result.message
    assert job.rows() == ROWS.to_pylist()


def test_refused_rows_leave_a_table_as_it_was(job: Job) -> None:
    job.land("1.parquet")
    job.run()
    job.land("2.parquet", pa.table({"id": ["k0", None], "ts": pa.array([9, 9], pa.int64()), "city": ["z", "z"]}))
    code, result = job.run(job.spec("two"))
    assert (code, result.error_class) == (64, "InvalidData"), result.message
    assert job.rows() == ROWS.to_pylist()
    assert len(list(job.location.rglob("*.parquet"))) == 2


def test_a_location_that_holds_something_else_is_left_alone(job: Job) -> None:
    job.land("1.parquet")
    job.location.mkdir(parents=True)
    (job.location / "notes.txt").write_text("mine")
    code, result = job.run()
    assert (code, result.error_class) == (64, "InvalidRequest")
    assert "notes.txt" in result.message
    assert [path.name for path in job.location.rglob("*")] == ["notes.txt"]


def test_damaged_properties_stop_the_job(job: Job) -> None:
    job.land("1.parquet")
    job.run()
    properties = job.location / ".hoodie" / "hoodie.properties"
    properties.write_text(properties.read_text().replace("hoodie.table.name=flights", "hoodie.table.name=other"))
    job.land("2.parquet")
    code, result = job.run(job.spec("two"))
    assert (code, result.error_class) == (65, "CorruptTable")
    assert "hoodie.properties" in result.message


def test_a_job_without_a_readable_spec_says_so(tmp_path: Path) -> None:
    (tmp_path / "spec.json").write_text('{"kind": "JobSpec"}')
    assert main([str(tmp_path / "spec.json"), str(tmp_path / "result.json")]) == 64
    result = JobResult.from_json((tmp_path / "result.json").read_text())
    assert (result.outcome, result.error_class) == ("Failed", "InvalidRequest")


def test_files_without_rows_are_taken_too(job: Job) -> None:
    job.land("1.parquet", ROWS.slice(0, 0))
    code, result = job.run()
    assert (code, result.outcome) == (0, "Succeeded"), result.message
    assert job.run(job.spec("two"))[1].outcome == "NothingToDo"


def test_an_option_against_empty_commits_does_not_lose_the_checkpoint(job: Job) -> None:
    job.land("1.parquet")
    job.run()
    job.land("2.parquet", ROWS.slice(0, 0))
    table = {"options": {"hoodie.allow.empty.commit": "false"}}
    code, result = job.run(job.spec("two", table=table))
    assert code == 0, result.message
    assert job.run(job.spec("three", table=table))[1].outcome == "NothingToDo"


@pytest.mark.parametrize("operation", ["Insert", "Upsert"])
@pytest.mark.parametrize("before", [False, True], ids=["first commit", "later"])
def test_an_attempt_that_looked_before_another_committed_takes_no_file_twice(
    job: Job, monkeypatch: pytest.MonkeyPatch, operation: str, *, before: bool
) -> None:
    """The two see other files, so their batches have other names: only the checkpoint tells."""
    changes: dict[str, Any] = {"operation": operation, "table": {"index": {"type": "Simple"}}}
    if before:
        job.land("0.parquet", ROWS.slice(0, 1))
        job.run(job.spec("zero", **changes))
    job.land("1.parquet", ROWS.slice(1, 2))

    def slept(spec: JobSpec, table: Any, *_: Any) -> Any:
        found = next_batch(spec, table)
        monkeypatch.setattr(ingest, "next_batch", next_batch)
        job.land("2.parquet", ROWS.slice(3))
        job.run(job.spec("other", **changes))
        return found

    monkeypatch.setattr(ingest, "next_batch", slept)
    code, result = job.run(job.spec("late", **changes))
    assert (code, result.error_class) == (WriteConflictError.exit_code, "WriteConflict"), result.message
    assert [row["id"] for row in job.rows()] == ([] if not before else ["k0"]) + ["k1", "k2", "k3", "k4", "k5"]
    assert job.run(job.spec("again", **changes))[1].outcome == "NothingToDo"
