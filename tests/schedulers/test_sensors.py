"""The sensors of examples/schedulers, run by Airflow and Dagster themselves in an environment of
their own."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Iterator
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
    for line in sys.stdin:
        running = None
        if line.strip() == "busy":
            config = {"ops": {"report": {"config": {"commits": []}}}}
            started = {"status": dg.DagsterRunStatus.STARTED, "run_config": config}
            running = instance.create_run_for_job(example.after_commits, **started)
        asked = example.commits(dg.build_sensor_context(instance=instance, cursor=cursor))
        if running is not None:
            instance.delete_run(running.run_id)
        if isinstance(asked, dg.SkipReason):
            print("skipped", asked.skip_message, flush=True)
        else:
            for run in asked.run_requests:
                done = example.after_commits.execute_in_process(run_config=run.run_config, instance=instance)
                assert done.success
                for commit in run.run_config["ops"]["report"]["config"]["commits"]:
                    print("ran", commit["instant"], flush=True)
            cursor = asked.cursor
        print("ticked", flush=True)
"""
POKE = """
from functools import partial
import os
import sys

from airflow_dag import HudiCommitSensor
from hudi_table.callbacks import waiting

waiting.commits_after = partial(waiting.commits_after, limit=1)


class Told:
    def xcom_pull(self, **asked):
        return sys.argv[1]


sensor = HudiCommitSensor(task_id="arrived", uri=os.environ["HUDI_TABLE"], kept_by="keep")
found = sensor.poke({"ti": Told()})
print("poked", found.is_done, *(each["instant"] for each in (found.xcom_value or {}).get("commits", [])))
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


@pytest.fixture
def tick(tmp_path: Path) -> Iterator[Callable[..., list[str]]]:
    """One tick of Dagster's sensor: the instants that a job had, or why none ran."""
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

        def once(how: str = "") -> list[str]:
            ticking.stdin.write(f"{how}\n")  # type: ignore[union-attr]
            ticking.stdin.flush()  # type: ignore[union-attr]
            said = []
            while (line := ticking.stdout.readline().strip()) != "ticked":  # type: ignore[union-attr]
                assert line, "it ended"
                said.append(line.partition(" ")[2])
            return said

        yield once
        ticking.stdin.close()


def test_dagsters_job_has_each_commit_in_order(tick: Callable[..., list[str]], table: HudiTable) -> None:
    assert tick() == instants(table)
    assert tick() == []
    new = [upsert(table, "b"), upsert(table, "c")]
    assert tick("busy") == ["the run for earlier commits has not ended"]
    assert tick() == new


def test_sensors_wait_for_a_table_that_is_not_there_yet(tick: Callable[..., list[str]], tmp_path: Path) -> None:
    (said,) = tick()
    assert said.startswith("there are no commits to be had: ")
    assert poked(tmp_path, "earliest") == ["False"]
    table = create_table(tmp_path / "table", schema=SCHEMA, record_key=["k"])
    upsert(table, "a")
    assert tick() == instants(table)
    assert poked(tmp_path, "earliest") == ["True", instants(table)[0]]


def test_airflows_sensor_passes_over_compactions_alone(table: HudiTable, tmp_path: Path) -> None:
    since = table.history().to_pylist()[0]["instant"]
    begin = table.timeline()["file"].to_pylist()[-1].partition("_")[2].partition(".")[0] or since
    for _ in range(3):
        table.cluster(force=True)
    assert poked(tmp_path, begin) == ["False"]
    new = upsert(table, "b")
    assert poked(tmp_path, begin) == ["True", new]


def poked(tmp_path: Path, since: str) -> list[str]:
    """What Airflow's sensor says of the commits behind a position, where a page has one of them."""
    done = subprocess.run(
        [BIN / "python", "-c", POKE, since],
        env=environment(tmp_path, AIRFLOW_HOME=str(tmp_path / "airflow")),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("poked "))
    return line.split()[1:]


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
