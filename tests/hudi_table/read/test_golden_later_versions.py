"""Tables of versions 8 and 9 that Apache Hudi 1.0.2 and 1.1.1 wrote, read by us: rows equal to what
Hudi itself returned."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hudi_table.api import HudiTable, open_table
from hudi_table.errors import UnsupportedTableError
from hudi_table.read.scan import Scan
from tests.support import golden
from tests.support.rows import canonical

QUERIES = ("snapshot", "read_optimized", "time_travel", "incremental")
BEGIN, END = "hoodie.datasource.read.begin.instanttime", "hoodie.datasource.read.end.instanttime"

# Where we answer otherwise than the release that wrote the table, each with its reason.
OTHERWISE = {
    (
        "up68",
        "snapshot",
    ): "the upgrade named logs by a pending compaction: 1.0.2 takes them for uncommitted and shows an older row",
    ("up69", "snapshot"): "the same by 1.1.1",
    ("v8_mor_reinsert", "snapshot"): "1.0.2 fails on a key that was deleted and came back",
    (
        "v9_multi_order",
        "incremental",
    ): "1.1.1 merges the logs of the range alone: a row that lost against the base file appears",
    ("v9_partial_mode", "incremental"): "1.1.1 merges the logs of the range alone: columns that a change left are null",
}


def asked() -> list[tuple[str, str]]:
    return [
        (name, query)
        for name in golden.LATER
        for query in QUERIES
        if f"{query}_schema" in golden.Golden(name, Path()).manifest and (name, query) not in OTHERWISE
    ]


def opened(name: str, folder: Path) -> HudiTable:
    return open_table(str(golden.unpack(name, folder).base))


def scanned(table: HudiTable, query: str, options: dict[str, str], columns: list[str]) -> Scan:
    if query == "time_travel":
        return table.scan(columns, as_of=options["as.of.instant"])
    if query == "incremental":
        # 1.0.2 includes the begin, which is a completion time of 17 digits.
        inclusive = table.context.config.version == 8
        since = str(int(options[BEGIN]) - 1) if inclusive else options[BEGIN]
        return table.scan(columns, query=query, since=since, until=options[END])
    return table.scan(columns, query=query)


def in_milliseconds(rows: pa.Table) -> pa.Table:
    """As Spark's JSON tells timestamps."""
    columns = [
        pc.floor_temporal(column, unit="millisecond") if pa.types.is_timestamp(column.type) else column
        for column in rows.columns
    ]
    return pa.table(columns, names=rows.schema.names)


@pytest.mark.parametrize(("name", "query"), asked())
def test_rows_equal_those_that_hudi_returned(name: str, query: str, tmp_path: Path) -> None:
    table = opened(name, tmp_path)
    expected = golden.Golden(name, tmp_path / name).rows(query)
    options = golden.Golden(name, tmp_path / name).manifest.get(f"{query}_options", {})
    columns = expected.schema.names
    if (name, query) == ("v9_evo_cow", "incremental"):
        # Hudi returns the columns of today, we those of the range's end.
        columns = [column for column in columns if column != "more"]
    found = scanned(table, query, options, columns).to_arrow()
    assert canonical(in_milliseconds(found), columns=columns) == canonical(expected, columns=columns)
    for field in found.schema:
        if not pa.types.is_nested(field.type):
            assert field.type == expected.schema.field(field.name).type


@pytest.mark.parametrize("name", golden.LATER)
def test_counts_filters_and_single_columns_agree_with_whole_rows(name: str, tmp_path: Path) -> None:
    table = opened(name, tmp_path)
    whole = table.scan().to_arrow()
    assert table.scan().count() == whole.num_rows
    assert canonical(table.scan(["id"]).to_arrow()) == canonical(whole.select(["id"]))
    for value in whole["id"].to_pylist()[:3]:
        found = table.scan(filter=f"id = '{value}'").to_arrow()
        assert canonical(found) == [row for row in canonical(whole) if row["id"] == value]
    for city in set(whole["city"].to_pylist()) if "city" in whole.schema.names else ():
        found = table.scan(["id"], filter=f"city = '{city}'").to_arrow()
        assert sorted(found["id"].to_pylist()) == sorted(row["id"] for row in whole.to_pylist() if row["city"] == city)


@pytest.mark.parametrize("name", ["v8_mor_compact", "v9_mor_isdel", "v9_replace"])
def test_other_engines_get_the_same_rows(name: str, tmp_path: Path) -> None:
    table = opened(name, tmp_path)
    whole = canonical(table.scan().to_arrow())
    assert canonical(table.scan().to_polars().collect().to_arrow()) == whole
    assert canonical(pa.table(table)) == whole
    assert len(table.scan().to_duckdb().fetchall()) == len(whole)


