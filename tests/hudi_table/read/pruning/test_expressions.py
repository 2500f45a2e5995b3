"""Files left out by indexes of expressions, which never change rows.

Aspects: which filters leave files out; random writes and filters on tables of both versions, beside
the same tables without the indexes; what engines hand down; slices with logs; entries that are
missing, damaged, or of another expression than is noted; a table of Hudi's own. Omitted: what
filters say of the values of an expression (`test_expression_values.py`).
"""

from __future__ import annotations

import json
import random
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hudi_table.api import HudiTable, create_table, open_table
from hudi_table.metadata.definitions import DEFINITIONS
from hudi_table.model.names import METADATA_TABLE
from hudi_table.read.pruning import expressions
from hudi_table.read.pruning.column_ranges import Ranges
from hudi_table.read.pruning.column_stats import known_ranges
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.view.file_system_view import FileSlice
from tests.support import golden
from tests.support.scale import scaled

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("name", pa.string()),
        ("code", pa.string()),
        ("born", pa.date32()),
        ("at", pa.timestamp("us", tz="UTC")),
        ("seconds", pa.int64()),
    ]
)
ASKED = [
    "expr_index_by_lower=lower(name)",
    "expr_index_by_born=date_add(born) days=3",
    "expr_index_by_day=date_format(at) format='yyyy-MM-dd'",
    "expr_index_by_month=from_unixtime(seconds) format='yyyy-MM'",
]
FILTER = "expr_index_by_code=upper(code) using bloom_filters"
BOTH = pytest.mark.parametrize("version", [8, 9])
APART = {"hoodie.parquet.small.file.limit": "0"}
FILES, EACH = 6, 4
MONTH = 30 * 86_400


def numbered(number: int, count: int = EACH) -> pa.Table:
    """The rows of one file: names, codes, days and moments of their own."""
    moments = [number * MONTH + step * 3_600 for step in range(count)]
    return pa.table(
        {
            "id": [f"{number}:{step}" for step in range(count)],
            "name": [None if step == 3 else f"N{number}-{step}" for step in range(count)],
            "code": [f"c{number}{step}" for step in range(count)],
            "born": pa.array([number * 100 + step for step in range(count)], pa.int32()).view(pa.date32()),
            "at": pa.array([moment * 1_000_000 for moment in moments], pa.int64()).view(SCHEMA.field("at").type),
            "seconds": moments,
        },
        schema=SCHEMA,
    )


def made(base: Path, version: int, *, kind: Any = "CopyOnWrite", indexes: list[str] | None = None) -> HudiTable:
    table = create_table(base, SCHEMA, record_key="id", type=kind, version=version)
    for number in range(FILES):
        table.write(numbered(number), operation="insert", options=APART)
    wanted = (ASKED + [FILTER] * (kind == "CopyOnWrite")) if indexes is None else indexes
    table.build_metadata(["files", *wanted])
    return open_table(base)


def files(table: HudiTable, asked: Any) -> int:
    return len(table.scan(filter=asked).plan_files())


def ids(table: HudiTable, asked: Any) -> list[str]:
    return sorted(table.scan(filter=asked).to_arrow()["id"].to_pylist())


