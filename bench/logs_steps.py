"""What every contender of the race over logs is asked, and what its answers are checked against.

Steps: `load` (a merge-on-read table from the base rows), `upsert` (a tenth, to logs), `snapshot`
and `incremental` (all columns of all rows; of what the upsert changed), `small` (10,000 rows to
logs) and `compact` (scheduled and executed). Reading steps check count and sums, which lie beside
the rows in `_expected.json`. This module runs in two Pythons.
"""

from __future__ import annotations

import json
from pathlib import Path

EXPECTED = "_expected.json"


def check(rows: Path, step: str, count: int, ordering: int) -> None:
    """Raises AssertionError if a read did not give the rows that it must."""
    wanted = json.loads((rows / EXPECTED).read_text())[step]
    assert [count, ordering] == wanted, f"{step} gave {count} rows with sum {ordering}, must give {wanted}"


def before_last(base: Path) -> str:
    """The instant before the newest completed write (a bulk_insert of Hudi's is a commit): an
    incremental read from it gives what the newest changed. On version 9 its completion, by which
    such reads go there."""
    hoodie = base / ".hoodie"
    found = [
        path
        for end in (".commit", ".deltacommit")
        for place in ("", "timeline/")
        for path in hoodie.glob(f"{place}2*{end}")
    ]
    return sorted(path.stem.rpartition("_")[2] for path in found)[-2]
