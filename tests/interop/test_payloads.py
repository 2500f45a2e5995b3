"""Hudi's payload classes: the same batches end in the same rows in Apache Hudi 0.15.0 and in ours,
and each reads the other's.

Every key is a history of its own: a stored row, then what two upserts bring. Ordering values tell
in the names what is older.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_table.api import create_table, open_table
from hudi_table.model.table.merging import PAYLOADS, UNAVAILABLE
from tests.interop import ours
from tests.interop.conftest import Hudis
from tests.support import hudi_rs
from tests.support.hudi_oracle import HudiFailedError, HudiOracle

pytestmark = pytest.mark.interop

Row = tuple[Any, ...]
"""Ordering value, a, b, then perhaps c, the operation, and whether it is a flagged delete."""
SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("ts", pa.int64()),
        ("a", pa.string()),
        ("b", pa.int64()),
        ("c", pa.string()),
        ("_event_lsn", pa.int64()),
        ("_change_operation_type", pa.string()),
        ("Op", pa.string()),
        ("_hoodie_is_deleted", pa.bool_()),
    ]
)
STORED: Row = (100, "A0", 10)
U = UNAVAILABLE
HISTORIES: dict[str, tuple[Row | None, list[Row], list[Row]]] = {
    "newer null": (STORED, [(200, None, 11)], []),
    "older null": (STORED, [(50, None, 11)], []),
    "older fills": (STORED, [(50, "A1", None, "C1")], []),
    "equal null": (STORED, [(100, None, 11)], []),
    "in disorder": (STORED, [(200, None, 11)], [(150, "A2", None, "C2")]),
    "in order": (STORED, [(150, None, 11, "C1")], [(200, "A2", None)]),
    "delete, older row": (STORED, [(200, "A1", 11, None, "u", True)], [(150, "A2", None)]),
    "row, older delete": (STORED, [(200, None, 11)], [(150, "A2", None, None, "u", True)]),
    "row, newer delete": (STORED, [(200, None, 11)], [(250, None, None, None, "u", True)]),
    "older delete": (STORED, [(50, "A1", 11, None, "u", True)], []),
    "newer delete": (STORED, [(150, None, 11, None, "u", True)], []),
    "insert, update": (None, [(100, "A1", None, "C1")], [(200, None, 12)]),
    "insert, older": (None, [(100, None, 11)], [(50, "A2", 12, "C2")]),
    "twice in order": (STORED, [(150, "A1", None), (200, None, 12)], []),
    "twice in disorder": (STORED, [(200, "A1", None), (150, None, 12, "C1")], []),
    "twice equal": (STORED, [(200, "A1", None), (200, None, 12)], []),
    "twice new": (None, [(200, "A1", None), (150, None, 12, "C1")], []),
    "three times": (STORED, [(200, None, None), (120, "A1", 1), (150, "A2", 2, "C2")], []),
    "row, newer delete in one": (STORED, [(150, "A1", None), (200, None, 12, "C", "u", True)], []),
    "row, older delete in one": (STORED, [(200, "A1", None), (150, None, 12, "C", "u", True)], []),
    "delete, newer row in one": (STORED, [(150, None, 12, "C", "u", True), (200, "A1", None)], []),
    "delete, older row in one": (STORED, [(200, None, 12, "C", "u", True), (150, "A1", None)], []),
    "three equal": (STORED, [(100, "A1", None)], [(100, None, 12)]),
    "unavailable": (STORED, [(200, U, 11)], []),
    "unavailable and older": (STORED, [(50, U, 11)], []),
    "unavailable later": (STORED, [(150, "A1", 11)], [(200, U, 12)]),
    "unavailable twice": (STORED, [(150, U, 11)], [(200, U, 12)]),
    "unavailable stored": ((100, U, 10), [(200, "A1", None)], []),
    "unavailable stored, older": ((100, U, 10), [(50, "A1", None)], []),
    "unavailable insert": (None, [(100, U, 11)], []),
    "unavailable, then older": (STORED, [(200, U, 11)], [(150, "A2", 12)]),
    "unavailable in one": (STORED, [(150, "A1", 11), (200, U, 12)], []),
    "marked delete": (STORED, [(200, "A1", 11, None, "d")], []),
    "marked in capitals": (STORED, [(200, "A1", 11, None, "D")], []),
    "marked, older": (STORED, [(50, "A1", 11, None, "d")], []),
    "marked, then older row": (STORED, [(200, "A1", 11, None, "d")], [(150, "A2", 12)]),
    "row, then marked and older": (STORED, [(200, "A1", 11)], [(150, "A2", 12, None, "d")]),
    "marked, then newer": (STORED, [(200, "A1", 11, None, "d")], [(250, None, 12)]),
    "marked insert": (None, [(100, "A1", 11, None, "d")], []),
}
NAMES = {name.rpartition(".")[2]: name for name in PAYLOADS}
DMS = "AWSDmsAvroPayload"
CASES = [(name, kind) for name in NAMES for kind in ("CopyOnWrite", "MergeOnRead")]


def batch(step: int, *, without: str = "") -> pa.Table:
    rows = []
    for key, (stored, first, second) in HISTORIES.items():
        given = ([stored] if stored else [], first, second)[step]
        for row in given if key != without else []:
            ts, a, b, c, op, flagged = row + (None, "u", False)[len(row) - 3 :]
            rows.append((key, ts, a, b, c, ts, op, op.upper(), flagged))
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], schema=SCHEMA)


def ordering_of(payload: str) -> str:
    return PAYLOADS[NAMES[payload]].ordering or "ts"


def told(payload: str, kind: str) -> dict[str, str]:
    return {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.table.type": {"CopyOnWrite": "COPY_ON_WRITE", "MergeOnRead": "MERGE_ON_READ"}[kind],
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "",
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
        "hoodie.datasource.write.precombine.field": ordering_of(payload),
        "hoodie.datasource.write.payload.class": NAMES[payload],
        "hoodie.metadata.enable": "false",
        "hoodie.index.type": "BUCKET",
        "hoodie.bucket.index.num.buckets": "1",
    }


def of_hudi(oracle: HudiOracle, base: Path, payload: str, kind: str, *, without: str = "", **more: str) -> None:
    for step in range(3):
        operation = {"hoodie.datasource.write.operation": "upsert" if step else "insert"}
        oracle.write(base, batch(step, without=without), told(payload, kind) | operation | more)


def of_ours(base: Path, payload: str, kind, *, without: str = "", version: int = 6) -> None:
    create_table(
        base, SCHEMA, record_key="id", ordering_fields=ordering_of(payload), type=kind, version=version,
        index={"type": "Bucket", "buckets": 1}, options={"hoodie.datasource.write.payload.class": NAMES[payload]},
    )  # fmt: skip
    for step in range(3):
        ours.write(base, "upsert" if step else "insert", batch(step, without=without))


def shown(rows: pa.Table) -> dict[str, Row]:
    """Of each key its values, and which of the visible commits is the row's."""
    times = sorted(set(rows["_hoodie_commit_time"].to_pylist()))
    columns = [rows[name].to_pylist() for name in ("ts", "a", "b", "c", "_hoodie_commit_time")]
    values = zip(*columns, strict=True)
    return {key: (*row[:-1], times.index(row[-1])) for key, row in zip(rows["id"].to_pylist(), values, strict=True)}


