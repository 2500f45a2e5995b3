"""The metadata table across engines: one of Hudi's that we keep, one of ours that Hudi keeps, each
read by both versions of Hudi.

After each step it must list exactly what the folders hold; Hudi's own comparison (the procedure
`validate_metadata_table_files`) must find no difference, and both versions must read the same rows
with it and without. Its file index does read it: a listing that lacks a file loses its rows there.
The validator of Hudi's utilities is not part of the Spark bundle, and is not run.
"""

from __future__ import annotations

import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_table.api import HudiTable, open_table
from hudi_table.metadata.table import read_partitions
from hudi_table.metadata.validate import differences
from hudi_table.services.metadata.upkeep import keep_metadata
from tests.interop import ours
from tests.interop.conftest import Hudis
from tests.interop.model import Model, rows
from tests.support.hudi_oracle import HudiFailedError, HudiOracle
from tests.support.rows import assert_same_rows

pytestmark = [pytest.mark.interop, pytest.mark.by_turns]

ENABLE = {"hoodie.metadata.enable": "true"}
SIMPLE = {"hoodie.index.type": "SIMPLE"}
INDEXED = {
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.index.bloom.filter.enable": "true",
}
KINDS = {"copy-on-write": "COPY_ON_WRITE", "merge-on-read": "MERGE_ON_READ"}
kinds = pytest.mark.parametrize("kind", KINDS)


def written_by_hudi(oracle: HudiOracle, base: Path, kind: str, operation: str, data: pa.Table, **more: str) -> None:
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.table.type": KINDS[kind],
        "hoodie.datasource.write.operation": operation,
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.partitionpath.field": "city",
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.SimpleKeyGenerator",
        # 1.1.1 would add statistics of columns.
        "hoodie.metadata.index.column.stats.enable": "false",
        "hoodie.compact.inline": "false",
        **ENABLE,
        **SIMPLE,
        **more,
    }
    oracle.write(base, data, options)


def assert_whole(base: Path, model: Model, hudis: Hudis, where: str) -> None:
    """The metadata table is there, agrees, and everyone reads the model's rows, with it and
    without."""
    ctx = open_table(str(base)).context
    assert "files" in read_partitions(ctx).ready, where
    assert differences(ctx) == [], where
    expected = model.rows()
    assert_same_rows(ours.read(base), expected, of=f"ours, {where}")

    def theirs(oracle: HudiOracle) -> None:
        for enable in ("true", "false"):
            found = oracle.read(base, hoodie__metadata__enable=enable)
            assert_same_rows(found, expected, of=f"Hudi {oracle.version}, metadata {enable}, {where}")

    hudis.each(theirs)


def differing(oracle: HudiOracle, base: Path) -> list[dict[str, Any]]:
    """What Hudi's procedure finds different; and it does look at files."""
    name = f"v{uuid.uuid4().hex[:8]}"
    oracle.run(f"CREATE TABLE {name} USING hudi LOCATION '{base}'")
    # CREATE TABLE of 0.15.0 has written the properties anew, without those that only we know.
    open_table(str(base)).mend()
    try:
        return [
            row
            for row in oracle.sql(f"CALL validate_metadata_table_files(table => '{name}')").to_pylist()
            if not row["is_present_in_fs"] or not row["is_present_in_metadata"]
        ]
    finally:
        oracle.run(f"DROP TABLE {name}")


@kinds
def test_one_that_hudi_built_is_kept_by_us_and_written_on_by_both_versions(kind, tmp_path, hudis: Hudis):
    base, model = tmp_path / "t", Model(partitioned=True)
    for operation, numbers, version in (("insert", range(24), 1), ("upsert", range(6), 2)):
        data = rows(numbers, version)
        written_by_hudi(hudis["0.15.0"], base, kind, operation, data)
        model.apply(operation, data)
    for operation, numbers, version in (
        ("insert", range(24, 30), 3),
        ("upsert", range(3, 28), 4),
        ("delete", range(0, 30, 7), 5),
    ):
        data = rows(numbers, version)
        ours.write(base, operation, data, options=SIMPLE)
        model.apply(operation, data)
        assert_whole(base, model, hudis, f"our {operation}")
    for oracle in hudis.oracles.values():
        assert not differing(oracle, base)

    def on(oracle: HudiOracle, copy: Path) -> None:
        mine = model.copy()
        for number, (operation, numbers) in enumerate((("upsert", range(10, 35)), ("insert", range(40, 44)))):
            data = rows(numbers, 6 + number)
            written_by_hudi(oracle, copy, kind, operation, data)
            mine.apply(operation, data)
        assert differences(open_table(str(copy)).context) == []
        data = rows(range(30, 50), 9)
        ours.write(copy, "upsert", data, options=SIMPLE)
        mine.apply("upsert", data)
        assert differences(open_table(str(copy)).context) == []
        assert "files" in read_partitions(open_table(str(copy)).context).ready
        assert_same_rows(ours.read(copy), mine.rows())
        assert_same_rows(oracle.read(copy, hoodie__metadata__enable="true"), mine.rows())
        assert not differing(oracle, copy)

    hudis.each_on_a_copy(base, on)


