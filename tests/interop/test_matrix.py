"""Our tables, after each operation of ours: every engine reads them, each Hudi upserts on them, and
we go on from there.

What a foreign writer is told is the operation and the table's name alone
(docs/reference/compatibility.md).
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from tests.interop import ours
from tests.interop.conftest import Hudis
from tests.interop.model import Model, rows
from tests.support.hudi_oracle import HudiOracle

pytestmark = [pytest.mark.interop, pytest.mark.by_turns]

# The rows that each operation is given on a table that holds 0 to 19, of which 10 to 19 were written twice.
OPERATIONS = {
    "insert": range(20, 30),
    "upsert": range(15, 25),
    "delete": range(0, 20, 3),
    "bulk_insert": range(20, 30),
    "insert_overwrite": range(0, 30, 3),
    "insert_overwrite_table": range(40, 50),
    "delete_partition": range(1, 2),
}


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("partitioned", [True, False], ids=["partitioned", "flat"])
@pytest.mark.parametrize("index", ["bucket", "simple"])
def test_every_engine_reads_our_table_and_hudi_writes_on_it(
    hudis: Hudis, tmp_path: Path, index: str, partitioned: bool, operation: str
) -> None:
    base, model = tmp_path / "table", Model(partitioned=partitioned)
    ours.create(base, index=index, partitioned=partitioned)
    for step, numbers, version in (
        ("insert", range(20), 1),
        ("upsert", range(10, 20), 2),
        (operation, OPERATIONS[operation], 3),
    ):
        data = rows(numbers, version)
        ours.write(base, step, data)
        model.apply(step, data)
    # Where Hudi builds its metadata table, our next write must drop it: a quarter of the cases, since it is slow to build.
    options = {"hoodie.metadata.enable": str(partitioned and index == "bucket").lower()}

    def go_on(oracle: HudiOracle, copy: Path) -> None:
        expected = model.copy()
        ours.assert_all_read(copy, oracle, expected.rows())
        upsert(oracle, copy, data := rows([5, 6, 11, 60, 61, 62], 4), **options)
        expected.apply("upsert", data)
        ours.assert_all_read(copy, oracle, expected.rows())
        ours.write(copy, "upsert", data := rows([6, 7, 62, 63], 5))
        expected.apply("upsert", data)
        ours.assert_all_read(copy, oracle, expected.rows())

    hudis.each_on_a_copy(base, go_on)


def upsert(oracle: HudiOracle, base: Path, data: pa.Table, **options: str) -> None:
    told = {"hoodie.table.name": "table", "hoodie.datasource.write.operation": "upsert"}
    oracle.write(base, data, told | options)