@pytest.mark.parametrize(("payload", "kind"), CASES)
def test_a_payload_class_merges_as_in_hudi(hudis: Hudis, tmp_path: Path, payload: str, kind: str) -> None:
    oracle = hudis["0.15.0"]
    without = "marked insert" if (payload, kind) == (DMS, "MergeOnRead") else ""
    of_hudi(oracle, tmp_path / "theirs", payload, kind, without=without)
    of_ours(tmp_path / "ours", payload, kind, without=without)
    expected = shown(oracle.read(tmp_path / "theirs"))
    assert len(expected) > 20
    assert shown(open_table(str(tmp_path / "ours")).scan(meta=True).to_arrow()) == expected
    assert shown(open_table(str(tmp_path / "theirs")).scan(meta=True).to_arrow()) == expected
    assert shown(oracle.read(tmp_path / "ours")) == expected


@pytest.mark.parametrize(
    "payload",
    ["OverwriteNonDefaultsWithLatestAvroPayload", "PartialUpdateAvroPayload", "PostgresDebeziumAvroPayload", DMS],
)
@pytest.mark.parametrize("release", ["1.1.1", pytest.param("1.0.2", marks=pytest.mark.at_scale(2))])
def test_a_class_does_to_base_files_of_version_8_what_it_does_in_version_6(
    hudis: Hudis, tmp_path: Path, release: str, payload: str
) -> None:
    oracle, kind = hudis[release], "CopyOnWrite"
    of_hudi(oracle, tmp_path / "theirs", payload, kind, **{"hoodie.write.table.version": "8"})
    of_ours(tmp_path / "ours", payload, kind, version=8)
    of_ours(tmp_path / "six", payload, kind)
    expected = shown(oracle.read(tmp_path / "theirs"))
    for name in ("ours", "theirs", "six"):
        assert shown(open_table(str(tmp_path / name)).scan(meta=True).to_arrow()) == expected, name
    assert shown(oracle.read(tmp_path / "ours")) == expected


