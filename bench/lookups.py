"""Point lookups: the rows of 100 random keys, and of one, by each way that there is to leave files
alone.

| way | the table | what leaves files alone |
|---|---|---|
| bucket | `BUCKETS` buckets in each year | the keys' hashes |
| sorted | written in the order of keys, files of a few thousand rows | ranges in footers, which are read for it |
| statistics | the same, with column statistics in the metadata table | ranges there |
| record index | written in the order of rows, files of that size, with a record index in the metadata table | the file group of each key |

Random keys lie everywhere, so that 100 of them hit nearly every bucket: then a lookup costs what
the table's size makes it cost. Bloom filters serve writes; a scan does not ask them, so they have
no row here.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench.lookup_steps import KEYS, OPENED
from bench.ours import created, options_of
from bench.process import Contender
from bench.race import Times
from bench.rows import Workload, read
from bench.settings import KEY
from hudi_table.arguments import SortModeName

SECONDS_MAX = 0.3
COUNTS = (100, 1)
BUCKETS = 16
FILES = 112
"""Of a sorted table, about as many as the buckets of seven years."""
WAYS = ("bucket", "sorted", "statistics", "record index")
STEP = "lookup"


@dataclass(frozen=True, slots=True)
class LookupTimes:
    """What a lookup of `keys` keys cost, how many of the table's base files it opened, the footer
    alone or more."""

    way: str
    keys: int
    times: Times
    opened: int
    files: int


def measured_lookups(load: Workload, folder: Path, rounds: int, say: Callable[[str], None]) -> list[LookupTimes]:
    """Every way and number of keys in turns, the cold round apart. Raises RuntimeError if a lookup
    gave other rows."""
    folder.mkdir()
    files = {way: _table(load, folder / way, way) for way in WAYS}
    say(", ".join(f"{way}: {count} files" for way, count in files.items()))
    cases = [(way, count) for count in COUNTS for way in WAYS]
    times = {item: Times() for item in cases}
    opened: dict[tuple[str, int], int] = {}
    keys = read(load.base, (KEY,))[KEY].combine_chunks()
    chance = np.random.default_rng(20_160_101)
    with Contender("lookup", bloom=False) as worker:
        for number in range(rounds + 1):
            turn = number % len(cases)
            for way, count in cases[turn:] + cases[:turn]:
                rows = folder / f"keys-{way}-{count}"
                rows.mkdir(exist_ok=True)
                picked = chance.choice(len(keys), count, replace=False)
                (rows / KEYS).write_text(json.dumps([keys[int(place)].as_py() for place in picked]))
                cost = worker.run(STEP, rows, folder / way)
                opened[way, count] = json.loads((rows / OPENED).read_text())
                if number == 0:
                    times[way, count].cold = cost
                else:
                    times[way, count].warm.append(cost)
    measured = [LookupTimes(way, count, times[way, count], opened[way, count], files[way]) for way, count in cases]
    for item in measured:
        seconds = item.times.middle(lambda cost: cost.wall)
        say(f"{item.keys} keys, {item.way}: {seconds:.2f} s, {item.opened} of {item.files} files opened")
    return measured


def _table(load: Workload, base: Path, way: str) -> int:
    """The table of a way. Returns the number of its files."""
    options = options_of(bloom=False)
    if way == "bucket":
        table = created(load.base, base, False, "CopyOnWrite", {"type": "Bucket", "buckets": BUCKETS})
        table.write(read(load.base), operation="bulk_insert", options=options)
    else:
        table = created(load.base, base, False, "CopyOnWrite", "RecordIndex" if way == "record index" else "Simple")
        each = -(-load.rows // FILES)
        small = {
            "hoodie.parquet.max.file.size": str(1 << 30),
            "hoodie.copyonwrite.record.size.estimate": str((1 << 30) // each),
        }
        order: SortModeName = "none" if way == "record index" else "global"
        table.write(read(load.base), operation="bulk_insert", sort_mode=order, options=options | small)
    if way == "statistics":
        table.build_metadata(["column_stats"])
    return len(table.scan().plan_files())
