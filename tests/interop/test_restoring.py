"""Rollback, restore and quarantine across engines: what we took back is gone for everybody, Hudi
writes on, and we after Hudi's."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from hudi_table.api import HudiTable, open_table
from hudi_table.errors import WriteConflictError
from hudi_table.model.timeline.instants import Action
from hudi_table.table.timeline.active import load_timeline
from tests.interop import ours
from tests.interop.conftest import Hudis
from tests.interop.model import Model, rows
from tests.interop.test_archiving import KEEP, age
from tests.interop.test_matrix import upsert
from tests.support import golden
from tests.support.hudi_oracle import HudiOracle
from tests.support.rows import assert_same_rows
from tests.support.savepoints import keep

pytestmark = [pytest.mark.interop, pytest.mark.by_turns]

TABLES = [("CopyOnWrite", "bucket", True), ("MergeOnRead", "bucket", True), ("MergeOnRead", "simple", False)]
tables = pytest.mark.parametrize(
    ("kind", "index", "partitioned"), TABLES, ids=["copy-on-write", "logs-partitioned", "logs-flat"]
)
# No metadata table, so that each step is quick, and no compaction behind a write, which would be the newest instant.
QUICK = {"hoodie.metadata.enable": "false", "hoodie.compact.inline.max.delta.commits": "100"}


def written(base: Path, kind: str, index: str, partitioned: bool) -> Model:
    model = Model(partitioned=partitioned)
    ours.create(base, index=index, partitioned=partitioned, type=kind)
    go_on(base, model, ("insert", range(20), 1), ("upsert", range(10, 24), 2))
    return model


def go_on(base: Path, model: Model, *steps: tuple[str, range, int]) -> None:
    for operation, numbers, version in steps:
        data = rows(numbers, version)
        ours.write(base, operation, data)
        model.apply(operation, data)


def theirs(oracle: HudiOracle, base: Path, model: Model, numbers: list[int], version: int) -> None:
    data = rows(numbers, version)
    kind = {"hoodie.datasource.write.table.type": open_table(str(base)).context.config.type.hudi_name}
    upsert(oracle, base, data, **QUICK, **kind)
    model.apply("upsert", data)


def newest(table: HudiTable) -> str:
    last = load_timeline(table.context).last_commit
    assert last is not None
    return last.time


@tables
def test_every_engine_reads_what_is_left_after_our_rollback_and_restore_and_hudi_writes_on(
    hudis: Hudis, tmp_path: Path, kind: str, index: str, partitioned: bool
) -> None:
    base = tmp_path / "table"
    model = written(base, kind, index, partitioned)
    keep(open_table(str(base)))

    def each(oracle: HudiOracle, copy: Path) -> None:
        saved, table = model.copy(), open_table(str(copy))
        savepoint = newest(table)
        expected = model.copy()
        theirs(oracle, copy, expected, [1, 2, 60], 3)
        kept = expected.copy()
        # A write of ours, then one of Hudi's: taken back while its logs or files are there beside ours.
        go_on(copy, kept, ("delete", range(0, 20, 5), 4))
        before = kept.copy()
        theirs(oracle, copy, kept, [5, 6, 61], 5)
        table.rollback(newest(table), writers_stopped=True)
        ours.assert_all_read(copy, oracle, before.rows())
        table.rollback(newest(table), writers_stopped=True)
        ours.assert_all_read(copy, oracle, expected.rows())
        theirs(oracle, copy, expected, [7, 8, 62], 6)
        ours.assert_all_read(copy, oracle, expected.rows())
        if kind == "MergeOnRead":
            table.compact(force=True)
            ours.assert_all_read(copy, oracle, expected.rows())
        go_on(copy, expected, ("insert_overwrite", range(6), 7))
        table.restore(savepoint, writers_stopped=True)
        ours.assert_all_read(copy, oracle, saved.rows())
        theirs(oracle, copy, saved, [3, 4, 63], 8)
        ours.assert_all_read(copy, oracle, saved.rows())
        go_on(copy, saved, ("upsert", range(2, 8), 9))
        ours.assert_all_read(copy, oracle, saved.rows())
        assert [f for f in table.doctor(keys=True) if f.severity == "error"] == []

    hudis.each_on_a_copy(base, each)


@pytest.mark.parametrize("kind", ["CopyOnWrite", "MergeOnRead"])
def test_we_restore_a_savepoint_of_hudi_and_write_on_after_hudi_restores_it(
    hudis: Hudis, tmp_path: Path, kind: str
) -> None:
    """With a simple index: procedures of Hudi 0.15.0 fail on a bucket index, whose key they are not
    told."""
    base = tmp_path / "table"
    model = written(base, kind, "simple", True)

    def each(oracle: HudiOracle, copy: Path) -> None:
        saved, table = model.copy(), open_table(str(copy))
        theirs(oracle, copy, saved, [1, 2, 60], 3)
        savepoint = newest(table)
        for key, value in oracle.common_options().items():
            oracle.sql(f"SET {key}={value}")
        oracle.sql(f"CALL create_savepoint(path => '{copy}', commit_time => '{savepoint}')")
        expected = saved.copy()
        go_on(copy, expected, ("upsert", range(5, 12), 4))
        theirs(oracle, copy, expected, [5, 61], 5)
        table.restore(savepoint, writers_stopped=True)
        ours.assert_all_read(copy, oracle, saved.rows())
        go_on(copy, saved.copy(), ("upsert", range(5, 12), 6))
        go_on(copy, saved.copy(), ("delete", range(0, 20, 5), 7))
        # A metadata table would be built now, and Hudi does not restore to before it was.
        oracle.sql("SET hoodie.metadata.enable=false")
        oracle.sql(f"CALL rollback_to_savepoint(path => '{copy}', instant_time => '{savepoint}')")
        ours.assert_all_read(copy, oracle, saved.rows())
        go_on(copy, saved, ("upsert", range(0, 30, 4), 8))
        ours.assert_all_read(copy, oracle, saved.rows())

    hudis.each_on_a_copy(base, each)


def test_the_doctor_finds_nothing_wrong_with_a_metadata_table_after_hudi_restores_a_savepoint(
    hudis: Hudis, tmp_path: Path
) -> None:
    """0.15.0 keeps a log of ours that it takes back, with a block behind it, and lists both."""
    oracle, base = hudis["0.15.0"], tmp_path / "table"
    model = written(base, "MergeOnRead", "simple", True)
    open_table(str(base)).build_metadata()
    kept = {"hoodie.datasource.write.table.type": "MERGE_ON_READ", **QUICK, "hoodie.metadata.enable": "true"}

    def hudi(numbers: list[int], version: int) -> None:
        upsert(oracle, base, rows(numbers, version), **kept)

    hudi([1, 2], 3)
    model.apply("upsert", rows([1, 2], 3))
    savepoint = newest(open_table(str(base)))
    for key, value in oracle.common_options().items():
        oracle.sql(f"SET {key}={value}")
    oracle.sql("SET hoodie.metadata.enable=true")
    oracle.sql(f"CALL create_savepoint(path => '{base}', commit_time => '{savepoint}')")
    go_on(base, model.copy(), ("upsert", range(5, 12), 4))
    hudi([5, 61], 5)
    oracle.sql(f"CALL rollback_to_savepoint(path => '{base}', instant_time => '{savepoint}')")
    assert [found for found in open_table(str(base)).doctor() if found.severity == "error"] == []
    hudi([7], 6)
    model.apply("upsert", rows([7], 6))
    go_on(base, model, ("upsert", range(2, 4), 7))
    assert [found for found in open_table(str(base)).doctor() if found.severity == "error"] == []
    ours.assert_all_read(base, oracle, model.rows())


@pytest.mark.parametrize("name", ["rb", "rbm"])
def test_we_write_on_after_a_rollback_or_restore_of_hudi(hudis: Hudis, tmp_path: Path, name: str) -> None:
    """Golden tables: `rb` was restored to a savepoint, of `rbm` the newest deltacommit was rolled
    back, its log left."""
    table = open_table(str(golden.unpack(name, tmp_path).base))
    options = {"hoodie.index.type": "SIMPLE"}
    before = table.scan().to_arrow()
    table.upsert(before.slice(0, 1), options=options)
    table.rollback(newest(table), writers_stopped=True)
    assert_same_rows(table.scan().to_arrow(), before, of="ours")
    table.delete(before.slice(1, 1), options=options)
    expected = table.scan().to_arrow()
    assert len(expected) == len(before) - 1

    def each(oracle: HudiOracle, copy: Path) -> None:
        assert_same_rows(oracle.read(copy), expected, columns=expected.column_names, of=repr(oracle))

    hudis.each_on_a_copy(Path(table.base_path), each)


def test_hudi_passes_over_what_the_doctor_put_aside(hudis: Hudis, tmp_path: Path) -> None:
    base = tmp_path / "table"
    model = written(base, "CopyOnWrite", "simple", True)
    table = open_table(str(base))
    time = str(int(newest(table)) - 1)
    (source,) = list((base / "sf").glob(f"*_{newest(table)}.parquet"))[:1]
    orphan = source.with_name(source.name.replace(newest(table), time).replace("-0_", "-9_", 1))
    shutil.copy(source, orphan)
    made = table.quarantine(table.doctor())
    assert made is not None
    aside = base / ".hoodie" / ".quarantine" / made.time / "sf" / orphan.name
    assert aside.exists()

    def each(oracle: HudiOracle, copy: Path) -> None:
        expected = model.copy()
        ours.assert_all_read(copy, oracle, expected.rows())
        services = {
            "hoodie.cleaner.commits.retained": "1",
            "hoodie.keep.min.commits": "2",
            "hoodie.keep.max.commits": "3",
        }
        for version in (3, 4, 5):
            upsert(oracle, copy, data := rows([1, 2, 60 + version], version), **QUICK, **services)
            expected.apply("upsert", data)
        ours.assert_all_read(copy, oracle, expected.rows())
        assert (copy / aside.relative_to(base)).exists()
        assert Action.CLEAN in {i.action for i in load_timeline(open_table(str(copy)).context).completed}

    hudis.each_on_a_copy(base, each)


@pytest.mark.parametrize("version", [8, 9])
def test_a_clustering_of_ours_that_a_restore_of_hudis_took_back_does_not_come_back(
    hudis: Hudis, tmp_path: Path, version: int
) -> None:
    """Hudi leaves its plan, which nobody executes any more: until it is rolled back the groups of
    the plan take no rows, of Hudi's neither."""
    oracle, base, model = hudis["1.1.1"], tmp_path / "table", Model(partitioned=False)
    ours.create(base, index="simple", partitioned=False, type="MergeOnRead", version=version)
    go_on(base, model, ("insert", range(20), 1), ("upsert", range(10, 24), 2))
    table = open_table(str(base))
    savepoint = keep(table)
    (clustered,) = table.cluster(force=True)
    go_on(base, model.copy(), ("upsert", range(5, 9), 3))
    told = {"hoodie.metadata.enable": "false", "hoodie.write.table.version": str(version)}
    for key, value in (oracle.common_options() | told | {"hoodie.write.auto.upgrade": "false"}).items():
        oracle.sql(f"SET {key}={value}")
    oracle.sql(f"CALL rollback_to_savepoint(path => '{base}', instant_time => '{savepoint}')")
    ours.assert_all_read(base, oracle, model.rows())
    with pytest.raises(WriteConflictError, match=f"being clustered by the plan of {clustered.instant}"):
        ours.write(base, "upsert", rows(range(2, 4), 4))
    ours.assert_all_read(base, oracle, model.rows())
    with pytest.raises(WriteConflictError, match="was given up"):
        table.run_clustering(clustered.instant)
    table.rollback(clustered.instant, writers_stopped=True)
    assert table.pending_clusterings() == []
    go_on(base, model, ("upsert", range(2, 4), 5))
    ours.assert_all_read(base, oracle, model.rows())
    upsert(oracle, base, rows(range(3, 6), 6), **{"hoodie.datasource.write.table.type": "MERGE_ON_READ"}, **told)
    model.apply("upsert", rows(range(3, 6), 6))
    ours.assert_all_read(base, oracle, model.rows())
    assert [found for found in open_table(str(base)).doctor() if found.severity == "error"] == []