BY_COMMIT_ORDER = {
    "in disorder",
    "row, older delete",
    "insert, older",
    "unavailable, then older",
    "row, then marked and older",
}
DIFFERENT_IN_1X = {
    "OverwriteWithLatestAvroPayload": BY_COMMIT_ORDER | {"marked, then older row"},
    "OverwriteNonDefaultsWithLatestAvroPayload": BY_COMMIT_ORDER
    | {"in order", "insert, update", "three equal", "marked, then older row", "marked, then newer"},
    DMS: BY_COMMIT_ORDER,
    "DefaultHoodieRecordPayload": {"delete, older row", "older delete"},
    "EventTimeAvroPayload": {"delete, older row", "older delete"},
    "PartialUpdateAvroPayload": {"row, older delete"},
    "PostgresDebeziumAvroPayload": {
        "row, older delete",
        "row, then marked and older",
        *(
            key
            for key in HISTORIES
            if key.startswith("unavailable") and "stored" not in key and key != "unavailable and older"
        ),
    }
    - {"unavailable insert"},
}
"""Cases 19 and 21 to 24: histories that 1.1.1 reads from the logs of version 6 otherwise than
0.15.0 does."""
LATER, KEPT = (150, "A2", None, "C2", 1), (200, None, 11, None, 1)
STANDS, LEFT = (150, "A2", None, None), (200, U, 11, None)
SHOWN_BY_1X: dict[str, tuple[Row | None, ...]] = {
    "OverwriteWithLatestAvroPayload": (LATER, None, (*STANDS, 1), (*LEFT, 0)),
    DMS: (LATER, None, (*STANDS, 1), (*LEFT, 0)),
    "OverwriteNonDefaultsWithLatestAvroPayload": (
        (150, "A2", 11, "C2", 1), None, (150, "A2", 10, None, 1), (*LEFT, 0),
    ),
    "PartialUpdateAvroPayload": ((200, "A2", 11, "C2", 1), None, (150, "A2", 10, None, 1), (*LEFT, 0)),
    "DefaultHoodieRecordPayload": (KEPT, KEPT, None, (*LEFT, 1)),
    "EventTimeAvroPayload": (KEPT, KEPT, None, (*LEFT, 1)),
    "PostgresDebeziumAvroPayload": (KEPT, None, (*STANDS, 2), (*LEFT, 1)),
}  # fmt: skip
"""Of each class: logs in disorder, an older delete after a row, an older row after a delete, and
Debezium's marker."""


@pytest.mark.parametrize("payload", NAMES)
def test_hudi_1x_merges_the_same_logs_in_its_own_way(hudis: Hudis, tmp_path: Path, payload: str) -> None:
    base = tmp_path / "ours"
    of_ours(base, payload, "MergeOnRead", without="marked insert" if payload == DMS else "")
    mine, theirs = shown(open_table(str(base)).scan(meta=True).to_arrow()), shown(hudis["1.1.1"].read(base))
    assert {key for key in HISTORIES if mine.get(key) != theirs.get(key)} == DIFFERENT_IN_1X[payload]
    chosen = tuple(theirs.get(key) for key in ("in disorder", "row, older delete", "delete, older row", "unavailable"))
    assert chosen == SHOWN_BY_1X[payload]


@pytest.mark.parametrize("payload", NAMES)
def test_hudi_rs_reads_as_1x_does_or_refuses_the_class(tmp_path: Path, payload: str) -> None:
    base = tmp_path / "ours"
    of_ours(base, payload, "MergeOnRead", without="marked insert" if payload == DMS else "")
    if payload not in ("OverwriteWithLatestAvroPayload", "DefaultHoodieRecordPayload", "EventTimeAvroPayload"):
        with pytest.raises(Exception, match="merger of its own"):
            hudi_rs.read(base)
        return
    mine, theirs = shown(open_table(str(base)).scan(meta=True).to_arrow()), shown(hudi_rs.read(base))
    assert {key for key in HISTORIES if mine.get(key) != theirs.get(key)} == DIFFERENT_IN_1X[payload]


def test_hudi_1x_weighs_flagged_deletes_of_one_class_by_their_ordering(hudis: Hudis, tmp_path: Path) -> None:
    """Case 25: copy-on-write, where 0.15.0 deletes whatever the ordering value."""
    of_hudi(hudis["1.1.1"], tmp_path / "theirs", "EventTimeAvroPayload", "CopyOnWrite")
    of_ours(tmp_path / "ours", "EventTimeAvroPayload", "CopyOnWrite")
    mine = shown(open_table(str(tmp_path / "ours")).scan(meta=True).to_arrow())
    theirs = shown(hudis["1.1.1"].read(tmp_path / "theirs"))
    more = {"row, older delete": (200, None, 11, None, 1), "older delete": (*STORED, None, 0)}
    assert theirs == mine | more


def test_hudi_cannot_read_the_log_of_a_delete_of_an_unknown_key_by_this_class(hudis: Hudis, tmp_path: Path) -> None:
    """Case 20 of docs/reference/compatibility.md: its own logs and ours alike."""
    oracle = hudis["0.15.0"]
    of_hudi(oracle, tmp_path / "theirs", DMS, "MergeOnRead")
    of_ours(tmp_path / "ours", DMS, "MergeOnRead")
    for base in (tmp_path / "theirs", tmp_path / "ours"):
        with pytest.raises(HudiFailedError, match="No value present"):
            oracle.read(base)
        assert "marked insert" not in shown(open_table(str(base)).scan(meta=True).to_arrow())