C = {name: pc.field(name) for name in SCHEMA.names}
LEFT: list[tuple[Any, int]] = [
    ("name = 'N2-1'", 1),
    ("name in ('N2-1', 'N4-0')", 2),
    ("name = 'nobody'", 0),
    (pc.utf8_lower(C["name"]) == "n2-1", 1),
    (pc.ascii_lower(C["name"]).isin(["n2-1", "n3-0"]), 2),
    ("name > 'N2'", FILES),
    (pc.utf8_upper(C["name"]) == "N2-1", FILES),
    ("code = 'c31'", 1),
    ("code = 'C31'", 1),
    (pc.utf8_upper(C["code"]) == "C31", 1),
    ("code in ('c31', 'c42')", 2),
    ("code >= 'c31'", FILES),
    ("born = '1970-07-21'", 1),
    ("born >= '1971-01-01'", 2),
    ("born between '1970-04-01' and '1970-08-01'", 2),
    ("born < '1970-01-01'", 0),
    ("at >= '1970-05-20 00:00:00'", 1),
    ("at between '1970-03-01 00:00:00' and '1970-03-03 00:00:00'", 1),
    ("at = '1970-03-02 00:00:00'", 1),
    ("at < '1970-01-10 00:00:00'", 1),
    (f"seconds between {2 * MONTH} and {2 * MONTH + 10}", 1),
    ("seconds = 0", 2),
    (f"seconds >= {5 * MONTH}", FILES),
    (f"seconds >= {5 * MONTH} and seconds < {6 * MONTH}", 2),
    ("id = '2:1'", FILES),
    ("name = 'N2-1' or id = '4:0'", FILES),
    ("name = 'N2-1' and at > '1970-05-20 00:00:00'", 0),
]


@BOTH
def test_these_filters_leave_files_out_and_the_rows_are_those_without_an_index(tmp_path: Path, version: int) -> None:
    table, plain = made(tmp_path / "t", version), made(tmp_path / "plain", version, indexes=[])
    for asked, opened in LEFT:
        assert files(plain, asked) == FILES, asked
        assert ids(table, asked) == ids(plain, asked), asked
        assert files(table, asked) == opened, asked


@pytest.mark.thinned("values")
@BOTH
@pytest.mark.parametrize("kind", ["CopyOnWrite", "MergeOnRead"])
def test_random_writes_and_filters_give_the_rows_of_a_table_without_an_index(
    tmp_path: Path, version: int, kind: str
) -> None:
    chosen = random.Random(f"{version} {kind}")
    table, plain = (made(tmp_path / name, version, kind=kind, indexes=more) for name, more in (("t", None), ("p", [])))
    spared = 0
    for step in range(scaled(3)):
        some = pa.concat_tables([numbered(chosen.randrange(FILES)).slice(at, 1) for at in range(3)])
        some = some.set_column(1, "name", pa.array([f"N{chosen.randrange(9)}-{step}" for _ in range(3)]))
        for each in (table, plain):
            each.upsert(some)
            if step % 3 == 2:
                each.delete(some.slice(0, 1))
        table, plain = open_table(tmp_path / "t"), open_table(tmp_path / "p")
        for _ in range(scaled(8)):
            asked = any_filter(chosen)
            assert ids(table, asked) == ids(plain, asked), asked
            spared += files(plain, asked) - files(table, asked)
    assert spared > 0
    assert {name.partition("=")[0] for name in ASKED} <= set(table.context.config.metadata_partitions)


def any_filter(chosen: random.Random) -> str:
    number, step = chosen.randrange(FILES + 1), chosen.randrange(EACH)
    moment = number * MONTH + step * 3_600 + chosen.choice([-1, 0, 1, 86_400])
    values = {
        "name": f"'N{number}-{step}'",
        "code": f"'c{number}{step}'",
        "born": f"'{date.fromordinal(719_163 + number * 100 + step)}'",
        "at": f"'{datetime.fromtimestamp(moment + 86_400, UTC).replace(tzinfo=None)}'",
        "seconds": str(moment),
    }
    column = chosen.choice(sorted(values))
    one = f"{column} {chosen.choice(['=', '<', '<=', '>', '>=', '!='])} {values[column]}"
    return one if chosen.random() < 0.5 else f"{one} {chosen.choice(['and', 'or'])} {any_filter(chosen)}"


def test_conditions_that_engines_hand_down_leave_files_out_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import duckdb

    table = made(tmp_path / "t", 9)
    seen = []
    whole = expressions.with_expressions

    def watched(*args: Any) -> tuple[FileSlice, ...]:
        found = whole(*args)
        seen.append(len(found))
        return found

    monkeypatch.setattr(expressions, "with_expressions", watched)
    with duckdb.connect() as connection:
        connection.register("t", table.scan().duckdb_source())
        assert connection.sql("select id from t where name = 'N2-1'").fetchall() == [("2:1",)]
    assert seen[-1] == 1


