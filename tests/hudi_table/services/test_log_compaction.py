"""What a log compaction leaves: the rows, in any query and after what follows, are those that they
would be without it."""

from __future__ import annotations

import random
import uuid
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from hudi_table.api import HudiTable, create_table, open_table
from hudi_table.codec.avro.schema import avro_to_arrow, text_of_columns
from hudi_table.codec.log.blocks import BlockType, LogBlock, scan_blocks
from hudi_table.codec.log.rows import avro_block, read_deletes, read_rows
from hudi_table.model.names import META_COLUMNS
from hudi_table.model.service.findings import Check
from tests.support import golden, hudi_rs
from tests.support.scale import scaled
from tests.support.written import slices

SCHEMA = pa.schema(
    [("id", pa.string()), ("ts", pa.int64()), ("v", pa.string()), ("_hoodie_is_deleted", pa.bool_())]
)  # fmt: skip
Row = tuple[str, int, str | None, bool]


def rows(*items: Row) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, item, strict=True)) for item in items], schema=SCHEMA)


def new_table(base: Path | str, version: int, **more: Any) -> HudiTable:
    told: dict[str, Any] = {
        "record_key": "id", "ordering_fields": "ts", "type": "MergeOnRead", "index": {"type": "Bucket", "buckets": 1},
    }  # fmt: skip
    return create_table(base, SCHEMA, version=version, **(told | more))


def contents(table: HudiTable) -> list[tuple[Any, ...]]:
    found = open_table(table.base_path).scan(["id", "ts", "v"]).to_arrow().to_pylist()
    return sorted((tuple(row.values()) for row in found), key=str)


def folded_blocks(table: HudiTable) -> list[LogBlock]:
    """The blocks that log compactions wrote."""
    found: list[LogBlock] = []
    for log in (log for item in slices(table) for log in item.logs):
        with table.context.storage.open_read(log.path) as source:
            found += (block for block in scan_blocks(source, path=log.path) if block.compacted)
    return found


@pytest.mark.parametrize("mode", ["EventTime", "CommitTime"])
@pytest.mark.parametrize("version", [6, 8, 9])
def test_rows_that_were_deleted_by_their_flag_stay_so_when_logs_are_folded(
    version: int, mode: str, tmp_path: Path
) -> None:
    """Those of versions 8 and 9 came back as rows of nulls, which the next compaction stored."""
    table = new_table(tmp_path / "t", version, merge_mode=mode)
    table.upsert(rows(("a", 1, "a1", False), ("b", 1, "b1", False)))
    table.upsert(rows(("b", 2, "b2", False)))
    table.upsert(rows(("a", 2, None, True)))
    assert contents(table) == [("b", 2, "b2")]
    table.compact_logs(force=True)
    assert contents(table) == [("b", 2, "b2")]
    assert [row["id"] for row in hudi_rs.read(table.base_path).to_pylist()] == ["b"]
    table.compact(force=True)
    assert contents(table) == [("b", 2, "b2")]


@pytest.mark.parametrize(("version", "left"), [(6, ["a20", "b8"]), (8, ["a20"]), (9, ["a20"])])
def test_a_folded_delete_keeps_its_ordering_value(version: int, left: list[str], tmp_path: Path) -> None:
    """What comes behind the log compaction is compared with it: a row that is older than the delete
    stays away on versions 8 and 9."""
    table = new_table(tmp_path / "t", version)
    table.upsert(rows(("a", 5, "a5", False), ("b", 5, "b5", False)))
    table.upsert(rows(("a", 10, None, True), ("b", 10, None, True)))
    table.upsert(rows(("c", 1, None, True)))
    table.compact_logs(force=True)
    (block,) = [block for block in folded_blocks(table) if block.type is BlockType.DELETE]
    with table.context.storage.open_read(block.path) as source:
        deleted = read_deletes(source, block)
    assert dict(zip(deleted.keys.to_pylist(), deleted.ordering.to_pylist(), strict=True)) == {"a": 10, "b": 10, "c": 1}
    table.upsert(rows(("a", 20, "a20", False), ("b", 8, "b8", False)))
    assert [row[2] for row in contents(table)] == left
    table.compact(force=True)
    assert [row[2] for row in contents(table)] == left


