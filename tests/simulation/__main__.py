"""Play seeds: `python -m tests.simulation 1-100`; replay one with its trace: `python -m tests.simulation 17 --trace`; a script: a path."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from pathlib import Path

from tests.simulation.run import play
from tests.simulation.script import Script, script_of


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation")
    parser.add_argument("seeds", help="a seed, a range of seeds such as 1-100, or the path of a script")
    parser.add_argument("--operations", type=int, default=60, help="of a run")
    parser.add_argument("--trace", action="store_true", help="print every request")
    parser.add_argument("--keep-going", action="store_true", help="do not end at the first failure")
    given = parser.parse_args()
    if Path(given.seeds).is_file():
        scripts = iter([Script.from_json(Path(given.seeds).read_text())])
    else:
        first, _, last = given.seeds.partition("-")
        scripts = (script_of(seed, given.operations) for seed in range(int(first), int(last or first) + 1))
    begun, operations, failed = time.monotonic(), 0, 0
    counts, outcomes = Counter[str](), Counter[str]()
    for script in scripts:
        outcome = play(script, (lambda line: print(line, end="")) if given.trace else None)
        operations += outcome.operations
        counts += outcome.counts
        outcomes += outcome.outcomes
        if outcome.anomalies:
            failed += 1
            print(
                f"seed {script.seed} {script.table} {script.base[:3]} {script.order} {script.page}: {len(outcome.anomalies)}",
                *outcome.anomalies[:3],
                sep="\n    ",
                flush=True,
            )
            if not given.keep_going:
                break
    seconds = time.monotonic() - begun
    print(f"{operations} operations in {seconds:.1f} s: {operations / seconds:.0f} a second; {failed} runs failed")
    print(dict(sorted(outcomes.items())))
    print(dict(sorted(counts.items())))
    return 1 if failed else 0


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != "0":
        os.execve(
            sys.executable,
            [sys.executable, "-m", "tests.simulation", *sys.argv[1:]],
            {**os.environ, "PYTHONHASHSEED": "0"},
        )
    sys.exit(main())
