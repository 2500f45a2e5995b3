"""`make demo-streaming`, with a shop that closes early."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.at_scale(2)
ROOT = Path(__file__).resolve().parents[2]
STARTS = "hudi_operator.cli.local"
"""What `hudictl local` of the demo is, which imports do not tell of the demo."""


def test_both_tables_become_what_the_database_is_and_the_demo_tells_how_late_they_were(tmp_path: Path) -> None:
    assert importlib.util.find_spec(STARTS) is not None
    done = subprocess.run(
        [sys.executable, "-m", "examples.streaming.demo", "20"],
        cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "customers: 200 rows, each as in the database" in done.stdout
    assert done.stdout.count(" rows, each as in the database") == 2
    assert done.stdout.count("half of them within") == 2
    assert (tmp_path / "demo-streaming" / "lake" / "orders" / ".hoodie").is_dir()
