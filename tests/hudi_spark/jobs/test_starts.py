"""What a job's process loads: no module of other work than its own, and pandas only where code of
others runs in it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_table import create_table, write_hudi
from hudi_table.model.job.jobspec import JobSpec

ROOT = Path(__file__).resolve().parents[3]
ROWS = pa.table({"id": [f"k{i}" for i in range(50)], "ts": pa.array([1] * 50, pa.int64())})
TABLE = {"name": "flights", "type": "CopyOnWrite", "recordKey": ["id"], "orderingFields": ["ts"]}
PROGRAM = """
import json, os, sys
end = os._exit
def told(code):
    print(json.dumps([code, sorted(sys.modules)]))
    sys.stdout.flush()
    end(code)
os._exit = told
from hudi_spark.jobs.__main__ import run
run(sys.argv[1:])
"""


def loaded(tmp_path: Path, work: dict[str, Any], engine: str = "Local") -> tuple[int, frozenset[str]]:
    """Exit code of a job in a process of its own, and the modules that it had at its end."""
    spec = JobSpec("one", {**TABLE, "location": f"file://{tmp_path}/lake"}, work, engine=engine)
    (tmp_path / "spec.json").write_text(spec.to_json())
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "spec.json"), str(tmp_path / "result.json")],
        capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": str(ROOT / "spark_app")},
    )  # fmt: skip
    code, names = json.loads(done.stdout.splitlines()[-1])
    return code, frozenset(names)


def feed(tmp_path: Path, *transform: dict[str, Any]) -> dict[str, Any]:
    """An ingest of one file of rows."""
    (tmp_path / "in").mkdir()
    pq.write_table(ROWS, tmp_path / "in" / "1.parquet")
    source = {"type": "Files", "path": f"file://{tmp_path}/in", "format": "parquet"}
    return {"type": "Ingest", "name": "feed", "operation": "Upsert", "source": source, "transform": list(transform)}


@pytest.mark.parametrize("kind", ["Cleaning", "Compaction", "Clustering"])
def test_a_service_loads_nothing_of_ingests(tmp_path: Path, kind: str) -> None:
    table = create_table(
        tmp_path / "lake", ROWS.schema, name="flights", record_key="id", ordering_fields="ts", type="MergeOnRead"
    )
    write_hudi(table, ROWS)
    code, names = loaded(tmp_path, {"type": kind, "mode": "ScheduleAndExecute", "options": {}})
    assert code == 0
    assert [name for name in names if name.startswith(("hudi_spark.jobs.ingest", "hudi_table.sources"))] == []
    assert {"pandas", "pyspark", "hudi_spark.jobs.index"} & names == set()


def test_an_ingest_of_our_own_engine_goes_without_pandas(tmp_path: Path) -> None:
    code, names = loaded(tmp_path, feed(tmp_path, {"sql": "select * from source where ts > 0"}))
    assert code == 0
    assert {"pandas", "pyspark", "hudi_spark.jobs.service", "hudi_spark.jobs.ingests.bootstrap"} & names == set()
    assert (tmp_path / "lake" / ".hoodie").is_dir()


def test_a_transform_of_another_package_finds_pandas(tmp_path: Path) -> None:
    """There is none of this name, which is told; Arrow had looked for pandas before."""
    code, names = loaded(tmp_path, feed(tmp_path, {"function": "of_another_package"}))
    assert code != 0
    assert "pandas" in names
