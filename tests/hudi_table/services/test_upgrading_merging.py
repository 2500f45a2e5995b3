"""Tables that merge by payload classes, by settings of version 9, or by several fields, brought to
other versions: rows and rules stay, and what cannot stay is refused.

What Hudi makes of them afterwards: tests/interop/test_upgrading_merging.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_table import (
    InvalidRequestError,
    UnsupportedTableError,
    create_table,
    downgrade_table,
    open_table,
    upgrade_table,
)
from hudi_table.model.table.merging import PAYLOADS, UNAVAILABLE
from hudi_table.table.timeline.kept_properties import KEPT
from tests.support import golden

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("ts", pa.int64()),
        ("name", pa.string()),
        ("n", pa.int64()),
        ("Op", pa.string()),
        ("_event_lsn", pa.int64()),
        ("_change_operation_type", pa.string()),
        ("_event_bin_file", pa.string()),
        ("_event_pos", pa.int64()),
        ("_hoodie_is_deleted", pa.bool_()),
    ]
)
NAMES = {name.rpartition(".")[2]: name for name in PAYLOADS}
KINDS = ("CopyOnWrite", "MergeOnRead")
PARTIAL = ("OverwriteNonDefaultsWithLatestAvroPayload", "PartialUpdateAvroPayload", "PostgresDebeziumAvroPayload")
CLASS, ORDERING = "hoodie.compaction.payload.class", "hoodie.table.ordering.fields"
MODEL = "org.apache.hudi.common.model."
MYSQL = f"{MODEL}debezium.MySqlDebeziumAvroPayload"
META = ["_hoodie_file_name", "_hoodie_commit_seqno"]


def batch(turn: int) -> pa.Table:
    """Keys whose ordering values rise and fall, nulls, markers and deletes of each kind."""
    rows = []
    for key in range(12):
        ts = turn * 10 + (-15 if key % 4 == 3 and turn else key)
        does = "d" if turn and key == turn + 4 else "u"
        name = (f"name {turn}.{key}", None, UNAVAILABLE)[(key + turn) % 3 if turn else 0]
        flagged = turn > 0 and key == turn + 7
        rows.append(
            (f"k{key}", ts, name, None if (key + turn) % 5 == 0 else turn, does.upper(), ts, does, "f", ts, flagged)
        )
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], schema=SCHEMA)


def created(base: Path, kind: Any, payload: str = "", version: int = 6, **more: Any) -> Path:
    ordering = (PAYLOADS[NAMES[payload]].ordering if payload in NAMES else None) or "ts"
    options = {CLASS: NAMES[payload]} if payload else {}
    described = {"record_key": "id", "ordering_fields": ordering, "index": {"type": "Bucket", "buckets": 2}}
    create_table(base, SCHEMA, type=kind, version=version, options=options, **(described | more))
    return base


def written(base: Path, *turns: int) -> None:
    for turn in turns:
        open_table(base).upsert(batch(turn))


def rows_of(base: Path) -> pa.Table:
    return open_table(base).scan(meta=True).to_arrow().drop_columns(META).sort_by("_hoodie_record_key")


def bring(base: Path, target: int) -> None:
    way = upgrade_table if target > open_table(base).context.config.version else downgrade_table
    way(base, to=target)


def told(base: Path) -> dict[str, str]:
    """What its properties say of merging."""
    words = ("payload", "merge", "merger", "partial.update", "ordering.fields", "precombine")
    return {key: value for key, value in open_table(base).properties.items() if any(word in key for word in words)}


def edited(base: Path, changes: Mapping[str, str | None]) -> None:
    """Give properties other values, as another engine may have created the table."""
    (base / KEPT).unlink(missing_ok=True)
    path = base / ".hoodie" / "hoodie.properties"
    lines = dict(line.split("=", 1) for line in path.read_text().splitlines() if "=" in line)
    for key, value in changes.items():
        lines.pop(key, None)
        if value is not None:
            lines[key] = value
    path.write_text("".join(f"{key}={value}\n" for key, value in lines.items()))


@pytest.mark.thinned("values")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("payload", NAMES)
def test_rows_stay_in_version_9_and_back_and_merge_there_as_in_a_table_that_was_born_in_it(
    payload: str, kind: str, tmp_path: Path
) -> None:
    base, born = created(tmp_path / "t", kind, payload), created(tmp_path / "b", kind, payload, 9)
    written(base, 0, 1, 2)
    properties, before = open_table(base).properties, rows_of(base)
    bring(base, 9)
    assert rows_of(base).equals(before)
    assert told(base) == told(born)
    open_table(born).upsert(before.select(SCHEMA.names))
    for turn in (3, 1):
        written(base, turn)
        written(born, turn)
        assert open_table(base).scan().to_arrow().sort_by("id").equals(open_table(born).scan().to_arrow().sort_by("id"))
    before = rows_of(base)
    bring(base, 6)
    assert rows_of(base).equals(before)
    assert open_table(base).properties == properties
    written(base, 4)
    assert open_table(base).context.lost == {}


@pytest.mark.parametrize("payload", NAMES)
def test_every_version_merges_the_files_of_a_copy_on_write_table_by_its_class(payload: str, tmp_path: Path) -> None:
    base = created(tmp_path / "t", "CopyOnWrite", payload)
    properties = open_table(base).properties
    for turn, target in enumerate((8, 9, 8, 6)):
        written(base, turn)
        before = rows_of(base)
        bring(base, target)
        assert rows_of(base).equals(before)
    assert open_table(base).properties == properties


def test_settings_of_version_9_without_a_class_get_the_class_that_does_the_same(tmp_path: Path) -> None:
    base = golden.unpack("v9_partial_mode", tmp_path).base
    edited(base, {"hoodie.table.legacy.payload.class": None})
    before = rows_of(base)
    bring(base, 6)
    assert rows_of(base).equals(before)
    assert told(base)[CLASS] == NAMES["OverwriteNonDefaultsWithLatestAvroPayload"]
    assert "hoodie.table.partial.update.mode" not in told(base)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        (
            {ORDERING: "ts,_event_pos"},
            r"several ordering fields \(ts, _event_pos\), for which version 6 has no payload class",
        ),
        (
            {
                "hoodie.record.merge.property.hoodie.payload.delete.field": "Op",
                "hoodie.record.merge.property.hoodie.payload.delete.marker": "X",
            },
            "deletes where Op is X by EventTime, for which version 6 has no payload class",
        ),
    ],
)
def test_what_no_class_does_stays_in_version_9(changes: dict[str, str], why: str, tmp_path: Path) -> None:
    base = created(tmp_path / "t", "CopyOnWrite", "DefaultHoodieRecordPayload", 9)
    edited(base, changes)
    written(base, 0)
    files = sorted(base.rglob("*"))
    with pytest.raises(UnsupportedTableError, match=why):
        bring(base, 6)
    assert sorted(base.rglob("*")) == files


def of_mysql(base: Path, kind: str, *, compacted: bool = True) -> Path:
    """A table of MySQL's events, as Hudi 0.15.0 describes it."""
    created(base, kind)
    written(base, 0, 1)
    if kind == "MergeOnRead" and compacted:
        open_table(base).compact(force=True)
    edited(base, {CLASS: MYSQL, "hoodie.table.precombine.field": "_event_seq"})
    return base


