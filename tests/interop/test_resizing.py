"""Resizing across engines: Hudi reads and upserts by the new number of buckets, refuses to write
beside our plan, and does not carry it out as a clustering."""

from __future__ import annotations

from pathlib import Path

import pytest

from hudi_table.api import open_table
from tests.interop import ours
from tests.interop.conftest import Hudis
from tests.interop.model import Model, rows
from tests.interop.test_clustering import NO_ROW_WRITER, STEPS, go_on
from tests.interop.test_matrix import upsert
from tests.interop.test_merge_on_read import LOGS
from tests.support.hudi_oracle import HudiOracle

pytestmark = [pytest.mark.interop, pytest.mark.by_turns]

TABLES = [("CopyOnWrite", True), ("MergeOnRead", False)]
tables = pytest.mark.parametrize(("type_", "partitioned"), TABLES, ids=["copy-partitioned", "logs-flat"])
BUCKETS = "hoodie.bucket.index.num.buckets"
HASHED = "hoodie.bucket.index.hash.field=id,hoodie.datasource.write.recordkey.field=id"


def written(base: Path, type_: str, partitioned: bool) -> Model:
    model = Model(partitioned=partitioned)
    ours.create(base, index="bucket", partitioned=partitioned, type=type_)
    go_on(base, model, STEPS)
    return model


def told(base: Path) -> dict[str, str]:
    return LOGS | {"hoodie.datasource.write.table.type": open_table(str(base)).context.config.type.hudi_name}


@pytest.mark.parametrize("number", [7, 2])
@tables
def test_every_engine_reads_and_goes_on_with_the_new_buckets(
    hudis: Hudis, tmp_path: Path, type_: str, partitioned: bool, number: int
) -> None:
    base = tmp_path / "table"
    model = written(base, type_, partitioned)
    open_table(str(base)).resize_buckets(number)

    def each(oracle: HudiOracle, copy: Path) -> None:
        expected = model.copy()
        ours.assert_all_read(copy, oracle, expected.rows())
        index = {"hoodie.index.type": "BUCKET", BUCKETS: str(number)}
        with pytest.raises(Exception, match="Config conflict"):
            upsert(oracle, copy, rows([6], 8), **(told(copy) | index | {BUCKETS: "3"}))
        upsert(oracle, copy, data := rows([6, 7, 11, 33, 60, 61], 8), **(told(copy) | index))
        expected.apply("upsert", data)
        ours.assert_all_read(copy, oracle, expected.rows())
        go_on(copy, expected, (("upsert", range(5, 64, 9), 9), ("delete", range(6, 8), 9)))
        ours.assert_all_read(copy, oracle, expected.rows())
        assert open_table(str(copy)).doctor(keys=True) == ()

    hudis.each_on_a_copy(base, each)


@tables
def test_hudi_reads_beside_our_plan_and_can_neither_write_nor_execute_it(
    hudis: Hudis, tmp_path: Path, type_: str, partitioned: bool
) -> None:
    base = tmp_path / "table"
    model = written(base, type_, partitioned)

    def each(oracle: HudiOracle, copy: Path) -> None:
        expected, mine = model.copy(), open_table(str(copy))
        plan = mine.services.resize(7).schedule()
        assert plan is not None
        ours.assert_all_read(copy, oracle, expected.rows())
        with pytest.raises(Exception, match=r"(?i)clustering"):
            upsert(oracle, copy, rows([6, 7, 11], 8), **(told(copy) | {"hoodie.index.type": "BUCKET", BUCKETS: "3"}))
        ours.assert_all_read(copy, oracle, expected.rows())
        for options in (NO_ROW_WRITER, f"{NO_ROW_WRITER},hoodie.index.type=SIMPLE"):
            with pytest.raises(Exception, match=r"not compatible with table layout|_lakeops_this_is_a_resize"):
                oracle.sql(f"CALL run_clustering(path => '{copy}', op => 'execute', options => '{options},{HASHED}')")
            ours.assert_all_read(copy, oracle, expected.rows())
        done = open_table(str(copy)).services.resize.execute(plan)
        assert done.figures["rowsWritten"] == len(expected.rows())
        ours.assert_all_read(copy, oracle, expected.rows())

    hudis.each_on_a_copy(base, each)