def test_memory_that_does_not_hold_the_logs_changes_no_row(tmp_path: Path) -> None:
    for name in ("v8_mor_partial", "v9_mor_isdel", "v9_partial_mode", "v9_multi_isdel"):
        table = opened(name, tmp_path)
        assert canonical(table.scan(max_memory=1).to_arrow()) == canonical(table.scan().to_arrow())


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        (
            ["hoodie.record.merge.mode=CUSTOM", "hoodie.compaction.payload.class=com.acme.Payload"],
            "merges rows by com.acme.Payload",
        ),
        (["hoodie.table.partial.update.mode=KEEP_OLD"], "KEEP_OLD"),
        (
            ["hoodie.record.merge.property.hoodie.write.partial.update.unavailable.value=?"],
            "values that a change has not touched",
        ),
    ],
)
def test_rows_that_merge_in_another_way_are_refused_before_one_is_given_and_base_files_are_read(
    lines: list[str], why: str, tmp_path: Path
) -> None:
    base = golden.unpack("v9_mor_isdel", tmp_path).base
    path = base / ".hoodie" / "hoodie.properties"
    keys = [line.partition("=")[0] for line in lines]
    kept = [line for line in path.read_text().splitlines() if line.partition("=")[0] not in keys]
    path.write_text("\n".join([*kept, *lines]) + "\n")
    table = open_table(str(base))
    with pytest.raises(UnsupportedTableError, match=f"{why}.*read_optimized"):
        table.scan().to_arrow()
    with pytest.raises(UnsupportedTableError, match=why):
        table.changes().to_arrow()
    assert (
        table.scan(query="read_optimized").count()
        == golden.Golden("v9_mor_isdel", base).rows("read_optimized").num_rows
    )


def test_a_marker_of_a_former_payload_class_deletes(tmp_path: Path) -> None:
    base = golden.unpack("v9_multi_order", tmp_path).base
    before = open_table(str(base)).scan().to_arrow()
    path = base / ".hoodie" / "hoodie.properties"
    told = "hoodie.record.merge.property.hoodie.payload.delete"
    path.write_text(path.read_text() + f"{told}.field=name\n{told}.marker=n1_100_6\n")
    logged = [row for row in before.to_pylist() if row["name"] != "n1_100_6"]
    assert canonical(open_table(str(base)).scan().to_arrow()) == canonical(pa.Table.from_pylist(logged, before.schema))
    assert len(logged) == before.num_rows - 1


@pytest.mark.parametrize("name", ["up68", "up69"])
def test_rows_stay_what_they_were_when_hudi_upgrades_a_table_with_a_pending_compaction(
    name: str, tmp_path: Path
) -> None:
    before = golden.Golden("up6", tmp_path).rows()
    found = opened(name, tmp_path).scan(before.schema.names).to_arrow()
    assert canonical(found, columns=before.schema.names) == canonical(before, columns=before.schema.names)
    by_hudi = golden.Golden(name, tmp_path / name).rows()
    assert canonical(found, columns=before.schema.names) != canonical(by_hudi, columns=before.schema.names)


def test_a_key_that_was_deleted_and_came_back_is_read_as_1_1_1_reads_it(tmp_path: Path) -> None:
    table = opened("v8_mor_reinsert", tmp_path)
    expected = golden.Golden("v8_mor_reinsert", tmp_path).rows("snapshot_by_1.1.1", schema_of="read_optimized")
    found = table.scan(expected.schema.names).to_arrow()
    assert canonical(found, columns=expected.schema.names) == canonical(expected, columns=expected.schema.names)


@pytest.mark.parametrize("name", ["v9_multi_order", "v9_partial_mode"])
def test_rows_of_a_range_are_those_of_the_snapshot_at_its_end_that_a_commit_of_the_range_wrote(
    name: str, tmp_path: Path
) -> None:
    table = opened(name, tmp_path)
    options = golden.Golden(name, tmp_path).manifest["incremental_options"]
    found = table.scan(query="incremental", since=options[BEGIN], until=options[END], meta=True).to_arrow()
    last = max(found.column("_hoodie_commit_time").to_pylist())
    then = table.scan(as_of=last, meta=True).to_arrow()
    changed = then.filter(pc.is_in(then.column("_hoodie_commit_time"), pc.unique(found.column("_hoodie_commit_time"))))
    assert canonical(found) == canonical(changed)


@pytest.mark.parametrize("name", ["v8_cdc_cow", "v8_cdc_mor", "v9_cdc_mor"])
def test_changes_equal_those_that_hudi_returned(name: str, tmp_path: Path) -> None:
    table = opened(name, tmp_path)
    manifest = golden.Golden(name, tmp_path).manifest
    options = manifest["cdc_options"]
    since = None if options[BEGIN] == "000" else options[BEGIN]
    found = table.changes(since=since, until=options[END]).to_arrow().to_pylist()
    assert in_order(found) == in_order(manifest["cdc"])


@pytest.mark.parametrize("name", [name for name in golden.LATER if name not in ("up68", "up69", "v8_lsm")])
def test_changes_from_the_first_commit_on_make_the_snapshot(name: str, tmp_path: Path) -> None:
    table = opened(name, tmp_path)
    rows: dict[tuple[Any, ...], Any] = {}
    for change in table.changes().to_arrow().to_pylist():
        key = tuple((change["after"] or change["before"])[column] for column in table.record_key)
        rows[key] = change["after"]
    found = [row for row in rows.values() if row is not None]
    # In v9_evo a key stands in two file groups, for Hudi too.
    expected = {tuple(row[column] for column in table.record_key): row for row in table.scan().to_arrow().to_pylist()}
    assert {tuple(row[column] for column in table.record_key): row for row in found} == expected


def in_order(changes: list[dict[str, Any]]) -> list[str]:
    return sorted(
        json.dumps(
            [change["ts_ms"], change["op"], image(change.get("before")), image(change.get("after"))],
            sort_keys=True,
            default=str,
        )
        for change in changes
    )


def image(value: Any) -> dict[str, Any] | None:
    """An image of a row without what Hudi adds to it and without nulls."""
    row = json.loads(value) if isinstance(value, str) else value
    return row and {name: item for name, item in row.items() if item is not None and not name.startswith("_hoodie_")}