@kinds
def test_one_that_we_built_compacted_and_cleaned_is_written_on_by_both_versions(kind, tmp_path, hudis: Hudis):
    base, model = tmp_path / "t", Model(partitioned=True)
    ours.create(
        base,
        index="simple",
        partitioned=True,
        type={"copy-on-write": "CopyOnWrite", "merge-on-read": "MergeOnRead"}[kind],
    )

    def write(operation: str, numbers: range, version: int, **options: str) -> None:
        data = rows(numbers, version)
        ours.write(base, operation, data, options=options)
        model.apply(operation, data)

    write("insert", range(24), 1)
    write("upsert", range(6), 2, **ENABLE)
    assert_whole(base, model, hudis, "built")
    write("upsert", range(3, 28), 3)
    write("delete", range(0, 30, 7), 4)
    keep_metadata(open_table(str(base)).context, 1)
    assert_whole(base, model, hudis, "compacted")
    table: HudiTable = open_table(str(base))
    if kind == "merge-on-read":
        table.compact(force=True)
    write("upsert", range(5, 12), 5)
    table.clean({"hoodie.clean.commits.retained": "1"}, force=True)
    write("insert_overwrite", range(0, 9, 3), 6)
    write("delete_partition", range(1, 2), 7)
    assert_whole(base, model, hudis, "cleaned and replaced")
    for oracle in hudis.oracles.values():
        assert not differing(oracle, base)

    def on(oracle: HudiOracle, copy: Path) -> None:
        mine = model.copy()
        # More deltas than a compaction waits for: Hudi compacts and goes on.
        ours_alone = set(copy.glob(".hoodie/metadata/files/*.hfile"))
        for number in range(4):
            data = rows(range(number, number + 8), 10 + number)
            soon = {"hoodie.metadata.compact.max.delta.commits": "2"}
            written_by_hudi(oracle, copy, kind, "upsert", data, **soon)
            mine.apply("upsert", data)
        assert set(copy.glob(".hoodie/metadata/files/*.hfile")) - ours_alone, "Hudi compacted nothing"
        assert differences(open_table(str(copy)).context) == []
        data = rows(range(30, 50), 40)
        ours.write(copy, "upsert", data, options=SIMPLE)
        mine.apply("upsert", data)
        keep_metadata(open_table(str(copy)).context, 1)
        assert differences(open_table(str(copy)).context) == []
        assert_same_rows(ours.read(copy), mine.rows())
        assert_same_rows(oracle.read(copy, hoodie__metadata__enable="true"), mine.rows())
        assert not differing(oracle, copy)

    hudis.each_on_a_copy(base, on)


def test_hudi_reads_through_it(tmp_path, hudis: Hudis):
    base = tmp_path / "t"
    ours.create(base, index="simple", partitioned=True)
    ours.write(base, "insert", rows(range(9), 1), options=ENABLE)
    before = hudis["0.15.0"].read(base, hoodie__metadata__enable="true")
    assert before.num_rows == 9
    # Without the only delta, nothing that the write added is listed any more.
    (delta,) = base.glob(".hoodie/metadata/files/.files-0000-0_*.log.2_*")
    delta.unlink()
    assert hudis["0.15.0"].read(base, hoodie__metadata__enable="true").num_rows == 0
    assert hudis["0.15.0"].read(base, hoodie__metadata__enable="false").num_rows == 9


@kinds
def test_statistics_of_ours_serve_hudi_and_indexes_of_hudi_are_kept(kind, tmp_path, hudis: Hudis):
    base, model = tmp_path / "t", Model(partitioned=True)
    data = rows(range(24), 1)
    written_by_hudi(hudis["0.15.0"], base, kind, "insert", data, **INDEXED)
    model.apply("insert", data)
    for operation, numbers, version in (("insert", range(24, 48), 2), ("upsert", range(10, 30), 3)):
        data = rows(numbers, version)
        ours.write(base, operation, data, options=SIMPLE | {"hoodie.parquet.small.file.limit": "0"})
        model.apply(operation, data)
    assert_whole(base, model, hudis, "kept")
    assert set(read_partitions(open_table(str(base)).context).ready) == {"bloom_filters", "column_stats", "files"}

    def on(oracle: HudiOracle, copy: Path) -> None:
        mine = model.copy()
        skipping = {"hoodie__metadata__enable": "true", "hoodie__enable__data__skipping": "true"}
        skipping["hoodie__metadata__index__column__stats__enable"] = "true"
        for where, holds in (("ts > 2500", lambda row: row["ts"] > 2500), ("ts < 1500", lambda row: row["ts"] < 1500)):
            found = oracle.read(copy, where=where, **skipping)
            assert_same_rows(found, [row for row in mine.rows() if holds(row)], of=where)
        data = rows(range(20, 60), 4)
        written_by_hudi(oracle, copy, kind, "upsert", data, **INDEXED)
        mine.apply("upsert", data)
        data = rows(range(50, 64), 5)
        ours.write(copy, "upsert", data, options=SIMPLE)
        mine.apply("upsert", data)
        assert differences(open_table(str(copy)).context) == []
        assert_same_rows(ours.read(copy), mine.rows())
        assert_same_rows(oracle.read(copy, **skipping), mine.rows())

    hudis.each_on_a_copy(base, on)