@pytest.mark.parametrize("kind", KINDS)
def test_events_of_mysql_are_ordered_by_two_fields_in_version_9(kind: str, tmp_path: Path) -> None:
    base = of_mysql(tmp_path / "t", kind)
    before = open_table(base).scan(query="read_optimized").to_arrow().sort_by("id")
    bring(base, 9)
    assert open_table(base).scan().to_arrow().sort_by("id").equals(before)
    assert open_table(base).context.config.ordering_fields == ("_event_bin_file", "_event_pos")
    assert told(base)["hoodie.table.legacy.payload.class"] == MYSQL
    open_table(base).upsert(batch(2))
    assert set(rows_of(base)["_event_pos"].to_pylist()) != set(before["_event_pos"].to_pylist())
    with pytest.raises(UnsupportedTableError, match="which this release does not write: it stays in version 9"):
        bring(base, 6)


@pytest.mark.parametrize("payload", ["AWSDmsAvroPayload", *PARTIAL])
def test_a_merge_on_read_table_passes_version_8_by(payload: str, tmp_path: Path) -> None:
    base = created(tmp_path / "t", "MergeOnRead", payload)
    written(base, 0, 1)
    files = sorted(base.rglob("*"))
    with pytest.raises(UnsupportedTableError, match="merge its logs by different rules: bring it to version 9"):
        bring(base, 8)
    assert sorted(base.rglob("*")) == files
    bring(base, 9)
    with pytest.raises(UnsupportedTableError, match="merge its logs by different rules: it stays in version 9"):
        bring(base, 8)


def test_logs_that_merge_by_a_class_that_is_not_known_are_to_be_compacted_first(tmp_path: Path) -> None:
    base = of_mysql(tmp_path / "t", "MergeOnRead", compacted=False)
    files = sorted(base.rglob("*"))
    with pytest.raises(
        InvalidRequestError, match=r"\d slices? with logs wait: compact first with the engine that wrote"
    ):
        bring(base, 9)
    assert sorted(base.rglob("*")) == files


def test_a_class_of_somebody_elses_stays_where_it_is(tmp_path: Path) -> None:
    base = created(tmp_path / "t", "CopyOnWrite")
    written(base, 0)
    edited(base, {CLASS: "com.acme.OwnPayload"})
    for target in (8, 9):
        with pytest.raises(UnsupportedTableError, match=r"merges rows by com\.acme\.OwnPayload.*stays in its version"):
            bring(base, target)
