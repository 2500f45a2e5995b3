"""Pre-commit validators: the same options let the same writes pass with Apache Hudi and with us."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_table.api import open_table, write_hudi
from hudi_table.errors import InvalidDataError
from hudi_table.services.validating.queries import Kind
from tests.interop import ours
from tests.interop.conftest import Hudis
from tests.interop.model import rows
from tests.support.hudi_oracle import HudiFailedError
from tests.support.rows import assert_same_rows

pytestmark = pytest.mark.interop

OPTIONS = {
    "hoodie.table.name": "ours",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.metadata.enable": "false",
}
FIRST, KNOWN, NEW = rows(range(20), 1), rows(range(5), 2), rows(range(18, 23), 2)
COUNT = "select count(*) from <TABLE_NAME>"
CASES = {
    "equality, of rows": (Kind.EQUALITY, COUNT),
    "equality, of values": (Kind.EQUALITY, "select id, max(ts) from <TABLE_NAME> group by id"),
    "inequality, of rows": (Kind.INEQUALITY, COUNT),
    "a value that is": (Kind.SINGLE_VALUE, f"{COUNT} where id is null#0"),
    "a value that is not": (Kind.SINGLE_VALUE, f"{COUNT} where id is null#1"),
    "a value of the changed partitions": (Kind.SINGLE_VALUE, "select count(distinct city) from <TABLE_NAME>#2"),
}


def passes(write: Callable[[], object], failure: type[Exception], why: str) -> bool:
    try:
        write()
    except failure as error:
        if why not in str(error):
            raise
        return False
    return True


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("data", [KNOWN, NEW], ids=["known keys", "new keys"])
def test_the_same_writes_pass(hudis: Hudis, tmp_path: Path, case: str, data: pa.Table) -> None:
    kind, query = CASES[case]
    asked = {
        "hoodie.precommit.validators": f"org.apache.hudi.client.validator.{kind.value}",
        kind.option: query,
    }
    oracle = hudis["1.1.1"]
    base, theirs = tmp_path / "ours", tmp_path / "theirs"
    ours.create(base, index="simple", partitioned=True)
    write_hudi(base, FIRST, operation="upsert")
    shutil.copytree(base, theirs)
    passed = passes(lambda: write_hudi(base, data, operation="upsert", options=asked), InvalidDataError, "did not pass")
    said = "At least one pre-commit validation failed"
    assert passed is passes(lambda: oracle.write(theirs, data, OPTIONS | asked), HudiFailedError, said)
    assert_same_rows(open_table(str(base)).scan().to_arrow(), oracle.read(theirs))
