"""Processes that write a table with a key state are killed at any moment, one after the other and
two at once: no key is there twice, and every acknowledged write is there. With a folder for the
state each process begins with what the last one left.

Omitted: a driver that reads a topic (`tests/streams/test_continuous.py`).
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hudi_table.model.table.index_properties import STATE_FOLDER
from tests.support.scale import scaled
from tests.support.written import contents, new_table, rows

KEYS = 30
WRITER = """
import json, random, sys
from hudi_table.api import open_table
from hudi_table.errors import HudiError
from tests.support.written import rows

place, name, run, folder, keys = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4], int(sys.argv[5])
options = {"hoodie.write.num.retries.on.conflict.failures": "20"}
options |= {"hoodie.lakeops.key.state.folder": folder} if folder else {}
table, draw = open_table(place), random.Random(f"{name}-{run}")
for number in range(run * 10_000, run * 10_000 + 10_000):
    items = [(f"{name}{key}", draw.choice("xyz"), number) for key in draw.sample(range(keys), 5)]
    print(json.dumps(items), flush=True)
    try:
        table.upsert(rows(*items), options=options)
    except HudiError as error:
        print(json.dumps(f"{type(error).__name__}: {error}"), flush=True)
    else:
        print(json.dumps(number), flush=True)
"""


class Writer:
    """A process that moves keys of its own from partition to partition, and what it has told."""

    def __init__(self, folder: Path, place: str, name: str, state: str = "") -> None:
        self.folder, self.place, self.name, self.state, self.runs = folder, place, name, state, 0
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "TMPDIR": str(self.folder)}
        with (self.folder / f"{self.name}-{self.runs}.told").open("wb") as told:
            command = [sys.executable, "-c", WRITER, self.place, self.name, str(self.runs), self.state, str(KEYS)]
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=told, env=environment)
        self.runs += 1

    def wait_until_it_has_told(self, lines: int) -> None:
        until = time.monotonic() + 120
        while (self.folder / f"{self.name}-{self.runs - 1}.told").read_bytes().count(b"\n") < lines:
            assert time.monotonic() < until, f"the writer does not come to line {lines}"
            time.sleep(0.02)

    def kill(self) -> None:
        assert self.process is not None
        assert self.process.poll() is None, "the writer has ended by itself"
        self.process.kill()
        self.process.wait()

    def end(self) -> None:
        """Kill it if it runs, as after a failure."""
        if self.process is not None and self.process.poll() is None:
            self.kill()

    def told(self) -> list[object]:
        """All lines of all runs; the last of each may be cut short."""
        found = []
        for run in range(self.runs):
            lines = (self.folder / f"{self.name}-{run}.told").read_text().splitlines(keepends=True)
            found += [json.loads(line) for line in lines if line.endswith("\n")]
        return found

    def check(self, stored: dict[str, tuple[str, int]]) -> int:
        """What is stored of its keys is what it wrote, and nothing acknowledged is lost. Returns
        the acknowledged writes."""
        tried: dict[str, dict[int, str]] = {}
        acknowledged: dict[str, int] = {}
        told = self.told()
        done = {line for line in told if isinstance(line, int)}
        for items in (line for line in told if isinstance(line, list)):
            for key, city, number in items:
                tried.setdefault(key, {})[number] = city
                if number in done:
                    acknowledged[key] = number
        mine = {key: place for key, place in stored.items() if key.startswith(self.name)}
        assert all(tried[key].get(number) == city for key, (city, number) in mine.items())
        late = {
            key: (number, mine.get(key)) for key, number in acknowledged.items() if mine.get(key, ("", -1))[1] < number
        }
        assert not late, f"acknowledged and lost: {late}"
        return len(done)


@pytest.mark.thinned("values")
@pytest.mark.parametrize("outlives", [False, True], ids=["nothing is left", "the state is left"])
@pytest.mark.parametrize(("kind", "names"), [("CopyOnWrite", "a"), ("MergeOnRead", "ab")], ids=["one", "two at once"])
def test_killed_writers_leave_each_key_once_where_it_was_written_last(
    kind: str, names: str, outlives: bool, tmp_path: Path, figure: Callable[[int, str], None]
) -> None:
    draw = random.Random(f"{kind}-{names}-{outlives}-{os.environ.get('HUDI_STREAMS_PASS', '')}")
    table = new_table(f"file://{tmp_path}/lake/t", index="KeyState", type=kind)
    (tmp_path / "scratch").mkdir()
    state = str(tmp_path / "state") if outlives else ""
    writers = [Writer(tmp_path / "scratch", table.base_path, name, state) for name in names]
    kills = scaled(20, quick=2)
    try:
        for _ in range(kills):
            for writer in writers:
                writer.start()
            for writer in writers:
                writer.wait_until_it_has_told(draw.randrange(4, 8))
            time.sleep(draw.uniform(0, 1))
            for writer in writers:
                writer.kill()
            found = contents(table)
            stored = {key: (city, number) for key, city, number in found}
            assert len(stored) == len(found), f"keys that are there twice: {found}"
            acknowledged = [writer.check(stored) for writer in writers]
    finally:
        for writer in writers:
            writer.end()
    assert all(acknowledged), [writer.told()[-3:] for writer in writers]
    # All keys, not those of `stored`: what the last one had decided and not published comes first.
    every = [f"{name}{key}" for name in names for key in range(KEYS)]
    table.upsert(rows(*((key, "z", -1) for key in every)), options={STATE_FOLDER: state} if state else {})
    assert contents(table) == sorted((key, "z", -1) for key in every)
    left = [path.name for path in (tmp_path / "scratch").iterdir() if path.suffix != ".told"]
    assert not [name for name in left if "key-state" in name], "a state leaves no file behind"
    figure(kills * len(names), "kills of a writer with a key state")
