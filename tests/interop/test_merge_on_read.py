"""Our merge-on-read tables: every engine reads them, each Hudi upserts and compacts them, and we go
on from there."""

from __future__ import annotations

from pathlib import Path

import pytest

from hudi_table.api import open_table
from tests.interop import ours
from tests.interop.conftest import Hudis
from tests.interop.model import Model, rows
from tests.interop.test_matrix import upsert
from tests.support.hudi_oracle import HudiOracle
from tests.support.rows import META, assert_same_rows

pytestmark = [pytest.mark.interop, pytest.mark.by_turns]

LOGS = {"hoodie.datasource.write.table.type": "MERGE_ON_READ", "hoodie.metadata.enable": "false"}
"""What a Hudi writer is told of a merge-on-read table of ours, beside its name."""
COMPACTING = {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "1"}


@pytest.mark.parametrize("operation", ["upsert", "delete", "insert", "insert_overwrite"])
@pytest.mark.parametrize("partitioned", [True, False], ids=["partitioned", "flat"])
@pytest.mark.parametrize("index", ["bucket", "simple"])
def test_every_engine_reads_our_logs_and_hudi_writes_and_compacts_them(
    hudis: Hudis, tmp_path: Path, index: str, partitioned: bool, operation: str
) -> None:
    base, model = tmp_path / "table", Model(partitioned=partitioned)
    ours.create(base, index=index, partitioned=partitioned, type="MergeOnRead")
    numbers = {"upsert": range(15, 25), "delete": range(0, 20, 3), "insert": range(20, 30)}.get(operation, range(9))
    for step, chosen, version in (
        ("insert", range(20), 1),
        ("upsert", range(10, 20), 2),
        (operation, numbers, 3),
        ("upsert", range(5, 12), 4),
    ):
        data = rows(chosen, version)
        ours.write(base, step, data)
        model.apply(step, data)

    def go_on(oracle: HudiOracle, copy: Path) -> None:
        expected = model.copy()
        ours.assert_all_read(copy, oracle, expected.rows())
        optimised = open_table(str(copy)).scan(query="read_optimized", meta=True).to_arrow()
        seen = oracle.read(copy, hoodie__datasource__query__type="read_optimized")
        assert_same_rows(seen, optimised, columns=["id", *META], of=f"{oracle!r}, read-optimised")
        upsert(oracle, copy, data := rows([5, 6, 11, 60, 61, 62], 5), **LOGS, **COMPACTING)
        expected.apply("upsert", data)
        left = [
            row["file_id"] for row in open_table(str(copy)).files().to_pylist() if row["latest"] and row["log_files"]
        ]
        assert not left, f"{oracle!r} has not compacted {left}"
        ours.assert_all_read(copy, oracle, expected.rows())
        ours.write(copy, "upsert", data := rows([6, 7, 62, 63], 6))
        expected.apply("upsert", data)
        ours.assert_all_read(copy, oracle, expected.rows())

    hudis.each_on_a_copy(base, go_on)
