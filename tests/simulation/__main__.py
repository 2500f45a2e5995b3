"""Play seeds, and make a failure short.

python -m tests.simulation 1-100         the seeds from 1 to 100
python -m tests.simulation 17 --trace    one, with every request
python -m tests.simulation 17 --shrink   one that fails: its script made short, and written to
                                         build/simulation-17.json
python -m tests.simulation FILE          a script
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
from pathlib import Path

import pyarrow as pa

from tests.simulation.batch import Batch
from tests.simulation.run import play
from tests.simulation.script import OPERATIONS, Script, script_of
from tests.simulation.shrink import shrunk


def main() -> int:
    """Returns 1 if a run failed."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.simulation", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("seeds", help="a seed, a range of seeds such as 1-100, or the path of a script")
    parser.add_argument("--operations", type=int, default=OPERATIONS, help="of a run")
    parser.add_argument("--trace", action="store_true", help="print every request")
    parser.add_argument("--shrink", action="store_true", help="make the script of a failure short")
    parser.add_argument("--keep-going", action="store_true", help="do not end at the first failure")
    parser.add_argument("--json", action="store_true", help="print the result as JSON, for the tests")
    given = parser.parse_args()
    if Path(given.seeds).is_file():
        scripts = iter([Script.from_json(Path(given.seeds).read_text())])
    else:
        first, _, last = given.seeds.partition("-")
        scripts = (script_of(seed, given.operations) for seed in range(int(first), int(last or first) + 1))
    # Of tables of a few rows, what Arrow's own threads cost is more than what they do.
    pa.set_cpu_count(1)
    # What was imported stays, and a run leaves few cycles behind: to look for them often is a waste.
    gc.freeze()
    gc.set_threshold(100_000)
    batch = Batch()
    for script in scripts:
        outcome = play(script, (lambda line: print(line, end="")) if given.trace else None)
        batch.take(outcome)
        if outcome.anomalies and not given.json:
            print(batch.failures[-1], flush=True)
        if outcome.anomalies and given.shrink:
            _shrink(script)
        if outcome.anomalies and not given.keep_going:
            break
    print(batch.to_json() if given.json else batch.told())
    return 1 if batch.failures else 0


def _shrink(script: Script) -> None:
    short = shrunk(script, print)
    target = Path("build") / f"simulation-{script.seed}.json"
    target.parent.mkdir(exist_ok=True)
    target.write_text(short.to_json())
    print(f"{target}: {short.operations} operations and {short.faults} faults fail in the same way")


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != "0":
        # The order of sets shall be the same each time, too.
        again = [sys.executable, "-m", "tests.simulation", *sys.argv[1:]]
        os.execve(sys.executable, again, {**os.environ, "PYTHONHASHSEED": "0"})
    sys.exit(main())
