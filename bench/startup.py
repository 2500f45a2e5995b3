"""How long it takes to begin: the import of the library, and the help of the command line."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from statistics import median

RUNS = 7


def startup_seconds() -> dict[str, float]:
    """Median wall seconds over a bare interpreter's, or of the whole command, by what was started."""
    hudictl = str(Path(sys.executable).with_name("hudictl"))
    return {
        "import hudi_table": _import_seconds(),
        "hudictl --help": median(_seconds([hudictl, "--help"]) for _ in range(RUNS)),
    }


def _import_seconds() -> float:
    code = "import time; start = time.perf_counter(); import hudi_table; print(time.perf_counter() - start)"
    command = [sys.executable, "-c", code]
    return median(float(subprocess.run(command, check=True, capture_output=True).stdout) for _ in range(RUNS))


def _seconds(command: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - start
