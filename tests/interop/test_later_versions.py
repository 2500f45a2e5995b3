"""Our tables of versions 8 and 9, after each operation of ours: we, hudi-rs and Hudi 1.1.1 read
them, Hudi writes on them, and we go on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hudi_table.api import open_table
from hudi_table.metadata.validate import differences
from tests.interop import ours
from tests.interop.conftest import Hudis
from tests.interop.model import Model, rows
from tests.interop.test_consistent import HASHED
from tests.interop.test_matrix import OPERATIONS
from tests.support import golden
from tests.support.hudi_oracle import HudiOracle
from tests.support.later import DOUBLED, continued, expected_after, index_options, keyed, upserted
from tests.support.rows import META, assert_same_rows, canonical

pytestmark = [pytest.mark.interop]

ORACLE = "1.1.1"
LOGS = {"hoodie.datasource.write.table.type": "MERGE_ON_READ"}
COMPACTING = {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "1"}
INDEX_OPTIONS = {
    "bucket": {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "3"},
    "consistent": HASHED,
    "simple": {"hoodie.index.type": "SIMPLE"},
    "global": {"hoodie.index.type": "GLOBAL_SIMPLE"},
    "bloom": {"hoodie.index.type": "BLOOM"},
    "global-bloom": {"hoodie.index.type": "GLOBAL_BLOOM"},
    "record": {
        "hoodie.index.type": "RECORD_INDEX",
        "hoodie.metadata.record.index.enable": "true",
        "hoodie.metadata.global.record.level.index.enable": "true",
    },
}
STEPS = (("insert", range(20), 1), ("upsert", range(10, 20), 2))
COPY_ON_WRITE = [("bucket", operation) for operation in OPERATIONS] + [
    ("simple", "upsert"), ("global", "upsert"), ("bloom", "delete"), ("global-bloom", "delete"), ("simple", "insert_overwrite"),
    ("record", "upsert"), ("record", "delete"), ("record", "insert_overwrite"),
]  # fmt: skip
MERGE_ON_READ = [
    ("bucket", "upsert"), ("bucket", "delete"), ("bucket", "insert_overwrite"), ("simple", "insert"), ("simple", "delete"),
    ("bloom", "upsert"), ("bucket", "delete_partition"), ("simple", "bulk_insert"),
    ("record", "upsert"), ("record", "insert"),
]  # fmt: skip


def upsert(oracle: HudiOracle, base: Path, data: pa.Table, version: int, index: str, **options: str) -> None:
    told = {
        "hoodie.table.name": "table",
        "hoodie.datasource.write.operation": "upsert",
        "hoodie.write.table.version": str(version),
    }
    oracle.write(base, data, told | INDEX_OPTIONS[index] | options)


def go_on(base: Path, data: pa.Table, *, keeps: bool) -> None:
    """One upsert of ours, which keeps the metadata table that Hudi has built or kept, if it has."""
    before = set(open_table(base).context.config.metadata_partitions)
    assert ("files" in before) == keeps
    ours.write(base, "upsert", data)
    table = open_table(base)
    assert set(table.context.config.metadata_partitions) == before
    assert differences(table.context) == []


def written(base: Path, version: int, index: str, operation: str, *, partitioned: bool, **more: Any) -> Model:
    """A table of ours after two writes and the operation; and what it holds."""
    model = Model(partitioned=partitioned)
    ours.create(base, index=index, partitioned=partitioned, version=version, **more)
    for step, numbers, number in (*STEPS, (operation, OPERATIONS[operation], 3)):
        data = rows(numbers, number)
        ours.write(base, step, data)
        model.apply(step, data)
    return model


@pytest.mark.parametrize(("index", "operation"), COPY_ON_WRITE)
@pytest.mark.parametrize("version", [8, 9])
def test_hudi_reads_and_writes_on_our_copy_on_write_table(
    hudis: Hudis, tmp_path: Path, version: int, index: str, operation: str
) -> None:
    copy_on_write_goes_on(hudis[ORACLE], tmp_path / "table", version, index, operation)


def copy_on_write_goes_on(oracle: HudiOracle, base: Path, version: int, index: str, operation: str) -> None:
    """A table of ours, read and written on by Hudi, and by us again."""
    partitioned = operation != "delete" or index == "bloom"
    model = written(base, version, index, operation, partitioned=partitioned)
    ours.assert_all_read(base, oracle, model.rows())
    # Where Hudi builds or keeps a metadata table, our next write must keep it.
    builds = operation in ("upsert", "delete") or index == "record"
    metadata = str(builds).lower()
    upsert(
        oracle, base, data := rows([5, 6, 11, 60, 61, 62], 4), version, index, **{"hoodie.metadata.enable": metadata}
    )
    model.apply("upsert", data)
    ours.assert_all_read(base, oracle, model.rows())
    go_on(base, data := rows([6, 7, 62, 63], 5), keeps=builds)
    model.apply("upsert", data)
    ours.assert_all_read(base, oracle, model.rows())
    assert open_table(base).context.config.version == version


@pytest.mark.parametrize(("index", "operation"), MERGE_ON_READ)
@pytest.mark.parametrize("version", [8, 9])
def test_hudi_reads_compacts_and_writes_on_our_merge_on_read_table(
    hudis: Hudis, tmp_path: Path, version: int, index: str, operation: str
) -> None:
    merge_on_read_goes_on(hudis[ORACLE], tmp_path / "table", version, index, operation)


def merge_on_read_goes_on(oracle: HudiOracle, base: Path, version: int, index: str, operation: str) -> None:
    """A table of ours, read, compacted and written on by Hudi, and by us again."""
    model = written(base, version, index, operation, partitioned=operation != "insert", type="MergeOnRead")
    ours.write(base, "upsert", data := rows(range(5, 12), 4))
    model.apply("upsert", data)
    ours.assert_all_read(base, oracle, model.rows())
    optimised = open_table(base).scan(query="read_optimized", meta=True).to_arrow()
    seen = oracle.read(base, hoodie__datasource__query__type="read_optimized")
    assert_same_rows(seen, optimised, columns=["id", *META], of="Hudi, read-optimised")
    builds = operation == "upsert" or index == "record"
    metadata = {"hoodie.metadata.enable": str(builds).lower()}
    upsert(oracle, base, data := rows([5, 6, 11, 60, 61, 62], 5), version, index, **LOGS, **COMPACTING, **metadata)
    model.apply("upsert", data)
    left = [row["file_id"] for row in open_table(base).files().to_pylist() if row["latest"] and row["log_files"]]
    assert not left
    ours.assert_all_read(base, oracle, model.rows())
    go_on(base, data := rows([6, 7, 62, 63], 6), keeps=builds)
    model.apply("upsert", data)
    ours.assert_all_read(base, oracle, model.rows())
    assert open_table(base).context.config.version == version


@pytest.mark.filterwarnings("ignore::hudi_table.metadata.lifecycle.MetadataDroppedWarning")
@pytest.mark.parametrize("name", golden.LATER)
def test_hudi_reads_and_writes_on_its_own_table_that_we_have_continued(hudis: Hudis, tmp_path: Path, name: str) -> None:
    golden_table_goes_on(hudis[ORACLE], golden.unpack(name, tmp_path).base, name)


def golden_table_goes_on(oracle: HudiOracle, base: Path, name: str) -> None:
    """A golden table, continued by us, read and written on by Hudi, and read by us again."""
    expected = expected_after(base)
    continued(base)
    config = open_table(base).context.config
    mine = ours.read(base, meta=True)
    assert keyed(mine.drop_columns(list(META)), config) == expected
    # Not by keys: a table may hold one twice.
    assert canonical(oracle.read(base), columns=mine.column_names) == canonical(mine, columns=mine.column_names), repr(
        oracle
    )
    twice = [key[-1] for key in DOUBLED.get(name, ())]
    some = mine.filter(pc.is_in(mine["id"], value_set=pa.array(twice))) if twice else mine
    again = some.slice(0, 1).drop_columns(list(META))
    again = again.set_column(again.schema.get_field_index("name"), "name", pa.array(["theirs"]))
    told = {
        "hoodie.table.name": config.name,
        "hoodie.datasource.write.operation": "upsert",
        "hoodie.write.table.version": str(config.version),
        "hoodie.write.auto.upgrade": "false",
    }
    # 1.0.2 wrote the plain value of the one key field, 1.1.1 does only if it is told.
    raw = {"hoodie.write.complex.keygen.new.encoding": "true", "hoodie.write.complex.keygen.validation.enable": "false"}
    oracle.write(base, again, told | index_options(name) | (raw if name == "v8_ckey1" else {}))
    found = ours.read(base, meta=True)
    assert keyed(found.drop_columns(list(META)), config) == upserted(expected, again, config)
    assert canonical(oracle.read(base), columns=found.column_names) == canonical(found, columns=found.column_names), (
        repr(oracle)
    )
