"""A folder of Parquet that is bootstrapped in place, and what its table has to hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_table import (
    HudiTable,
)
from hudi_table.model.names import is_skeleton
from hudi_table.model.service.findings import Severity

TYPES = ("CopyOnWrite", "MergeOnRead")
SCHEMA = pa.schema([("id", pa.string()), ("n", pa.int64()), ("text", pa.string())])
SORTED = {"hoodie.clustering.plan.strategy.sort.columns": "id"}


def part(first: int, stop: int) -> pa.Table:
    numbers = range(first, stop)
    return pa.table([[f"k{i:02}" for i in numbers], list(numbers), [f"text {i}" for i in numbers]], schema=SCHEMA)


def folder(base: Path) -> Path:
    """Twelve rows in two partitions, files of several row groups; the column of the folders is in
    none."""
    for folder, first in (("day=2024-01-01", 0), ("day=2024-01-02", 6)):
        (base / "in" / folder).mkdir(parents=True)
        for number in range(2):
            start = first + 3 * number
            pq.write_table(part(start, start + 3), base / "in" / folder / f"{number}.parquet", row_group_size=2)
    return base / "in"


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def day(number: int) -> Any:
    return pa.scalar(f"2024-01-0{1 + number // 6}").cast(pa.date32()).as_py()


def changed(*numbers: int, text: str = "new") -> pa.Table:
    rows = [{"id": f"k{i:02}", "n": 100 + i, "text": text, "day": day(i)} for i in numbers]
    return pa.Table.from_pylist(rows, schema=pa.schema([*SCHEMA, ("day", pa.date32())]))


def as_written(*but: int) -> dict[str, tuple[Any, ...]]:
    return {f"k{i:02}": (f"k{i:02}", i, f"text {i}", day(i)) for i in range(12) if i not in but}


def rows_of(table: HudiTable, **how: Any) -> dict[str, tuple[Any, ...]]:
    found = [tuple(row.values()) for row in table.scan(["id", "n", "text", "day"], **how).to_arrow().to_pylist()]
    assert len({row[0] for row in found}) == len(found)
    return {row[0]: row for row in found}


def with_changes(*numbers: int, text: str = "new") -> dict[str, tuple[Any, ...]]:
    return {row["id"]: tuple(row.values()) for row in changed(*numbers, text=text).to_pylist()}


def skeletons(table: HudiTable) -> list[str]:
    return [path for path in table.files()["base_file"].to_pylist() if path and is_skeleton(path)]


def no_errors(table: HudiTable) -> bool:
    return not [found for found in table.doctor(keys=True, data=True) if found.severity is Severity.ERROR]
