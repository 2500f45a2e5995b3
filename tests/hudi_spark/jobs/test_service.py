"""The job of a table service on the local engine: dry run, plan, execution, approval, and nothing
to do. No JVM is started."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_spark.jobs.__main__ import main
from hudi_table.api import HudiTable, create_table, open_table
from hudi_table.model.job.jobspec import JobResult, JobSpec

ROWS = pa.table({"id": [f"k{i}" for i in range(8)], "ts": pa.array(range(8), pa.int64())})


@pytest.fixture
def table(tmp_path: Path) -> HudiTable:
    found = create_table(
        str(tmp_path / "lake"),
        ROWS.schema,
        record_key="id",
        ordering_fields="ts",
        type="MergeOnRead",
        index={"type": "Bucket", "buckets": 2},
    )
    found.upsert(ROWS)
    return found


def log(table: HudiTable, ts: int = 100) -> None:
    table.upsert(ROWS.slice(0, 1).set_column(1, "ts", pa.array([ts], pa.int64())))


def spec(folder: Path, engine: str = "Local", **work: Any) -> JobSpec:
    fields = {"type": "Compaction", "mode": "ScheduleAndExecute", "options": {}, "force": True, **work}
    described = {"name": "flights", "location": f"file://{folder}/lake", "type": "MergeOnRead", "recordKey": ["id"]}
    return JobSpec("one", described, fields, engine=engine)


def run(folder: Path, job: JobSpec) -> tuple[int, JobResult]:
    paths = [folder / "spec.json", folder / "result.json"]
    paths[0].write_text(job.to_json())
    code = main([str(path) for path in paths])
    return code, JobResult.from_json(paths[1].read_text())


def test_it_builds_the_metadata_table_once(table: HudiTable, tmp_path: Path) -> None:
    asked: dict[str, Any] = {"type": "Indexing", "options": {"hoodie.lakeops.indexing.partitions": "column_stats"}}
    code, plan = run(tmp_path, spec(tmp_path, **asked, mode="Plan"))
    assert (code, plan.outcome, plan.plan["details"]) == (0, "Succeeded", ["build files", "build column_stats"])
    code, result = run(tmp_path, spec(tmp_path, **asked, plan=plan.plan["digest"]))
    assert (code, result.outcome, result.figures["partitionsBuilt"]) == (0, "Succeeded", 2)
    log(table)
    assert run(tmp_path, spec(tmp_path, **asked))[1].outcome == "NothingToDo"


def test_it_builds_indexes_by_their_names_and_drops_one(tmp_path: Path) -> None:
    rows = pa.table({"id": ["a", "b"], "name": ["x", "y"]})
    create_table(str(tmp_path / "lake"), rows.schema, record_key="id", version=9).insert(rows)
    named = "record_index,secondary_index_by_name=name,expr_index_trimmed=trim(name) trimString=','"
    partitions, dropped = "hoodie.lakeops.indexing.partitions", "hoodie.lakeops.indexing.drop"

    def asked(**more: Any) -> JobSpec:
        return replace(
            spec(tmp_path, type="Indexing", options={partitions: named}, **more),
            table={"name": "flights", "location": f"file://{tmp_path}/lake", "recordKey": ["id"], "tableVersion": 9},
        )

    assert run(tmp_path, asked())[1].outcome == "Succeeded"
    assert run(tmp_path, asked())[1].outcome == "NothingToDo"
    gone: dict[str, Any] = {"options": {partitions: "record_index", dropped: "trimmed"}}
    plan = run(tmp_path, replace(asked(), work={**asked().work, **gone, "mode": "Plan"}))[1].plan
    assert plan["details"] == ["drop expr_index_trimmed"]
    result = run(tmp_path, replace(asked(), work={**asked().work, **gone, "plan": plan["digest"]}))[1]
    assert (result.outcome, result.figures["partitionsDropped"]) == ("Succeeded", 1)
    assert result.message.startswith("dropped expr_index_trimmed in ")
    there = open_table(str(tmp_path / "lake")).context.config.metadata_partitions
    assert set(there) == {"files", "record_index", "secondary_index_by_name"}


def test_it_plans_and_executes_and_tells_the_figures(table: HudiTable, tmp_path: Path) -> None:
    log(table)
    code, result = run(tmp_path, spec(tmp_path))
    assert (code, result.outcome) == (0, "Succeeded")
    assert result.figures["fileGroups"] == 1
    assert result.figures["filesBefore"] == 2
    assert result.figures["bytesRead"] > 0
    assert result.instants == (result.plan["instant"],)
    assert not any(row["log_files"] for row in table.files().to_pylist() if row["latest"])


def test_a_dry_run_changes_nothing_and_its_approval_runs_it(table: HudiTable, tmp_path: Path) -> None:
    log(table)
    before = table.timeline().to_pylist()
    code, result = run(tmp_path, spec(tmp_path, mode="Plan"))
    assert (code, result.outcome, result.instants) == (0, "Succeeded", ())
    assert result.plan["fileGroups"] == 1
    assert table.timeline().to_pylist() == before
    code, done = run(tmp_path, spec(tmp_path, plan=result.plan["digest"]))
    assert (code, done.outcome) == (0, "Succeeded")
    assert done.plan["digest"] == result.plan["digest"]


def test_an_approved_plan_that_has_moved_is_a_conflict(table: HudiTable, tmp_path: Path) -> None:
    log(table)
    _, result = run(tmp_path, spec(tmp_path, mode="Plan"))
    log(table, 200)
    code, refused = run(tmp_path, spec(tmp_path, plan=result.plan["digest"]))
    assert (code != 0, refused.error_class) == (True, "WriteConflict")


def test_an_approved_plan_that_a_lost_attempt_has_published_is_executed(table: HudiTable, tmp_path: Path) -> None:
    log(table)
    _, result = run(tmp_path, spec(tmp_path, mode="Plan"))
    approved = spec(tmp_path, plan=result.plan["digest"])
    published = table.services.compaction(plan=result.plan["digest"]).schedule()
    assert published is not None
    code, done = run(tmp_path, approved)
    assert (code, done.outcome, done.instants) == (0, "Succeeded", (published.instant,))
    assert run(tmp_path, approved)[1].outcome == "NothingToDo", "it was executed, and only its result was lost"


def test_a_plan_is_made_by_one_job_and_executed_by_another(table: HudiTable, tmp_path: Path) -> None:
    log(table)
    _, planned = run(tmp_path, spec(tmp_path, mode="Schedule"))
    _, done = run(tmp_path, spec(tmp_path, mode="Execute"))
    assert done.instants == planned.instants
    _, again = run(tmp_path, spec(tmp_path, mode="Execute"))
    assert (again.outcome, again.message) == ("NothingToDo", "no plan waits for its execution")


def test_options_of_the_service_win_over_those_of_the_table(table: HudiTable, tmp_path: Path) -> None:
    log(table)
    job = spec(tmp_path, options={"hoodie.compaction.logfile.size.threshold": "1000000"})
    job.table["options"] = {"hoodie.compaction.logfile.size.threshold": "0"}
    assert run(tmp_path, job)[1].outcome == "NothingToDo"


@pytest.mark.parametrize(
    ("work", "error", "words"),
    [
        ({"mode": "Sometimes"}, "InvalidRequest", "mode 'Sometimes' is none of Plan"),
        ({"type": "Polishing"}, "InvalidRequest", "'Polishing' is not done by this release"),
        ({"plan": "0011223344556677"}, "WriteConflict", "plan '0011223344556677' cannot be made again"),
        ({"options": {"hoodie.compaction.strategy": "Fast"}}, "InvalidOption", "hoodie.compaction.strategy"),
    ],
)
def test_what_it_cannot_do_is_refused(
    table: HudiTable, tmp_path: Path, work: dict[str, Any], error: str, words: str
) -> None:
    log(table)
    _, result = run(tmp_path, spec(tmp_path, **work))
    assert result.error_class == error
    assert words in result.message


def test_a_table_that_is_not_there_is_named(tmp_path: Path) -> None:
    assert run(tmp_path, spec(tmp_path))[1].error_class == "TableNotFound"


def test_a_resize_that_a_lost_attempt_has_done_is_nothing_to_do(table: HudiTable, tmp_path: Path) -> None:
    wanted: dict[str, Any] = {"type": "Resize", "options": {"hoodie.bucket.index.num.buckets": "4"}}
    assert run(tmp_path, spec(tmp_path, **wanted))[1].outcome == "Succeeded"
    code, result = run(tmp_path, spec(tmp_path, **wanted))
    assert (code, result.outcome) == (0, "NothingToDo")
    code, result = run(tmp_path, spec(tmp_path, mode="Plan", **wanted))
    assert (code, result.outcome) == (0, "NothingToDo")


def test_nothing_to_do_starts_no_jvm_and_claims_nothing(table: HudiTable, tmp_path: Path) -> None:
    """In a process of its own, asked for Spark: neither the gateway nor Spark is imported, no child
    is born."""
    before = sorted(path.name for path in (tmp_path / "lake" / ".hoodie").rglob("*"))
    (tmp_path / "spec.json").write_text(spec(tmp_path, engine="Spark").to_json())
    program = (
        "import json, sys\n"
        "import psutil\n"
        "from hudi_spark.jobs.__main__ import main\n"
        "code = main(sys.argv[1:])\n"
        "born = [child.name() for child in psutil.Process().children(recursive=True)]\n"
        "print(json.dumps([code, born, [m for m in ('py4j', 'pyspark') if m in sys.modules]]))\n"
    )
    arguments = [sys.executable, "-c", program, str(tmp_path / "spec.json"), str(tmp_path / "result.json")]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True, env=_environment())
    assert json.loads(done.stdout.splitlines()[-1]) == [0, [], []]
    result = JobResult.from_json((tmp_path / "result.json").read_text())
    assert (result.outcome, result.message) == ("NothingToDo", "there is nothing to do")
    assert sorted(path.name for path in (tmp_path / "lake" / ".hoodie").rglob("*")) == before
    assert open_table(str(tmp_path / "lake")).scan().count() == 8


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
