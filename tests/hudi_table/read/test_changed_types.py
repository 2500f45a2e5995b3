"""A column whose type Hudi has changed: older files and logs are read, and written anew, in its
type of today, where it is certain what Hudi makes of their values."""

from __future__ import annotations

import json
import re
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_table import HudiTable, create_table, open_table
from hudi_table.codec.avro.schema import arrow_to_avro
from hudi_table.errors import CorruptTableError, UnsupportedTableError

BOTH = pytest.mark.parametrize("kind", ["CopyOnWrite", "MergeOnRead"])
MONEY = pa.decimal128(10, 2)


def changed(base: Path, kind: Any, of: pa.DataType, values: list[Any], to: pa.DataType) -> HudiTable:
    """A table whose base files, and logs if it has any, hold the values in the type that its column
    `x` had once."""
    schema = pa.schema([("id", pa.string()), ("x", of)])
    table = create_table(str(base), schema, record_key="id", type=kind, version=6, name="t")
    rows = pa.table([pa.array([f"k{i}" for i in range(len(values))]), pa.array(values, of)], schema=schema)
    table.upsert(rows)
    if kind == "MergeOnRead":
        table.upsert(rows.slice(1))
    timeline = base / ".hoodie"
    newest = max(timeline.glob("*commit"), key=lambda path: path.name)
    told = json.loads(newest.read_text()) | {"partitionToWriteStats": {}}
    told["extraMetadata"]["schema"] = arrow_to_avro(pa.schema([("id", pa.string()), ("x", to)]), table_name="t")
    time, action = str(int(newest.stem) + 5), newest.suffix
    (timeline / f"{time}{action}.requested").write_text("")
    (timeline / (f"{time}.inflight" if action == ".commit" else f"{time}{action}.inflight")).write_text("")
    (timeline / f"{time}{action}").write_text(json.dumps(told))
    return open_table(str(base))


@BOTH
@pytest.mark.parametrize(
    ("of", "values", "to", "today"),
    [
        (pa.int32(), [1, 2**24 + 1, None], pa.float32(), [1.0, 2.0**24, None]),
        (pa.int64(), [1, 2**24 + 3, 2**62 + 2**38 + 1], pa.float32(), [1.0, 2.0**24 + 4, 2.0**62 + 2**39]),
        (pa.int64(), [2**53 + 1, -(2**63), None], pa.float64(), [2.0**53, -(2.0**63), None]),
        (pa.float32(), [1.5, 1.1], pa.float64(), [1.5, 1.100000023841858]),
        (pa.int32(), [1, -2], pa.string(), ["1", "-2"]),
        (pa.int32(), [1, None], MONEY, [Decimal(1), None]),
        (pa.date32(), [date(1582, 10, 15), date(9999, 12, 31), None], pa.string(), ["1582-10-15", "9999-12-31", None]),
        (MONEY, [Decimal("1.10"), Decimal("0.00"), None], pa.string(), ["1.10", "0.00", None]),
        (pa.float64(), [None, None], pa.string(), [None, None]),
        (pa.struct([("n", pa.int32())]), [{"n": 2**24 + 1}, None], pa.struct([("n", pa.float32())]), [{"n": 2.0**24}, None]),
    ],
)  # fmt: skip
def test_values_come_in_the_type_of_today(
    tmp_path: Path, kind: str, of: pa.DataType, values: list[Any], to: pa.DataType, today: list[Any]
) -> None:
    table = changed(tmp_path / "t", kind, of, values, to)
    keys = [f"k{i}" for i in range(len(values))]
    wanted = [{"id": key, "x": value} for key, value in zip(keys, today, strict=True)]
    assert table.scan().to_arrow().sort_by("id").to_pylist() == wanted
    table.upsert(pa.table({"id": ["new"], "x": pa.array([None], to)}))
    if kind == "MergeOnRead":
        table.compact()
    assert table.scan().to_arrow().sort_by("id").to_pylist() == [*wanted, {"id": "new", "x": None}]


@BOTH
@pytest.mark.parametrize(
    ("of", "values", "to"),
    [
        (pa.float32(), [1.5, 2.5], pa.string()),
        (pa.float64(), [1.5, 2.5], pa.string()),
        (pa.float32(), [1.5, 2.5], MONEY),
        (pa.int32(), [1, 2**31 - 1], pa.decimal128(5, 2)),
        (pa.date32(), [date(2024, 1, 1), date(1582, 10, 14)], pa.string()),
        (pa.decimal128(18, 8), [Decimal(1), Decimal(0)], pa.string()),
        (pa.string(), ["2024-01-01", "2024-01-02"], pa.date32()),
        (pa.list_(pa.float64()), [[1.5], [2.5]], pa.list_(pa.string())),
    ],
)
def test_what_hudi_makes_of_a_value_is_not_guessed(
    tmp_path: Path, kind: str, of: pa.DataType, values: list[Any], to: pa.DataType
) -> None:
    table = changed(tmp_path / "t", kind, of, values, to)
    plain = [each.value_type if pa.types.is_list(each) else each for each in (of, to)]
    said = re.escape(f"Column 'x' was {plain[0]} and is {plain[1]} today, ") + ".*: leave the column out, or let Hudi"
    with pytest.raises(UnsupportedTableError, match=said):
        table.scan().to_arrow()
    assert table.scan(["id"]).to_arrow()["id"].to_pylist() == ["k0", "k1"]


def test_what_hudi_would_never_change_so_is_damage(tmp_path: Path) -> None:
    table = changed(tmp_path / "t", "CopyOnWrite", pa.string(), ["a", "b"], pa.int32())
    with pytest.raises(CorruptTableError, match="does not fit the table's schema"):
        table.scan().to_arrow()