def test_a_delete_that_is_older_than_the_row_of_the_base_file_takes_nothing_away_once_it_is_folded(
    tmp_path: Path,
) -> None:
    table = new_table(tmp_path / "t", 9)
    table.upsert(rows(("a", 10, "a10", False)))
    table.compact(force=True)
    table.upsert(rows(("a", 5, None, True)))
    table.upsert(rows(("b", 5, "b5", False)))
    table.compact_logs(force=True)
    assert contents(table) == [("a", 10, "a10"), ("b", 5, "b5")]


def test_the_doctor_finds_rows_whose_fields_make_no_key(tmp_path: Path) -> None:
    """It ended with InvalidData. Such rows were those that a log compaction had made of deletes."""
    table = new_table(tmp_path / "t", 9, type="CopyOnWrite")
    table.upsert(rows(("a", 1, "a1", False), ("b", 1, "b1", False)))
    (path,) = (tmp_path / "t").glob("*.parquet")
    stored = pq.read_table(path).replace_schema_metadata()
    pq.write_table(stored.set_column(stored.schema.names.index("id"), "id", pa.array([None, "b"])), path)
    (found,) = [item for item in open_table(table.base_path).doctor(keys=True) if item.check is Check.WRONG_KEY]
    assert found.message.startswith("1 row with another record key")
    assert "'a' for None" in found.message


def merge_on_read() -> list[str]:
    later = [name for name in golden.LATER if "read_optimized" in golden.Golden(name, Path()).manifest]
    return [*golden.MERGE_ON_READ, *later]


@pytest.mark.filterwarnings("ignore::hudi_table.metadata.lifecycle.MetadataDroppedWarning")
@pytest.mark.parametrize("name", merge_on_read())
def test_a_log_compaction_changes_no_row_of_a_table_that_hudi_wrote(name: str, tmp_path: Path) -> None:
    """Columns that a partial update had left alone became null."""
    base = str(golden.unpack(name, tmp_path).base)

    def seen() -> list[str]:
        found = open_table(base).scan(meta=True).to_arrow()
        return sorted(map(str, found.drop_columns(["_hoodie_file_name"]).to_pylist()))

    table, before = open_table(base), seen()
    table.compact_logs(force=True)
    assert seen() == before
    table.compact(force=True)
    assert seen() == before


WIDE = pa.schema([*SCHEMA, ("w", pa.int32())])
KEYS = "abcdef"
Step = tuple[str, list[tuple[str, int, str | None, int | None]]]
SETTINGS: dict[str, dict[str, Any]] = {
    "event time": {},
    "commit time": {"merge_mode": "CommitTime"},
    "filled": {"partial_updates": "IgnoreDefaults"},
    "filled by commit time": {"partial_updates": "IgnoreDefaults", "merge_mode": "CommitTime"},
}


def random_steps(chance: random.Random, version: int) -> list[Step]:
    kinds = ["upsert", "upsert", "flagged", "delete", "mixed", "compact"] + ["partial"] * 2 * (version > 6)
    steps: list[Step] = []
    for _ in range(7):
        chosen = chance.sample(KEYS, chance.randint(1, len(KEYS)))
        values = [
            (key, chance.randint(1, 5), chance.choice([None, "x", "y"]), chance.choice([None, 1])) for key in chosen
        ]
        steps.append((chance.choice(kinds), values))
    return steps


