"""Tables whose required columns our writes have made optional: each Hudi reads them, rewrites and
compacts what was written before, and we go on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_table.api import open_table
from tests.interop import ours
from tests.interop.conftest import Hudis
from tests.interop.test_matrix import upsert
from tests.interop.test_merge_on_read import COMPACTING, LOGS
from tests.support.hudi_oracle import HudiOracle

pytestmark = [pytest.mark.interop, pytest.mark.by_turns]

SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("ts", pa.int64(), nullable=False),
        pa.field("n", pa.int64(), nullable=False),
        ("place", pa.struct([pa.field("city", pa.string(), nullable=False), ("zip", pa.int32())])),
    ]
)
LESS = pa.schema([*list(SCHEMA)[:2], ("place", pa.struct([("zip", pa.int32())]))])


@pytest.mark.parametrize("kind", ["CopyOnWrite", "MergeOnRead"])
def test_hudi_reads_and_rewrites_what_was_required_and_is_no_longer(hudis: Hudis, tmp_path: Path, kind: str) -> None:
    base = tmp_path / "table"
    ours.create(base, index="bucket", partitioned=False, schema=SCHEMA, type=kind)
    whole: list[dict[str, Any]] = [{"id": key, "ts": 1, "n": 1, "place": {"city": "x", "zip": 1}} for key in "abc"]
    ours.write(base, "insert", pa.Table.from_pylist(whole, SCHEMA))
    less: list[dict[str, Any]] = [{"id": key, "ts": 2, "place": {"zip": 2}} for key in "bd"]
    open_table(str(base)).upsert(pa.Table.from_pylist(less, LESS), options={"hoodie.lakeops.schema.evolve": "true"})
    loose = open_table(str(base)).schema()
    assert loose is not None
    held = {row["id"]: row for row in whole}
    held |= {row["id"]: {**row, "n": None, "place": {"city": None, "zip": 2}} for row in less}

    def go_on(oracle: HudiOracle, copy: Path) -> None:
        ours.assert_all_read(copy, oracle, pa.Table.from_pylist(list(held.values()), loose))
        new: list[dict[str, Any]] = [
            {"id": "a", "ts": 3, "n": None, "place": None},
            {"id": "e", "ts": 3, "n": 3, "place": None},
        ]
        told = {**LOGS, **COMPACTING} if kind == "MergeOnRead" else {}
        upsert(oracle, copy, pa.Table.from_pylist(new, loose), **told)
        after = {**held, **{row["id"]: row for row in new}}
        ours.assert_all_read(copy, oracle, pa.Table.from_pylist(list(after.values()), loose))

    hudis.each_on_a_copy(base, go_on)
