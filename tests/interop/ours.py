"""Our side of the interop tests, and what both sides must agree on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from hudi_table.api import open_table
from tests.support import hudi_rs
from tests.support.hudi_oracle import HudiOracle
from tests.support.rows import ALL_META, META, assert_same_rows

Expected = pa.Table | Iterable[Mapping[str, Any]]


def read(base: Path | str, *, meta: bool = False) -> pa.Table:
    """The table's rows as we read them; `meta` adds the meta columns that mean the same in every engine."""
    found = open_table(str(base)).scan(meta=meta).to_arrow()
    return found.select([name for name in found.column_names if name not in ALL_META or name in META])


def assert_all_read(base: Path, oracle: HudiOracle, expected: Any, *, key: tuple[str, ...] = ("id",)) -> None:
    """We, hudi-rs and `oracle` read exactly the `expected` rows, and give them the same keys, partitions and times."""
    mine = read(base, meta=True)
    data = [name for name in mine.column_names if name not in META]
    assert_same_rows(mine.select(data), expected, key=key, of="ours")
    assert_same_rows(oracle.read(base), mine, key=key, columns=mine.column_names, of=repr(oracle))
    assert_same_rows(hudi_rs.read(base), mine, key=key, columns=mine.column_names, of="hudi-rs")
