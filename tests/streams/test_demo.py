"""`make demo-streaming`, with a shop that closes early."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.at_scale(2)
ROOT = Path(__file__).resolve().parents[2]
STARTS = "hudi_operator.cli.local"
"""What `hudictl local` of the demo is, which imports do not tell of the demo."""


OPEN, OPEN_ANYHOW = 20, 60
"""For how many seconds the shop is open here, and in the demo itself."""
DEMO_SECONDS = 180
"""Within which the README promises its end."""


def test_both_tables_become_what_the_database_is_and_the_demo_tells_how_late_they_were(
    tmp_path: Path, figure: Callable[[int, str], None]
) -> None:
    assert importlib.util.find_spec(STARTS) is not None
    done = subprocess.run(
        [sys.executable, "-m", "examples.streaming.demo", str(OPEN)],
        cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "customers: 200 rows, each as in the database" in done.stdout
    assert done.stdout.count(" rows, each as in the database") == 2
    assert done.stdout.count("half of them within") == 2
    took = re.search(r"^Done in (\d+) s\.", done.stdout, re.MULTILINE)
    assert took is not None
    whole = int(took[1]) + OPEN_ANYHOW - OPEN
    figure(whole, "seconds until the end of the demo of streams")
    assert whole <= DEMO_SECONDS
    assert (tmp_path / "demo-streaming" / "lake" / "orders" / ".hoodie").is_dir()
