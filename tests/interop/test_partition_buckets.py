"""Numbers of buckets by partition across engines: Hudi 1.1.1 upserts by those that we store, and we
by those that it was told. Hudi 0.15.0 does not know them: it reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from hudi_table.api import open_table
from hudi_table.errors import CorruptTableError, InvalidOptionError
from hudi_table.model.names import bucket_of_file_id
from tests.interop import ours
from tests.interop.conftest import Hudis
from tests.interop.model import Model, rows
from tests.interop.test_clustering import go_on
from tests.interop.test_matrix import upsert
from tests.support.hudi_oracle import HudiOracle
from tests.support.written import slices

pytestmark = pytest.mark.interop

COUNTS = {"nyc": 5, "par": 2, "sf": 5}
TOLD = {
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": "2",
    "hoodie.bucket.index.partition.expressions": "^(sf|ny),5",
    "hoodie.bucket.index.hash.field": "id",
}
STEPS = (("upsert", range(60), 1), ("upsert", range(30, 90), 2), ("delete", range(0, 60, 7), 3))


def assert_right(base: Path, oracle: HudiOracle, model: Model) -> None:
    ours.assert_all_read(base, oracle, model.rows())
    found: dict[str, set[int | None]] = {}
    for item in slices(open_table(str(base))):
        found.setdefault(item.partition, set()).add(bucket_of_file_id(item.file_id))
    assert {name: len(numbers) for name, numbers in found.items()} == COUNTS
    assert open_table(str(base)).doctor(keys=True) == ()


def test_hudi_1_upserts_by_the_numbers_that_we_store_and_every_engine_reads(hudis: Hudis, tmp_path: Path) -> None:
    base, model = tmp_path / "table", Model(partitioned=True)
    ours.create(base, index="by partition", partitioned=True)
    go_on(base, model, STEPS)

    def each(oracle: HudiOracle, copy: Path) -> None:
        expected = model.copy()
        assert_right(copy, oracle, expected)
        if not oracle.is_1x:
            return
        upsert(oracle, copy, data := rows([6, 7, 11, 33, 60, 61, 95, 96, 97], 8), **{"hoodie.metadata.enable": "false"})
        expected.apply("upsert", data)
        assert_right(copy, oracle, expected)
        go_on(copy, expected, (("upsert", range(5, 104, 9), 9),))
        assert_right(copy, oracle, expected)

    hudis.each_on_a_copy(base, each)


def test_we_upsert_by_the_numbers_that_hudi_1_was_told(hudis: Hudis, tmp_path: Path) -> None:
    def each(oracle: HudiOracle) -> None:
        if not oracle.is_1x:
            return
        base, model = tmp_path / "table", Model(partitioned=True)
        told = {
            "hoodie.table.name": "made",
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.datasource.write.partitionpath.field": "city",
            "hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload",
            "hoodie.metadata.enable": "false",
            "hoodie.datasource.write.operation": "upsert",
        }
        oracle.write(base, data := rows(range(60), 1), told | TOLD)
        model.apply("upsert", data)
        with pytest.raises((InvalidOptionError, CorruptTableError)):
            ours.write(base, "upsert", data, options=TOLD | {"hoodie.bucket.index.partition.expressions": "^(sf|ny),3"})
        ours.write(base, "upsert", data := rows(range(30, 90), 2), options=TOLD)
        model.apply("upsert", data)
        oracle.write(base, data := rows(range(80, 100), 3), told | TOLD)
        model.apply("upsert", data)
        ours.assert_all_read(base, oracle, model.rows())

    hudis.each(each)