def test_slices_with_logs_are_read(tmp_path: Path) -> None:
    table = made(tmp_path / "t", 9, kind="MergeOnRead")
    table.upsert(numbered(2).slice(1, 1).set_column(1, "name", pa.array(["Zoe"])))
    seen = open_table(tmp_path / "t")
    assert ids(seen, "name = 'Zoe'") == ["2:1"]
    assert files(seen, "name = 'Zoe'") == 1
    assert ids(seen, "name = 'N2-1'") == []


@pytest.mark.parametrize("name", ["by_lower", "by_code"])
def test_a_file_without_an_entry_is_read(tmp_path: Path, name: str) -> None:
    table = made(tmp_path / "t", 9)
    asked = {"by_lower": "name = 'N9-0'", "by_code": "code = 'c90'"}[name]
    before = {info.path for info in table.context.storage.list(f"{METADATA_TABLE}/expr_index_{name}")}
    table.write(numbered(9), operation="insert", options=APART)
    assert files(open_table(tmp_path / "t"), asked) == 1
    for info in table.context.storage.list(f"{METADATA_TABLE}/expr_index_{name}"):
        if info.path not in before:
            table.context.storage.delete(info.path)
    seen = open_table(tmp_path / "t")
    assert ids(seen, asked) == ["9:0"]
    assert files(seen, asked) == 1
    assert files(seen, asked.replace("9", "2", 1)) == 2


def test_an_index_that_was_made_anew_of_another_expression_meanwhile_is_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = made(tmp_path / "t", 9, indexes=["expr_index_x=lower(name)"])
    assert files(table, "name = 'N2-1'") == 1
    read = known_ranges

    def then_made_anew(*args: Any) -> dict[str, Ranges]:
        found = read(*args)
        note(table.context, "upper")
        return found

    monkeypatch.setattr(expressions, "known_ranges", then_made_anew)
    assert files(table, "name = 'N2-1'") == FILES


def note(ctx: TableContext, function: str) -> None:
    noted = json.loads(ctx.storage.get(DEFINITIONS))
    noted["indexDefinitions"]["expr_index_x"] |= {"indexFunction": function, "indexOptions": {"expr": function}}
    ctx.storage.put(DEFINITIONS, json.dumps(noted).encode())


def test_what_cannot_be_told_of_an_index_leaves_nothing_out(tmp_path: Path) -> None:
    table = made(tmp_path / "t", 9, indexes=["expr_index_x=lower(name)"])
    note(table.context, "soundex")
    assert files(open_table(tmp_path / "t"), "name = 'N2-1'") == FILES
    note(table.context, "lower")
    assert files(open_table(tmp_path / "t"), "name = 'N2-1'") == 1
    for info in table.context.storage.list(f"{METADATA_TABLE}/expr_index_x"):
        table.context.storage.put(info.path, b"damaged")
    assert files(open_table(tmp_path / "t"), "name = 'N2-1'") == FILES
    assert ids(open_table(tmp_path / "t"), "name = 'N2-1'") == ["2:1"]


def test_a_table_of_hudi_s_own_is_read_by_its_indexes(tmp_path: Path) -> None:
    table = open_table(golden.unpack("v9_expr_stats", tmp_path).base)
    whole = table.scan().to_arrow()
    noted = json.loads(table.context.storage.get(DEFINITIONS))["indexDefinitions"]
    columns = [noted[name]["sourceFields"][0] for name in ("expr_index_idx_dt", "expr_index_idx_bl")]
    for column in columns:
        for value in whole[column].unique():
            found = table.scan(filter=pc.field(column) == value).to_arrow()
            assert found.num_rows == whole.filter(pc.equal(whole[column], value)).num_rows, (column, value)
    assert noted
