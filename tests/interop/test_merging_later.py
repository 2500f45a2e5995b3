"""Tables of version 9 that merge by more than one ordering field or one whole row: the same batches,
written by Apache Hudi 1.1.1 and by us, leave the same rows."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_table.api import open_table, write_hudi
from tests.interop.conftest import Hudis
from tests.support.rows import assert_same_rows
from tests.support.scale import scaled

pytestmark = pytest.mark.interop

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("city", pa.string()),
        ("name", pa.string()),
        ("n", pa.int32()),
        ("ts", pa.int64()),
        ("Op", pa.string()),
        ("_hoodie_is_deleted", pa.bool_()),
    ]
)
PAYLOAD = "hoodie.datasource.write.payload.class"
MODEL = "org.apache.hudi.common.model."
MERGES = {
    "two fields": {"hoodie.table.ordering.fields": "ts,n"},
    "nulls stay, by event time": {"hoodie.table.ordering.fields": "ts", PAYLOAD: f"{MODEL}PartialUpdateAvroPayload"},
    "nulls stay, by commit time": {
        "hoodie.table.ordering.fields": "ts",
        PAYLOAD: f"{MODEL}OverwriteNonDefaultsWithLatestAvroPayload",
    },
    "a marker": {"hoodie.table.ordering.fields": "ts", PAYLOAD: f"{MODEL}AWSDmsAvroPayload"},
}
OPTIONS = {
    "hoodie.table.name": "table",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.write.table.version": "9",
    "hoodie.index.type": "SIMPLE",
    "hoodie.metadata.enable": "false",
    "hoodie.compact.inline": "false",
}
KEYS, BATCH, ROUNDS = 8, 6, 3


def batch(chance: random.Random, keys: list[int], *, first: bool = False) -> pa.Table:
    """Rows of keys that may come twice, never with equal ordering values: of such Hudi takes any."""
    places = set[tuple[int, int, int]]()
    found: list[dict[str, Any]] = []
    for key in keys:
        ts, n = chance.randrange(5), chance.randrange(4)
        if any(known == key and (ts == t or n == m) for known, t, m in places):
            continue
        places.add((key, ts, n))
        found.append(
            {
                "id": f"k{key}",
                "city": "ny" if key % 2 else "sf",
                "name": None if chance.random() < 0.4 else f"name {chance.randrange(99)}",
                "n": n,
                "ts": ts,
                "Op": "I" if first else chance.choice(["U", "U", "U", "D"]),
                "_hoodie_is_deleted": not first and chance.random() < 0.15,
            }
        )
    return pa.Table.from_pylist(found, schema=SCHEMA)


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("merge", MERGES)
@pytest.mark.parametrize("seed", range(scaled(1)))
def test_both_leave_the_same_rows(hudis: Hudis, tmp_path: Path, merge: str, kind: str, seed: int) -> None:
    chance, oracle = random.Random(f"{merge} {kind} {seed}"), hudis["1.1.1"]
    theirs, mine = tmp_path / "theirs", tmp_path / "mine"
    told = OPTIONS | MERGES[merge] | {"hoodie.datasource.write.table.type": kind}
    oracle.write(theirs, batch(chance, list(range(KEYS)), first=True), told)
    shutil.copytree(theirs, mine)
    for round_ in range(ROUNDS):
        rows = batch(chance, [chance.randrange(KEYS + round_) for _ in range(BATCH)])
        oracle.write(theirs, rows, told)
        write_hudi(mine, rows, operation="upsert", options={"hoodie.index.type": "SIMPLE"})
        shown = oracle.read(theirs)
        for read in (
            open_table(str(mine)).scan().to_arrow(),
            oracle.read(mine),
            open_table(str(theirs)).scan().to_arrow(),
        ):
            assert_same_rows(read, shown, columns=SCHEMA.names, of=f"round {round_}: {rows.to_pylist()}")
    if kind == "MERGE_ON_READ":
        table = open_table(str(mine))
        before = table.scan().to_arrow()
        table.compact(force=True)
        assert_same_rows(table.scan().to_arrow(), before)
        assert_same_rows(oracle.read(mine), before, columns=SCHEMA.names)
