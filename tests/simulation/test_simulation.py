"""The library's own code through thousands of operations of several processes, with every fault
that the protocol has to bear.

A part of the seeds runs here, each in a process of its own, so that what a run draws, sets
included, follows from its seed. `make test-full` runs more than a million operations, in shards
(HUDI_SIMULATION_SHARD), each with seeds of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hudi_table.table.commit.conflicts import Claimed
from tests.simulation.faults import CRASHES, KINDS, LATER_KINDS, WORLD
from tests.simulation.run import play
from tests.simulation.script import OPERATIONS, Script, script_of
from tests.simulation.shrink import shrunk, signature
from tests.support.scale import scale, scaled

PARTS = 8
RUNS_OF_A_PART = 39
"""Of about 66 operations each: together more than 20,000."""
SEEDS_OF_A_SHARD = 100_000
REPLAYED = 22
REPLAY_SECONDS_MAX = 10.0


def _shard() -> int:
    return int(os.environ.get("HUDI_SIMULATION_SHARD", "0")) * SEEDS_OF_A_SHARD


def _played(first: int, runs: int, *more: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.simulation", f"{first}-{first + runs - 1}", "--json", "--keep-going", *more],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONHASHSEED": "0"},
    )
    assert done.stdout, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("part", range(PARTS), ids="part-{}".format)
def test_no_history_has_an_anomaly_and_every_fault_has_fired(part: int, figure: Callable[[int, str], None]) -> None:
    runs = scaled(RUNS_OF_A_PART)
    found = _played(_shard() + 1 + part * runs, runs)
    assert found["failures"] == []
    assert [kind for kind in (*KINDS, *LATER_KINDS, *WORLD) if not found["counts"].get(kind)] == []
    assert found["operations"] >= runs * 60
    figure(found["operations"], "simulated operations")
    figure(sum(found["counts"][kind] for kind in (*KINDS, *LATER_KINDS)), "simulated faults")
    figure(sum(found["counts"][kind] for kind in CRASHES), "crash points of simulated processes")


def test_a_seed_plays_the_same_each_time(figure: Callable[[int, str], None]) -> None:
    runs = scaled(REPLAYED, quick=6)
    first, again = (_played(_shard() + 1, runs, "--operations", "20")["digest"] for _ in range(2))
    assert first == again
    figure(runs, "seeds that played the same again")


@pytest.mark.parametrize("seed", [5, 985_079], ids=["ours", "another-engine-too"])
def test_a_script_survives_its_file_and_plays_the_same_in_one_process(tmp_path: Path, seed: int) -> None:
    script = script_of(seed, 10)
    path = tmp_path / "script.json"
    path.write_text(script.to_json())
    assert Script.from_json(path.read_text()) == script
    assert play(Script.from_json(path.read_text())).digest == play(script_of(seed, 10)).digest


def test_what_the_library_warns_of_is_no_anomaly() -> None:
    """In this script a record index is dropped and keys are looked up in the files."""
    assert play(script_of(1589, 14)).anomalies == []


@contextmanager
def _without_conflicts(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A library that looks for no conflict."""
    with monkeypatch.context() as patched:
        patched.setattr(Claimed, "excluded_by", lambda *_: False)
        yield


def test_a_failure_is_made_short_and_replays_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with _without_conflicts(monkeypatch):
        operations, plays = (OPERATIONS, 80) if scale() > 1 else (OPERATIONS // 3, 40)
        failing = next(script for seed in range(1, 40) if play(script := script_of(seed, operations)).anomalies)
        wanted = signature(play(failing).anomalies[0])
        short = shrunk(failing, plays_max=plays)
        begun = time.process_time()
        again = play(Script.from_json(short.to_json()))
        seconds = time.process_time() - begun
    assert wanted in [signature(each) for each in again.anomalies]
    assert short.operations <= failing.operations / 4
    assert seconds < REPLAY_SECONDS_MAX
    assert play(short).anomalies == [], "with the conflicts it is well"
