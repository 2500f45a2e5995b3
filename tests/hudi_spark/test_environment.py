"""A job started by the Python of a virtual environment that is not activated:
`/path/.venv/bin/python job.py`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hudi_spark.conftest import FAST_JAVA

pytestmark = pytest.mark.spark

ROOT = Path(__file__).parents[2]
JOB = """
import hudi_spark
from pyspark.sql import SparkSession

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
options = {"hoodie.datasource.write.recordkey.field": "id", "hoodie.table.name": "rides"}
spark.range(3).selectExpr("cast(id as string) id").write.format("hudi").options(**options).mode("append").save("lake/rides")
print("rows:", spark.read.format("hudi").load("lake/rides").count())
"""


def test_format_hudi_is_found_without_any_setting(tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(JOB)
    inherited = {name: os.environ[name] for name in ("HOME", "JAVA_HOME") if name in os.environ}
    # Of the PATH comes another Python, if any, and this tree stands for an installed package.
    own = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT / "spark_app"), "SPARK_LOCAL_IP": "127.0.0.1"}
    own["JDK_JAVA_OPTIONS"] = FAST_JAVA
    ran = subprocess.run(
        [sys.executable, "job.py"],
        cwd=tmp_path,
        env=inherited | own,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert "rows: 3" in ran.stdout, ran.stderr[-2000:]
