"""Ways of merging of a whole table: partial updates, payload classes by name, functions of one's
own."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hudi_table import register_key_generator, register_merger
from hudi_table.api import HudiTable, create_table, open_table
from hudi_table.cli import main
from hudi_table.errors import InvalidDataError, InvalidRequestError, UnsupportedTableError
from hudi_table.model.table.merging import PAYLOADS, UNAVAILABLE
from hudi_table.table.timeline.properties import read_properties
from hudi_table.write import functions
from tests.support.scale import scaled
from tests.support.written import INDEXES, new_table

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("kind", pa.string()), ("tags", pa.list_(pa.int64()))])
LSN = pa.schema([("id", pa.string()), ("_event_lsn", pa.int64()), ("kind", pa.string()), ("raw", pa.binary())])


@pytest.fixture(autouse=True)
def forget() -> Iterator[None]:
    yield
    functions._mergers.clear()
    functions._key_generators.clear()


def of(schema: pa.Schema, *rows: tuple[Any, ...]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema=schema)


def partial(mode: str = "EventTime", **more: Any) -> HudiTable:
    told = {"ordering_fields": "ts", "merge_mode": mode, "partial_updates": "IgnoreDefaults"}
    return new_table(schema=SCHEMA, partition_by=(), **(told | more))


def found(table: HudiTable) -> dict[str, tuple[Any, ...]]:
    return {row["id"]: tuple(row.values())[1:] for row in open_table(table.base_path).scan().to_arrow().to_pylist()}


@pytest.mark.parametrize("type_", ["CopyOnWrite", "MergeOnRead"])
@pytest.mark.parametrize("index", ["bucket", "simple"])
def test_nulls_leave_stored_values_and_older_rows_fill_what_is_null(index: str, type_: str) -> None:
    table = partial(index=INDEXES[index], type=type_)
    table.insert(of(SCHEMA, ("a", 5, "x", None), ("b", 5, None, [1]), ("c", 5, "x", [1])))
    table.upsert(of(SCHEMA, ("a", 6, None, [2]), ("b", 4, "old", [9]), ("b", 3, "older", None), ("new", 1, None, None)))
    expected = {"a": (6, "x", [2]), "b": (5, "old", [1]), "c": (5, "x", [1]), "new": (1, None, None)}
    assert found(table) == expected


def test_by_commit_time_an_older_row_overwrites_but_with_its_nulls() -> None:
    table = partial("CommitTime")
    table.insert(of(SCHEMA, ("a", 5, "x", [1])))
    table.upsert(of(SCHEMA, ("a", 1, None, [2])))
    assert found(table) == {"a": (1, "x", [2])}


def test_the_marker_of_debezium_leaves_text_and_bytes_as_they_were() -> None:
    table = new_table(schema=LSN, partition_by=(), ordering_fields="_event_lsn", partial_updates="FillUnavailable")
    table.insert(of(LSN, ("a", 1, "x", b"1"), ("b", 1, "x", b"1"), ("c", 3, "x", b"1")))
    marker = UNAVAILABLE.encode()
    table.upsert(of(LSN, ("a", 2, UNAVAILABLE, b"2"), ("b", 2, None, marker), ("c", 2, UNAVAILABLE, marker)))
    assert found(table) == {"a": (2, "x", b"2"), "b": (2, None, b"1"), "c": (3, "x", b"1")}


@pytest.mark.parametrize("type_", ["CopyOnWrite", "MergeOnRead"])
@pytest.mark.parametrize("index", ["bucket", "simple"])
def test_partial_updates_do_not_depend_on_the_memory(index: str, type_: str) -> None:
    chance = random.Random(f"{index}{type_}")
    roomy, tight = (partial(index=INDEXES[index], type=type_) for _ in range(2))
    for step in range(scaled(4)):
        rows = [
            (f"k{chance.randrange(300)}", chance.randrange(9), chance.choice([None, "x", "y"]),
             chance.choice([None, [step], []])) for _ in range(300)
        ]  # fmt: skip
        for table, budget in ((roomy, 1 << 30), (tight, 2_000)):
            table.write(of(SCHEMA, *rows), operation="upsert", max_memory=budget)
    expected = found(roomy)
    assert found(tight) == expected
    rows = open_table(roomy.base_path).scan(max_memory=1_000).to_arrow().to_pylist()
    assert {row["id"]: tuple(row.values())[1:] for row in rows} == expected


@pytest.mark.parametrize("name", PAYLOADS)
def test_a_payload_class_is_stored_and_found_again(name: str) -> None:
    ordering = PAYLOADS[name].ordering or "ts"
    schema = LSN if ordering == "_event_lsn" else SCHEMA
    options = {"hoodie.datasource.write.payload.class": name}
    table = new_table(schema=schema, partition_by=(), ordering_fields=ordering, options=options)
    context = open_table(table.base_path).context
    assert read_properties(context.storage, context.clock)["hoodie.compaction.payload.class"] == name
    assert context.config.merge_mode is PAYLOADS[name].mode
    other: Any = "EventTime" if PAYLOADS[name].mode == "CommitTime" else "CommitTime"
    with pytest.raises(InvalidRequestError, match="it cannot be changed"):
        create_table(
            table.base_path, schema, record_key="id", ordering_fields=ordering, merge_mode=other, if_exists="open"
        )


REFUSED: dict[str, tuple[type[Exception], str, dict[str, Any]]] = {
    "an unknown class": (UnsupportedTableError, "com.x.Mine", {"options": {"hoodie.datasource.write.payload.class": "com.x.Mine"}}),
    "MySQL's class": (
        UnsupportedTableError, "version 9 compares as two ordering_fields",
        {"options": {"hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.debezium.MySqlDebeziumAvroPayload"}},
    ),
    "a class against the mode": (
        InvalidRequestError, "leave one of the two out",
        {"merge_mode": "CommitTime", "options": {"hoodie.datasource.write.payload.class": "DefaultHoodieRecordPayload"}},
    ),
    "a marker by commit time": (
        UnsupportedTableError, "goes by event time", {"merge_mode": "CommitTime", "partial_updates": "FillUnavailable"},
    ),
    "a marker by another field": (UnsupportedTableError, "_event_lsn", {"partial_updates": "FillUnavailable"}),
    "an unknown kind": (InvalidRequestError, "IgnoreDefaults, FillUnavailable", {"partial_updates": "Sometimes"}),
    "keys that move": (UnsupportedTableError, "global index", {"partial_updates": "IgnoreDefaults", "index": "GlobalSimple"}),
    "keys that move on read": (
        UnsupportedTableError, "take a Bucket or Simple index, or merge by CommitTime",
        {"type": "MergeOnRead", "index": "KeyState"},
    ),
    "a merger on read": (UnsupportedTableError, "copy-on-write", {"merger": "m", "type": "MergeOnRead"}),
    "a merger by event time": (UnsupportedTableError, "CommitTime alone", {"merger": "m", "merge_mode": "EventTime"}),
    "a merger with partial updates": (
        UnsupportedTableError, "CommitTime alone", {"merger": "m", "partial_updates": "IgnoreDefaults"},
    ),
    "keys over buckets": (
        UnsupportedTableError, "Bucket index over several",
        {"key_generator": "k", "record_key": ["id", "kind"], "index": {"type": "Bucket", "buckets": 2}},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_go_together_is_refused_by_name(case: str, tmp_path: Any) -> None:
    kind, message, options = REFUSED[case]
    with pytest.raises(kind, match=message):
        create_table(tmp_path / "t", SCHEMA, **({"record_key": "id", "ordering_fields": "ts"} | options))
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ({"merge_mode": "COMMIT_TIME_ORDERING"}, "Merge mode        CommitTime"),
        ({"merge_mode": "EVENT_TIME_ORDERING"}, "Merge mode        EventTime"),
        ({"index": "GLOBAL_BLOOM", "type": "COPY_ON_WRITE"}, "Index             GlobalBloom"),
        ({"index": "RECORD_INDEX"}, "Index             RecordIndex"),
    ],
)
def test_an_argument_takes_the_name_of_hudi_too(
    given: dict[str, Any], stored: str, tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    create_table(tmp_path / "t", SCHEMA, record_key="id", ordering_fields="ts", **given)
    assert main(["info", str(tmp_path / "t")]) == 0
    assert stored in capsys.readouterr().out


def longest(stored: pa.Table, incoming: pa.Table) -> pa.Table:
    """Text grows; numbers are added; an empty list deletes."""
    grown = pc.binary_join_element_wise(stored["kind"], incoming["kind"], "+")
    deleted = pc.equal(pc.list_value_length(incoming["tags"]), 0)
    return pa.table(
        {"id": stored["id"], "ts": pc.add(stored["ts"], incoming["ts"]), "kind": grown, "tags": incoming["tags"]}
    ).append_column("_hoodie_is_deleted", pc.fill_null(deleted, False))


@pytest.mark.parametrize("index", ["bucket", "simple"])
@pytest.mark.parametrize("memory", [1 << 30, 2_000], ids=["roomy", "tight"])
def test_a_merger_of_ones_own_makes_the_rows_of_known_keys(index: str, memory: int) -> None:
    register_merger("longest", longest)
    table = new_table(
        schema=SCHEMA,
        partition_by=(),
        index=INDEXES[index],
        ordering_fields="ts",
        options={"hoodie.lakeops.merger": "longest"},
    )
    names = [f"k{n:03d}" for n in range(200)]
    table.insert(of(SCHEMA, *((name, 1, "x", [1]) for name in names)))
    changed = [(name, 2, "y", [] if name == "k004" else [2]) for name in names[:100:2]]
    result = table.write(of(SCHEMA, *changed, ("new", 9, "n", None)), operation="upsert", max_memory=memory)
    expected = (
        dict.fromkeys(names, (1, "x", [1])) | {row[0]: (3, "x+y", [2]) for row in changed} | {"new": (9, "n", None)}
    )
    del expected["k004"]
    assert found(table) == expected
    assert (result.rows_updated, result.rows_deleted, result.rows_inserted) == (49, 1, 1)
    table.delete(pa.table({"id": ["k000"]}))
    assert "k000" not in found(table)


def test_a_function_that_is_not_registered_is_asked_for_before_anything_is_written() -> None:
    table = new_table(schema=SCHEMA, partition_by=(), merger="longest", key_generator="lower")
    before = table.context.storage.list("")
    rows = of(SCHEMA, ("a", 1, "x", None))
    with pytest.raises(InvalidRequestError, match=r"register_merger\('longest'"):
        table.upsert(rows)
    register_merger("longest", longest)
    with pytest.raises(InvalidRequestError, match=r"register_key_generator\('lower'"):
        table.upsert(rows)
    assert table.context.storage.list("") == before


WRONG = {
    "as many rows": lambda stored, incoming: stored.slice(1),
    "partition column 'id'": lambda stored, incoming: stored.set_column(0, "id", pa.array(["other"] * len(stored))),
    "no column 'kind'": lambda stored, incoming: stored.drop_columns(["kind"]),
    "list for": lambda stored, incoming: [stored],
}


@pytest.mark.parametrize("message", WRONG)
def test_a_merger_that_returns_something_else_fails_the_write(message: str) -> None:
    register_merger("wrong", WRONG[message])
    table = new_table(schema=SCHEMA, partition_by=(), merger="wrong")
    table.insert(of(SCHEMA, ("a", 1, "x", None)))
    with pytest.raises(InvalidDataError, match=message):
        table.upsert(of(SCHEMA, ("a", 2, "y", None)))
    assert found(table) == {"a": (1, "x", None)}


@pytest.mark.parametrize("index", INDEXES)
@pytest.mark.parametrize("type_", ["CopyOnWrite", "MergeOnRead"])
def test_a_key_generator_of_ones_own_makes_record_keys(index: str, type_: str) -> None:
    register_key_generator("lower", lambda rows: pc.utf8_lower(rows["id"]))
    table = new_table(
        schema=SCHEMA,
        partition_by=(),
        index=INDEXES[index],
        type=type_,
        options={"hoodie.lakeops.key.generator": "lower"},
    )
    table.insert(of(SCHEMA, ("A", 1, "x", None), ("b", 1, "x", None)))
    table.upsert(of(SCHEMA, ("a", 2, "y", None), ("C", 2, "y", None)))
    table.delete(pa.table({"id": ["B"]}))
    assert found(table) == {"a": (2, "y", None), "C": (2, "y", None)}
    keys = open_table(table.base_path).scan(["_hoodie_record_key"]).to_arrow().column(0).to_pylist()
    assert sorted(keys) == ["a", "c"]


BAD_KEYS: dict[str, Any] = {
    "null or ''": lambda rows: pa.array([""] * len(rows)),
    "int64 of 1": lambda rows: pa.array([1] * len(rows)),
    "return 1 values": lambda rows: pa.array(["a", "b"]),
}


@pytest.mark.parametrize("message", BAD_KEYS)
def test_keys_that_are_none_are_refused_before_anything_is_written(message: str) -> None:
    register_key_generator("bad", BAD_KEYS[message])
    table = new_table(schema=SCHEMA, partition_by=(), key_generator="bad")
    before = table.context.storage.list("")
    with pytest.raises(InvalidDataError, match=message):
        table.upsert(of(SCHEMA, ("a", 1, "x", None)))
    assert table.context.storage.list("") == before