def take(table: HudiTable, step: Step) -> None:
    kind, values = step
    flagged = {"flagged": len(values), "mixed": len(values) // 2}.get(kind, 0)
    items = [(*item[:3], number < flagged, item[3]) for number, item in enumerate(values)]
    given = pa.Table.from_pylist([dict(zip(WIDE.names, item, strict=True)) for item in items], schema=WIDE)
    if kind == "compact":
        table.compact(force=True)
    elif kind == "delete":
        table.delete(given.select(["id"]))
    else:
        table.upsert(given)
        if kind == "partial":
            make_partial(table, ("v", "w")[len(values) % 2])


def make_partial(table: HudiTable, changed: str) -> None:
    """Let the blocks of the newest commit hold one changed column beside the ordering column alone,
    as an UPDATE of Hudi's writes them, for keys that the base file has."""
    storage, instant = table.context.storage, max(table.timeline()["instant"].to_pylist())
    known = {row["_hoodie_record_key"] for row in table.scan(query="read_optimized", meta=True).to_arrow().to_pylist()}
    for log in (log for item in slices(table) for log in item.logs):
        with storage.open_read(log.path) as source:
            blocks = [block for block in scan_blocks(source, path=log.path) if block.instant == instant]
            held = [read_rows(source, block) for block in blocks]
        data = b""
        for block, found in zip(blocks, held, strict=True):
            whole = block.schema or ""
            text = text_of_columns(whole, (*META_COLUMNS, "ts", changed))
            mask = pc.is_in(found["_hoodie_record_key"], pa.array(sorted(known), pa.string()))
            data += avro_block(found.filter(mask).select(avro_to_arrow(text).names), text, instant, partial=True)
            data += avro_block(found.filter(pc.invert(mask)), whole, instant)
        if data:
            storage.put(log.path, data)


def asked() -> list[tuple[int, str]]:
    """Version 8 has no partial updates of merge-on-read tables but those of blocks."""
    return [
        (version, name)
        for version in (6, 8, 9)
        for name, told in SETTINGS.items()
        if version != 8 or "partial_updates" not in told
    ]


@pytest.mark.parametrize(("version", "settings"), asked())
def test_a_history_with_log_compactions_ends_with_the_rows_of_one_without(version: int, settings: str) -> None:
    told = SETTINGS[settings]
    for number in range(scaled(2)):
        chance = random.Random(f"{version} {settings} {number}")
        steps = random_steps(chance, version)
        plain, folded = (
            create_table(
                f"memory://{uuid.uuid4().hex}/t", WIDE, record_key="id", ordering_fields="ts", type="MergeOnRead", version=version,
                index={"type": "Bucket", "buckets": 1}, **told,
            ) for _ in range(2)
        )  # fmt: skip
        for step in steps:
            take(plain, step)
            take(folded, step)
            if chance.random() < 0.5:
                folded.compact_logs(force=True)
            assert everything(folded) == everything(plain), (number, steps)
        for table in (plain, folded):
            table.compact(force=True)
        assert everything(folded) == everything(plain), (number, steps)


def everything(table: HudiTable) -> list[str]:
    return sorted(map(str, open_table(table.base_path).scan().to_arrow().to_pylist()))


@pytest.mark.filterwarnings("ignore::hudi_table.metadata.lifecycle.MetadataDroppedWarning")
@pytest.mark.parametrize("kind", ["avro", "parquet"])
def test_blocks_of_partial_updates_hold_the_columns_that_were_changed(kind: str, tmp_path: Path) -> None:
    table = open_table(str(golden.unpack("v8_mor_partial", tmp_path).base))
    before = everything(table)
    table.compact_logs({"hoodie.logfile.data.block.format": kind}, force=True)
    blocks = [block for block in folded_blocks(table) if block.is_partial]
    assert {block.type.name.lower() for block in blocks} == {kind}
    held = {tuple(avro_to_arrow(block.schema or "").names[len(META_COLUMNS) :]) for block in blocks}
    assert held == {("name", "price", "ts"), ("price", "ts"), ("name", "ts")}
    assert everything(table) == before
    assert table.cluster(force=True)
    assert everything(table) == before
