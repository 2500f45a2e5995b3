"""The batch of the race of indexes: a hundredth of the rows, half of them new versions of stored
rows in every file, half new keys.

Both halves are random and spread over all years, as a stream of changes without order is: the case
in which an index has to look into every file. Event time decides, as in the other races. Made
beside the rows that are raced over, and kept with them.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bench.rows import CHECKED, NEWER, Figures, Workload, figures, read
from bench.settings import KEY, ORDERING

SHARE = 0.01
_NEW_KEY = "new-"


@dataclass(frozen=True, slots=True)
class Batch:
    """A folder with the rows, how many are updates and inserts, and what a table holds after
    them."""

    rows: Path
    updated: int
    inserted: int
    after: Figures


def batch(load: Workload) -> Batch:
    """The batch of a workload, made if it is not there."""
    folder = load.base.parent / "hundredth"
    done = folder / "batch.json"
    if not done.exists():
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "rows").mkdir(parents=True)
        done.write_text(json.dumps(_make(load, folder / "rows")))
    known = json.loads(done.read_text())
    return Batch(folder / "rows", known["updated"], known["inserted"], Figures(**known["after"]))


def _make(load: Workload, folder: Path) -> dict[str, object]:
    base = read(load.base)
    chance = np.random.default_rng(20_150_101)
    half = max(1, round(len(base) * SHARE / 2))
    picked = np.sort(chance.choice(len(base), 2 * half, replace=False))
    updates, inserts = np.split(chance.permutation(picked), 2)
    old = _newer(base.take(pa.array(np.sort(updates))))
    new = _newer(base.take(pa.array(np.sort(inserts))))
    place = new.schema.get_field_index(KEY)
    new = new.set_column(place, KEY, pc.binary_join_element_wise(_NEW_KEY, new.column(KEY), ""))
    rows = pa.concat_tables([old, new]).combine_chunks()
    pq.write_table(rows.take(pa.array(chance.permutation(len(rows)))), folder / "000.parquet", compression="zstd")
    stored = base.select(list(CHECKED))
    kept = stored.filter(pc.invert(pc.is_in(stored.column(KEY), value_set=old.column(KEY).combine_chunks())))
    after = figures(pa.concat_tables([kept, rows.select(list(CHECKED))]))
    return {"updated": len(old), "inserted": len(new), "after": asdict(after)}


def _newer(rows: pa.Table) -> pa.Table:
    place = rows.schema.get_field_index(ORDERING)
    return rows.set_column(place, ORDERING, pc.add(rows.column(ORDERING), NEWER))
