"""Tables that were imported, read and written on by Apache Hudi and read by hudi-rs: their first
rows come by a commit that replaces nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import write_deltalake

from hudi_table.importing import import_table
from tests.interop import ours
from tests.interop.conftest import Hudis
from tests.interop.model import rows
from tests.support import hudi_rs
from tests.support.hudi_oracle import HudiOracle
from tests.support.rows import assert_same_rows, by_key

pytestmark = pytest.mark.interop

KEY = ("id",)
WRITE = "hoodie.datasource.write."


@pytest.mark.by_turns
@pytest.mark.parametrize("kind", ["CopyOnWrite", "MergeOnRead"])
def test_hudi_reads_and_continues_an_imported_table(hudis: Hudis, tmp_path: Path, kind: str) -> None:
    base = tmp_path / "t"
    write_deltalake(tmp_path / "delta", first := rows(range(6), 1), partition_by=["city"])
    import_table(base, tmp_path / "delta", record_key="id", ordering_fields="ts", type=kind, version=6)  # type: ignore[arg-type]
    columns = first.schema.names
    told = {
        "hoodie.table.name": "t",
        f"{WRITE}recordkey.field": "id",
        f"{WRITE}partitionpath.field": "city",
        f"{WRITE}precombine.field": "ts",
        f"{WRITE}operation": "upsert",
        f"{WRITE}table.type": "COPY_ON_WRITE" if kind == "CopyOnWrite" else "MERGE_ON_READ",
        "hoodie.compact.inline": "false",
    }
    assert_same_rows(hudi_rs.read(base), first.to_pylist(), key=KEY, columns=columns, of="hudi-rs")

    def check(oracle: HudiOracle, copy: Path) -> None:
        assert_same_rows(oracle.read(copy), first.to_pylist(), key=KEY, columns=columns, of=repr(oracle))
        oracle.write(copy, more := rows(range(4, 9), 2), told)
        expected = (by_key(first, KEY) | by_key(more, KEY)).values()
        assert_same_rows(oracle.read(copy), expected, key=KEY, columns=columns, of=repr(oracle))
        assert_same_rows(ours.read(copy), expected, key=KEY, of=f"ours after {oracle!r}")

    hudis.each_on_a_copy(base, check)
