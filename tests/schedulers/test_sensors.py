"""The sensors of examples/schedulers, run by Airflow and Dagster themselves in an environment of
their own."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_table import HudiTable, create_table

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "schedulers"
BIN = ROOT / ".venv-schedulers" / "bin"
SCHEMA = pa.schema([("k", pa.string()), ("v", pa.int64())])
TICK = """
import dagster as dg
import dagster_sensor as example
import sys

with dg.DagsterInstance.local_temp() as instance:
    cursor = None
    for _ in sys.stdin:
        asked = example.commits(dg.build_sensor_context(instance=instance, cursor=cursor))
        for run in asked.run_requests:
            done = example.after_commit.execute_in_process(run_config=run.run_config, instance=instance)
            print("ran", run.run_key, done.success, flush=True)
        cursor = asked.cursor
        print("ticked", flush=True)
"""
FAILING = """
import os
from datetime import UTC, datetime

from airflow.sdk import DAG, task
from airflow_dag import HudiCommitSensor

with DAG("failing", schedule=None, start_date=datetime(2026, 1, 1, tzinfo=UTC)):

    @task
    def report(found):
        for commit in found["commits"]:
            print("seen", commit["instant"])
        if os.path.exists(os.environ["FAILS"]):
            raise ValueError("this run fails")
        return found["position"]

    @task
    def keep(position, ti=None):
        ti.xcom_push(key="position", value=position)

    arrived = HudiCommitSensor(task_id="arrived", uri=os.environ["HUDI_TABLE"], kept_by="keep")
    keep(report(arrived.output))
"""

pytestmark = pytest.mark.at_scale(2)


@pytest.fixture
def table(tmp_path: Path) -> HudiTable:
    table = create_table(tmp_path / "table", schema=SCHEMA, record_key=["k"])
    upsert(table, "a")
    return table


def upsert(table: HudiTable, key: str) -> str:
    return table.upsert(pa.table({"k": [key], "v": [1]}, schema=SCHEMA)).instant


def instants(table: HudiTable) -> list[str]:
    found: list[str] = table.timeline()["instant"].to_pylist()
    return found


def environment(tmp_path: Path, **more: str) -> dict[str, str]:
    path = os.pathsep.join([str(ROOT / "spark_app"), str(EXAMPLES)])
    return {**os.environ, "HUDI_TABLE": str(tmp_path / "table"), "PYTHONPATH": path, **more}


@pytest.fixture
def airflow(tmp_path: Path) -> Callable[..., str]:
    """Runs an Airflow command on a fresh database; returns what it printed."""
    dags = tmp_path / "dags"
    dags.mkdir()
    (dags / "after_commits.py").write_text((EXAMPLES / "airflow_dag.py").read_text())
    (dags / "failing.py").write_text(FAILING)
    env = environment(
        tmp_path,
        AIRFLOW_HOME=str(tmp_path / "airflow"),
        AIRFLOW__CORE__DAGS_FOLDER=str(dags),
        AIRFLOW__CORE__LOAD_EXAMPLES="False",
        FAILS=str(tmp_path / "fails"),
    )

    def run(*arguments: str, code: int = 0) -> str:
        done = subprocess.run(
            [BIN / "airflow", *arguments], env=env, capture_output=True, text=True, timeout=300, check=False
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout

    run("db", "migrate")
    return run


def test_dagster_runs_its_job_once_for_each_commit_in_order(table: HudiTable, tmp_path: Path) -> None:
    with subprocess.Popen(
        [BIN / "python", "-c", TICK],
        env=environment(tmp_path, DAGSTER_HOME=""),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as ticking:
        assert ticking.stdin is not None
        assert ticking.stdout is not None

        def tick() -> list[str]:
            """The instants for which a job ran."""
            ticking.stdin.write("\n")  # type: ignore[union-attr]
            ticking.stdin.flush()  # type: ignore[union-attr]
            ran = []
            while (line := ticking.stdout.readline().split()) != ["ticked"]:  # type: ignore[union-attr]
                assert line, "it ended"
                if line[0] == "ran":
                    assert line[2] == "True"
                    ran.append(line[1])
            return ran

        assert tick() == instants(table)
        assert tick() == []
        new = [upsert(table, "b"), upsert(table, "c")]
        assert tick() == new
        ticking.stdin.close()


def test_airflow_hands_each_commit_on_once(table: HudiTable, airflow: Callable[..., str]) -> None:
    first = airflow("dags", "test", "after_commits", "2026-01-02")
    assert re.findall(r"^(\d{17}): ", first, re.MULTILINE) == instants(table)
    new = [upsert(table, "b"), upsert(table, "c")]
    second = airflow("dags", "test", "after_commits", "2026-01-03")
    assert re.findall(r"^(\d{17}): ", second, re.MULTILINE) == new


def test_commits_of_an_airflow_run_that_failed_come_again(
    table: HudiTable, airflow: Callable[..., str], tmp_path: Path
) -> None:
    (tmp_path / "fails").touch()
    seen = airflow("dags", "test", "failing", "2026-01-02", code=1)
    assert re.findall(r"^seen (\d{17})", seen, re.MULTILINE) == instants(table)
    (tmp_path / "fails").unlink()
    again = airflow("dags", "test", "failing", "2026-01-03")
    assert re.findall(r"^seen (\d{17})", again, re.MULTILINE) == instants(table)
