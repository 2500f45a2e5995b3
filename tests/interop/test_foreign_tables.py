"""Tables that Apache Hudi made, with each operation that it has: we read what it reads, after every
one of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interop import ours
from tests.interop.conftest import Hudis
from tests.interop.model import Model, rows
from tests.support.hudi_oracle import HudiOracle
from tests.support.scale import scaled

pytestmark = [pytest.mark.interop, pytest.mark.by_turns]

STEPS = (
    ("bulk_insert", range(12), 1),
    ("insert", range(12, 20), 2),
    ("upsert", range(6, 24), 3),
    ("delete", range(0, 24, 5), 4),
    ("insert_overwrite", range(30, 40, 3), 5),
    ("upsert", range(30, 45), 6),
    ("delete_partition", range(1, 2), 7),
    ("insert_overwrite_table", range(50, 60), 8),
    ("delete", range(50, 54), 9),
)


def layout(index: str, *, partitioned: bool) -> dict[str, str]:
    """Options that create the table in Hudi."""
    options = {
        "hoodie.table.name": "made",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.partitionpath.field": "city" if partitioned else "",
        "hoodie.index.type": index,
        "hoodie.metadata.enable": str(index == "BUCKET").lower(),
    }
    if not partitioned:
        options["hoodie.datasource.write.keygenerator.class"] = "org.apache.hudi.keygen.NonpartitionedKeyGenerator"
    if index == "BUCKET":
        options |= {"hoodie.bucket.index.num.buckets": "3"}
    return options


LAYOUTS = [("BUCKET", True), ("SIMPLE", False), ("SIMPLE", True), ("BUCKET", False)]


@pytest.mark.parametrize(("index", "partitioned"), LAYOUTS[: scaled(2)])
def test_we_read_every_operation_of_hudi(hudis: Hudis, tmp_path: Path, index: str, partitioned: bool) -> None:
    options = layout(index, partitioned=partitioned)

    def drive(oracle: HudiOracle) -> None:
        base, model = tmp_path / oracle.version, Model(partitioned=partitioned)
        for operation, numbers, version in STEPS:
            if operation == "delete_partition" and not partitioned:
                continue
            data = rows(numbers, version)
            oracle.write(base, data, options | {"hoodie.datasource.write.operation": operation})
            model.apply(operation, data)
            try:
                ours.assert_all_read(base, oracle, model.rows())
            except BaseException as error:
                error.add_note(f"after {operation} of {oracle}")
                raise

    hudis.each(drive)