def test_hudi_finds_keys_by_filters_of_the_metadata_table_that_are_in_part_ours(tmp_path, hudis: Hudis):
    """Its lookup asks no footer then, and fails where an entry is missing. It sends its file system
    view to tasks, which Java 17 lets Kryo do only if `java.util.concurrent.locks` is opened:
    `hudi_server.py` does, Spark does not."""
    base, model = tmp_path / "t", Model(partitioned=True)
    ours.create(base, index="bloom", partitioned=True)
    for operation, numbers, version, options in (
        ("insert", range(12), 1, {**ENABLE, **INDEXED}),
        ("upsert", range(4, 14), 2, {}),
    ):
        data = rows(numbers, version)
        ours.write(base, operation, data, options=options)
        model.apply(operation, data)
    by_metadata = {"hoodie.index.type": "BLOOM", "hoodie.bloom.index.use.metadata": "true"}

    def on(oracle: HudiOracle, copy: Path) -> None:
        mine = model.copy()
        theirs = rows(range(8, 20), 3)
        written_by_hudi(oracle, copy, "copy-on-write", "upsert", theirs, **INDEXED, **by_metadata)
        mine.apply("upsert", theirs)
        assert_same_rows(ours.read(copy), mine.rows(), of="ours")
        data = rows(range(14, 24), 4)
        ours.write(copy, "upsert", data, options=by_metadata)
        mine.apply("upsert", data)
        assert differences(open_table(str(copy)).context) == []
        assert_same_rows(oracle.read(copy, hoodie__metadata__enable="true"), mine.rows(), of="Hudi")

    hudis.each_on_a_copy(base, on)


def test_hudi_skips_files_by_statistics_of_ours(tmp_path, hudis: Hudis):
    """A file that the filter cannot match is damaged: who opens it fails."""
    base, model = tmp_path / "t", Model(partitioned=False)
    ours.create(base, index="simple", partitioned=False)
    old, new = rows(range(6), 1), rows(range(6, 12), 2)
    ours.write(base, "insert", old, options={**ENABLE, **INDEXED})
    [skipped] = base.glob("*.parquet")
    ours.write(base, "insert", new, options={"hoodie.parquet.small.file.limit": "0"})
    model.apply("insert", new)

    def on(oracle: HudiOracle, copy: Path) -> None:
        read = {"hoodie__metadata__enable": "true", "hoodie__metadata__index__column__stats__enable": "true"}
        for where in ("ts > 1500", "id >= 'k006'", "seen > timestamp'2024-01-01 05:30:00 UTC'"):
            expected = oracle.read(copy, where=where, **read, hoodie__enable__data__skipping="false")
            assert_same_rows(expected, model.rows(), of=f"unskipped, {where}")
        (copy / skipped.name).write_bytes(b"PAR1 damaged PAR1")
        for where in ("ts > 1500", "id >= 'k006'", "seen > timestamp'2024-01-01 05:30:00 UTC'"):
            found = oracle.read(copy, where=where, **read, hoodie__enable__data__skipping="true")
            assert_same_rows(found, model.rows(), of=f"skipped, {where}")
        with pytest.raises(HudiFailedError):
            oracle.read(copy, where="ts > 1500", **read, hoodie__enable__data__skipping="false")

    hudis.each_on_a_copy(base, on)


def test_a_filter_on_a_column_without_statistics_loses_hudi_no_row(tmp_path, hudis: Hudis):
    """Decimals that no bound holds, and two of the meta columns."""
    base = tmp_path / "t"
    schema = pa.schema([("id", pa.string()), ("wide", pa.decimal128(38, 2)), ("ts", pa.int64())])
    data = pa.Table.from_pylist(
        [{"id": f"k{n}", "wide": Decimal(n + 10), "ts": n + 1} for n in range(6)], schema=schema
    )
    ours.create(base, index="simple", partitioned=False, schema=schema)
    ours.write(base, "insert", data, options={**ENABLE, **INDEXED})

    def on(oracle: HudiOracle) -> None:
        read = {"hoodie__metadata__enable": "true", "hoodie__metadata__index__column__stats__enable": "true"}
        read["hoodie__enable__data__skipping"] = "true"
        for condition in ("wide > 5", "wide is not null", "_hoodie_commit_seqno > ''", "_hoodie_file_name is not null"):
            found = oracle.read(base, where=f"{condition} and ts > 0", **read)
            assert_same_rows(found, data.to_pylist(), of=f"{oracle.version}, {condition}")

    hudis.each(on)