@pytest.mark.parametrize("version", [8, 9])
def test_what_archived_writes_left_is_read_where_savepoints_keep_all_writes_of_the_timeline(
    hudis: Hudis, tmp_path: Path, version: int
) -> None:
    oracle, base, model = hudis["1.1.1"], tmp_path / "table", Model(partitioned=True)
    told = {"hoodie.write.table.version": str(version), "hoodie.write.auto.upgrade": "false"}
    ours.create(base, index="simple", partitioned=True, version=version)
    # Each write is of another partition: what the first ones wrote is archived, and nothing of theirs is written again.
    for number in range(3):
        go_on(base, model, ("upsert", range(number, 18, 3), number + 1))
    go_on(base, model, ("upsert", range(18, 20), 4))
    saved, savepoint = model.copy(), keep(open_table(base))
    go_on(base, model, *(("upsert", range(2), number) for number in (5, 6, 7)))
    age(base)
    table = open_table(base)
    table.archive(KEEP, force=True)
    assert load_timeline(table.context).commits[0].time == savepoint
    moment = oracle.read(base, as__of__instant=savepoint)
    assert_same_rows(moment, saved.rows(), columns=ours.read(base).column_names, of="Hudi as of the savepoint")
    assert_same_rows(table.scan(as_of=savepoint).to_arrow(), saved.rows(), of="ours as of the savepoint")
    table.restore(savepoint, writers_stopped=True)
    assert [i.time for i in load_timeline(table.context).commits] == [savepoint]
    ours.assert_all_read(base, oracle, saved.rows())
    upsert(oracle, base, data := rows([1, 2, 40], 8), **QUICK, **told)
    saved.apply("upsert", data)
    ours.assert_all_read(base, oracle, saved.rows())
