"""Tables of version 9 that merge by more than one ordering field or one whole row: the same
batches, written by Apache Hudi 1.1.1 and by us, leave the same rows."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_table.api import create_table, open_table, write_hudi
from hudi_table.model.table.merging import UNAVAILABLE
from tests.interop.conftest import Hudis
from tests.support import golden
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
        ("_event_lsn", pa.int64()),
        ("_change_operation_type", pa.string()),
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
    "large values stay": {
        "hoodie.table.ordering.fields": "_event_lsn",
        PAYLOAD: f"{MODEL}debezium.PostgresDebeziumAvroPayload",
    },
}
OPTIONS = {
    "hoodie.table.name": "table",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.write.table.version": "9",
    "hoodie.index.type": "SIMPLE",
}
PLAIN = {"hoodie.metadata.enable": "false", "hoodie.compact.inline": "false"}
KEYS, BATCH, ROUNDS = 8, 6, 3
MERGING = ("payload", "merge", "partial.update", "ordering.fields")
"""What names of properties that tell of merging hold."""


def batch(chance: random.Random, keys: list[int], *, first: bool = False) -> pa.Table:
    """Rows of keys that may come twice, never with equal ordering values: of such Hudi takes
    any."""
    places = set[tuple[int, int, int]]()
    found: list[dict[str, Any]] = []
    for key in keys:
        ts, n = chance.randrange(5), chance.randrange(4)
        if any(known == key and (ts == t or n == m) for known, t, m in places):
            continue
        places.add((key, ts, n))
        does = "I" if first else chance.choice(["U", "U", "U", "D"])
        found.append(
            {
                "id": f"k{key}",
                "city": "ny" if key % 2 else "sf",
                "name": chance.choice([None, UNAVAILABLE, *(f"name {chance.randrange(99)}" for _ in range(3))]),
                "n": n,
                "ts": ts,
                "Op": does,
                "_event_lsn": ts,
                "_change_operation_type": does.lower(),
                "_hoodie_is_deleted": not first and chance.random() < 0.15,
            }
        )
    return pa.Table.from_pylist(found, schema=SCHEMA)


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("merge", MERGES)
@pytest.mark.parametrize("seed", range(scaled(2, quick=1)))
def test_both_leave_the_same_rows(hudis: Hudis, tmp_path: Path, merge: str, kind: str, seed: int) -> None:
    chance, oracle = random.Random(f"{merge} {kind} {seed}"), hudis["1.1.1"]
    theirs, mine, shared = (tmp_path / name for name in ("theirs", "mine", "shared"))
    described = OPTIONS | MERGES[merge] | {"hoodie.datasource.write.table.type": kind}
    told = described | PLAIN
    first = batch(chance, list(range(KEYS)), first=True)
    oracle.write(theirs, first, told)
    shutil.copytree(theirs, mine)
    create_table(shared, SCHEMA, record_key="id", partition_by="city", options=described, version=9)
    write_hudi(shared, first, operation="upsert")
    assert merging(shared) == merging(theirs)
    for turn in range(ROUNDS):
        rows = batch(chance, [chance.randrange(KEYS + turn) for _ in range(BATCH)])
        oracle.write(theirs, rows, told)
        write_hudi(mine, rows, operation="upsert", options={"hoodie.index.type": "SIMPLE"})
        if turn % 2:
            write_hudi(shared, rows, operation="upsert")
        else:
            oracle.write(shared, rows, OPTIONS | PLAIN)
        shown = oracle.read(theirs)
        for base in (theirs, mine, shared):
            for read in (open_table(str(base)).scan().to_arrow(), oracle.read(base)):
                assert_same_rows(read, shown, columns=SCHEMA.names, of=f"turn {turn} of {base.name}")
    if kind == "MERGE_ON_READ":
        for base in (mine, shared):
            assert open_table(str(base)).compact(force=True)
            assert_same_rows(oracle.read(base), shown, columns=SCHEMA.names, of=f"{base.name}, compacted")


def merging(base: Path) -> list[str]:
    """What its properties say of merging."""
    lines = (base / ".hoodie" / "hoodie.properties").read_text().splitlines()
    return sorted(line for line in lines if any(word in line.partition("=")[0] for word in MERGING))


RELEASES = pytest.mark.parametrize("release", ["1.1.1", "1.2.0"])


@RELEASES
@pytest.mark.parametrize("version", [8, 9])
def test_logs_that_we_folded_are_read_with_their_deletes(
    hudis: Hudis, tmp_path: Path, version: int, release: str
) -> None:
    """Flagged deletes keep their ordering values: rows that are older than they stay away, those of
    the base file that are newer stay."""
    base, oracle = tmp_path / "table", hudis[release]
    create_table(
        base, SCHEMA, record_key="id", partition_by="city", ordering_fields="ts", type="MergeOnRead", version=version
    )

    def put(*items: tuple[str, int, bool]) -> None:
        found = [{"id": key, "city": "ny", "n": 1, "ts": ts, "_hoodie_is_deleted": gone} for key, ts, gone in items]
        write_hudi(base, pa.Table.from_pylist(found, schema=SCHEMA), operation="upsert")

    def left() -> set[str]:
        mine = open_table(base).scan().to_arrow()
        assert_same_rows(oracle.read(base), mine, columns=SCHEMA.names, of=f"Hudi {release}")
        return {f"{row['id']}{row['ts']}" for row in mine.to_pylist()}

    put(("a", 1, False), ("b", 9, False), ("c", 1, False), ("d", 1, False))
    put(("a", 5, True), ("b", 5, True))
    put(("d", 2, False), ("c", 5, True))
    assert left() == {"b9", "d2"}
    assert open_table(base).compact_logs(force=True)
    assert left() == {"b9", "d2"}
    put(("a", 3, False), ("c", 7, False))
    assert left() == {"b9", "c7", "d2"}


@RELEASES
@pytest.mark.filterwarnings("ignore::hudi_table.metadata.lifecycle.MetadataDroppedWarning")
def test_partial_updates_that_we_folded_are_read(hudis: Hudis, tmp_path: Path, release: str) -> None:
    """Those of 1.0.2: columns that they leave alone are those of the base file."""
    base = golden.unpack("v8_mor_partial", tmp_path).base
    before = open_table(base).scan().to_arrow()
    assert open_table(base).compact_logs(force=True)
    assert_same_rows(hudis[release].read(base), before, columns=before.schema.names, of=f"Hudi {release}")


@pytest.mark.parametrize(
    ("version", "release"), [(6, "0.15.0"), (6, "1.1.1"), (8, "1.1.1"), (9, "1.1.1"), (9, "1.2.0")]
)
def test_flagged_deletes_that_we_keep_among_the_rows_are_deletes(
    hudis: Hudis, tmp_path: Path, version: int, release: str
) -> None:
    """A delete block holds 15 digits of an ordering value before and behind the point: a flagged
    delete with more of them stays a row, with its flag."""
    base, oracle = tmp_path / "table", hudis[release]
    schema = SCHEMA.set(4, pa.field("ts", pa.decimal128(20, 0)))
    create_table(
        base, schema, record_key="id", partition_by="city", ordering_fields="ts", type="MergeOnRead", version=version
    )

    def rows(*items: tuple[str, int, bool]) -> pa.Table:
        return pa.Table.from_pylist(
            [
                {"id": key, "city": "ny", "n": 1, "ts": 10**16 + ts, "_hoodie_is_deleted": gone}
                for key, ts, gone in items
            ],
            schema=schema,
        )

    def left() -> set[str]:
        mine = open_table(base).scan().to_arrow()
        assert_same_rows(oracle.read(base), mine, columns=SCHEMA.names, of=f"Hudi {release}")
        return {f"{row['id']}{row['ts'] - 10**16}" for row in mine.to_pylist()}

    for batch_ in ([("a", 1, False), ("b", 1, False), ("c", 1, False)], [("c", 7, False)]):
        write_hudi(base, rows(*batch_), operation="upsert")
    write_hudi(base, rows(("a", 5, True), ("c", 5, True)), operation="upsert")
    assert left() == {"b1", "c7"}
    assert open_table(base).compact(force=True)
    assert left() == {"b1", "c7"}
