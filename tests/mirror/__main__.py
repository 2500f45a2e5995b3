"""The same faults on our writer and on Apache Hudi's, and docs/results/faults.md.

Rounds are kept in `.cache/mirror`, so that several runs add up; `--anew` forgets them. What has
been seen least comes next, once with every engine.

    .venv/bin/python -m tests.mirror [--minutes 5] [--engines ours,1.1.1] [--only WORDS] [--anew]
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.mirror import report
from tests.mirror.engines import TABLE_KINDS, engine
from tests.mirror.proxy import before
from tests.mirror.reader import Reader
from tests.mirror.rounds import Bench, Round
from tests.mirror.schedules import SCHEDULES, How, Schedule
from tests.support.scale import scaled
from tests.support.small_volume import volume
from tests.support.versitygw import running_versitygw
from tests.support.zookeeper import running_zookeeper

ROOT = Path(__file__).resolve().parents[2]
KEPT = ROOT / ".cache" / "mirror" / "rounds.jsonl"
VOLUME_MEGABYTES = 512


def _least(names: list[str], schedule: Schedule, kind: str) -> int:
    """How many rounds of it are kept of the engine that has fewest."""
    kept = [found for found in report.kept(KEPT) if found["fired"]]
    done = Counter(found["engine"] for found in kept if (found["schedule"], found["kind"]) == (schedule.name, kind))
    return min(done[name] for name in names)


def run(names: list[str], minutes: float, words: list[str]) -> None:
    """Rounds until the time is over, each kept when it is done."""
    end = time.monotonic() + minutes * 60
    KEPT.parent.mkdir(parents=True, exist_ok=True)
    commit = subprocess.run(
        ["git", "rev-parse", "--short=12", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()
    seed = time.time_ns()
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mirror-", ignore_cleanup_errors=True)))
        has_volume = stack.enter_context(volume(folder / "volume", VOLUME_MEGABYTES))
        near = stack.enter_context(running_versitygw(folder / "volume" / "store"))
        store = stack.enter_context(before(near))
        zookeeper = stack.enter_context(running_zookeeper(folder / "zookeeper")).address
        reader = Reader(near)
        stack.callback(reader.close)
        bench = Bench(store, reader, folder / "volume", zookeeper, random.Random(seed))
        engines = [engine(name, store.far, folder / "volume" / "store", folder) for name in names]
        for each in engines:
            stack.callback(each.close)
        wanted = [each for each in SCHEDULES if not words or any(word in each.name for word in words)]
        wanted = [each for each in wanted if has_volume or each.how is not How.FULL]
        pairs = [*itertools.product(wanted, TABLE_KINDS)]
        for number in itertools.count(1):
            # What has been seen least comes next.
            schedule, kind = min(pairs, key=lambda pair: (_least(names, *pair), bench.chance.random()))
            for each in engines:
                if time.monotonic() >= end:
                    return
                found = Round(bench, each, schedule, kind, number).run()
                with KEPT.open("a") as file:
                    file.write(json.dumps(found | {"commit": commit, "seed": seed}) + "\n")
                print(json.dumps(found), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=5.0 * scaled(1), help="how long; 5, times HUDI_TEST_SCALE")
    parser.add_argument("--engines", default="ours,1.1.1", help="ours, and releases of Apache Hudi")
    parser.add_argument(
        "--only", nargs="*", default=[], metavar="WORDS", help="schedules with these words in their names"
    )
    parser.add_argument("--anew", action="store_true", help="forget the rounds of earlier runs")
    arguments = parser.parse_args()
    # Who is told to end ends its processes and its volume too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if arguments.anew:
        KEPT.unlink(missing_ok=True)
    run(arguments.engines.split(","), arguments.minutes, arguments.only)
    report.write(KEPT)


if __name__ == "__main__":
    main()
