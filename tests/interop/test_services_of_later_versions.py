"""Services of ours on tables of versions 8 and 9, and plans that one engine makes and the other
executes: after each step we, hudi-rs and Hudi 1.1.1 read the same rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import pyarrow as pa
import pytest

from hudi_table.api import HudiTable, create_table, open_table, write_hudi
from hudi_table.arguments import MergeModeName, TableTypeName
from hudi_table.metadata.reading import read_entries
from hudi_table.metadata.table import MetadataTable
from hudi_table.metadata.validate import differences
from hudi_table.model.metadata_table import MetadataPartition
from hudi_table.model.table.cdc import CDC_ENABLED
from hudi_table.table.timeline.active import load_timeline
from tests.interop import ours
from tests.interop.conftest import Hudis
from tests.interop.model import Model, rows
from tests.interop.test_change_data import HISTORY, SCHEMA, by_hudi, by_us
from tests.interop.test_later_versions import LOGS, ORACLE, upsert
from tests.support.hudi_oracle import HudiFailedError, HudiOracle
from tests.support.rows import META, assert_same_rows

pytestmark = [pytest.mark.interop]

VERSIONS = pytest.mark.parametrize("version", [8, 9])
NO_METADATA = {"hoodie.metadata.enable": "false"}
SMALL = {"hoodie.clean.commits.retained": "1"}


class Life:
    """A table of ours, what it holds, and Hudi beside it."""

    def __init__(self, base: Path, oracle: HudiOracle, version: int, index: str, kind: str) -> None:
        self.base, self.oracle, self.version, self.index = base, oracle, version, index
        self.model, self.steps = Model(partitioned=True), 0
        ours.create(base, index=index, partitioned=True, version=version, type=kind)

    @property
    def table(self) -> HudiTable:
        return open_table(self.base)

    def write(self, operation: str, numbers: object, *, by_them: bool = False) -> str:
        self.steps += 1
        data = rows(numbers, self.steps)  # type: ignore[arg-type]
        if by_them:
            logs = LOGS if self.table.context.config.type.value == "MergeOnRead" else {}
            upsert(self.oracle, self.base, data, self.version, self.index, **NO_METADATA, **logs)
        else:
            ours.write(self.base, operation, data)
        self.model.apply(operation, data)
        self.check()
        newest = load_timeline(self.table.context).last_commit
        assert newest is not None
        return newest.time

    def check(self) -> None:
        ours.assert_all_read(self.base, self.oracle, self.model.rows())


@VERSIONS
def test_services_on_logs(hudis: Hudis, tmp_path: Path, version: int) -> None:
    life = Life(tmp_path / "table", hudis[ORACLE], version, "simple", "MergeOnRead")
    life.write("insert", range(20))
    life.write("upsert", range(5, 15))
    plan = life.table.schedule_compaction(force=True)
    assert plan is not None
    life.check()
    life.write("upsert", range(10, 25))
    life.write("upsert", range(3, 7), by_them=True)
    life.table.run_compaction(plan.instant)
    life.check()
    life.write("delete", range(3))
    for _ in range(2):
        life.write("upsert", range(4, 12))
    assert life.table.compact_logs(force=True)
    life.check()
    life.write("upsert", range(8, 10))
    savepoint = life.table.savepoint().instant
    kept = life.model.copy()
    life.check()
    taken = life.write("upsert", range(30))
    before = load_timeline(life.table.context)
    life.table.rollback(taken, writers_stopped=True)
    life.model = kept.copy()
    life.check()
    life.write("upsert", range(25))
    life.table.restore(savepoint, writers_stopped=True)
    life.model = kept.copy()
    life.check()
    assert life.table.cluster(force=True)
    life.check()
    life.table.delete_savepoint(savepoint, writers_stopped=True)
    life.write("upsert", range(6), by_them=True)
    life.write("insert_overwrite", range(0, 30, 3))
    assert life.table.clean(SMALL, force=True)
    life.check()
    life.write("upsert", range(12), by_them=True)
    assert len(load_timeline(life.table.context).commits) > 5
    assert before.commits


@VERSIONS
@pytest.mark.parametrize("kind", ["CopyOnWrite", "MergeOnRead"])
def test_what_changed_since_a_completion_is_told_alike(hudis: Hudis, tmp_path: Path, version: int, kind: str) -> None:
    life = Life(tmp_path / "table", hudis[ORACLE], version, "bucket", kind)
    life.write("insert", range(20))
    life.write("upsert", range(5, 15))
    since = load_timeline(life.table.context).commits[-1].completion
    life.write("upsert", range(10, 25))
    life.write("upsert", range(22, 30), by_them=True)
    told = {"hoodie__datasource__query__type": "incremental", "hoodie__datasource__read__begin__instanttime": since}
    mine = life.table.scan(query="incremental", since=since, meta=True).to_arrow()
    assert len(mine) == 20
    assert_same_rows(life.oracle.read(life.base, **told), mine, columns=["id", *META], of="Hudi, incremental")
    moment = load_timeline(life.table.context).commits[1].time
    past = life.table.scan(as_of=moment, meta=True).to_arrow()
    found = life.oracle.read(life.base, as__of__instant=moment)
    assert_same_rows(found, past, columns=["id", *META], of="Hudi, time travel")


@VERSIONS
def test_hudi_executes_our_plan_of_a_compaction_and_we_execute_its(hudis: Hudis, tmp_path: Path, version: int) -> None:
    life = Life(tmp_path / "table", hudis[ORACLE], version, "bucket", "MergeOnRead")
    life.write("insert", range(20))
    life.write("upsert", range(5, 15))
    plan = life.table.schedule_compaction(force=True)
    assert plan is not None
    life.write("upsert", range(12, 18))
    options = f"hoodie.metadata.enable=false,hoodie.write.table.version={version},hoodie.write.auto.upgrade=false"
    # Its procedure fails on a bucket index without the fields of the key.
    options += ",hoodie.datasource.write.recordkey.field=id"
    life.oracle.sql(
        f"CALL run_compaction(op => 'run', path => '{life.base}', timestamp => {plan.instant}, options => '{options}')"
    )
    life.check()
    assert not load_timeline(life.table.context).pending
    life.write("upsert", range(3, 6))
    told = f"{options},hoodie.compact.inline.max.delta.commits=1"
    life.oracle.sql(f"CALL run_compaction(op => 'schedule', path => '{life.base}', options => '{told}')")
    (theirs,) = [i.time for i in load_timeline(life.table.context).pending]
    life.write("upsert", range(4, 8))
    life.table.run_compaction(theirs)
    life.check()
    life.write("upsert", range(2, 22), by_them=True)


@VERSIONS
def test_hudi_executes_our_plan_of_a_clustering_and_we_execute_its(hudis: Hudis, tmp_path: Path, version: int) -> None:
    life = Life(tmp_path / "table", hudis[ORACLE], version, "simple", "CopyOnWrite")
    life.write("insert", range(20))
    plan = life.table.schedule_clustering({"hoodie.clustering.plan.strategy.sort.columns": "seen"}, force=True)
    assert plan is not None
    life.check()
    options = f"hoodie.metadata.enable=false,hoodie.write.table.version={version},hoodie.write.auto.upgrade=false"
    told = f"{options},hoodie.datasource.write.row.writer.enable=false"
    life.oracle.sql(f"CALL run_clustering(path => '{life.base}', op => 'execute', options => '{told}')")
    life.check()
    assert not load_timeline(life.table.context).pending
    life.write("upsert", range(10, 25))
    life.oracle.sql(
        f"CALL run_clustering(path => '{life.base}', op => 'schedule', order => 'seen', options => '{options}')"
    )
    (theirs,) = life.table.pending_clusterings()
    life.table.run_clustering(theirs)
    life.check()
    life.write("upsert", range(2, 22), by_them=True)


@VERSIONS
def test_rings_are_split_by_us_and_written_on_by_hudi(hudis: Hudis, tmp_path: Path, version: int) -> None:
    life = Life(tmp_path / "table", hudis[ORACLE], version, "consistent", "MergeOnRead")
    life.write("upsert", range(30))
    life.write("upsert", range(10, 20))
    before = {row["file_id"] for row in life.table.files().to_pylist() if row["latest"]}
    split = {"hoodie.parquet.max.file.size": "1000", "hoodie.bucket.index.merge.threshold": "0"}
    assert life.table.cluster(split, force=True)
    assert before != {row["file_id"] for row in life.table.files().to_pylist() if row["latest"]}
    life.check()
    life.write("upsert", range(5, 40), by_them=True)
    life.write("upsert", range(5, 45))
    life.write("delete", range(0, 40, 3))


@VERSIONS
@pytest.mark.parametrize("kind", get_args(TableTypeName))
def test_hudi_tells_the_changes_that_we_logged(hudis: Hudis, tmp_path: Path, version: int, kind: TableTypeName) -> None:
    base = tmp_path / "table"
    create_table(
        base, SCHEMA, record_key="id", partition_by="city", ordering_fields="ts", index="Simple", type=kind, version=version,
        options={CDC_ENABLED: "true"},
    )  # fmt: skip
    for operation, data in HISTORY:
        if operation == "delete_partition":
            write_hudi(base, None, operation=operation, partitions=sorted(set(data["city"].to_pylist())))
        else:
            write_hudi(base, data, operation=operation)
    mine = by_us(base)
    assert {op for op, *_ in mine} == {"i", "u", "d"}
    assert by_hudi(hudis[ORACLE], base) == mine


@VERSIONS
def test_a_failed_write_of_either_is_taken_back_by_the_other(hudis: Hudis, tmp_path: Path, version: int) -> None:
    from hudi_table.metadata.port import open_context
    from hudi_table.model.timeline.instants import Action
    from hudi_table.table.commit.transaction import begin
    from hudi_table.table.store.opening import open_storage

    life = Life(tmp_path / "table", hudis[ORACLE], version, "bucket", "MergeOnRead")
    life.write("insert", range(20))
    dead = begin(open_context(open_storage(str(life.base))), Action.DELTA_COMMIT)
    dead.inflight()
    log = next(iter(life.base.rglob("*.parquet")))
    name = f".{log.name.split('_')[0]}_{dead.time}.log.1_0-1-2"
    with dead.right.create_file(log.parent.name, name, dead.ctx.layout.log_marker) as sink:
        sink.write(b"half of a log")
    life.check()
    life.write("upsert", range(3, 9), by_them=True)
    assert not (log.parent / name).exists()
    assert not load_timeline(life.table.context).pending
    life.write("upsert", range(4, 12))


def test_rows_of_one_key_in_one_write(hudis: Hudis, tmp_path: Path) -> None:
    """By commit time the last row of a batch wins, as with Hudi 1.1.1; by event time the one with
    the larger ordering value."""
    schema = pa.schema([("id", pa.string()), ("city", pa.string()), ("name", pa.string()), ("ts", pa.int64())])
    data = pa.table({"id": ["a", "a", "b", "b"], "city": ["x"] * 4, "name": ["1", "2", "3", "4"], "ts": [9, 1, 1, 9]}, schema=schema)  # fmt: skip
    modes: list[tuple[MergeModeName, str]] = [
        ("CommitTime", "COMMIT_TIME_ORDERING"),
        ("EventTime", "EVENT_TIME_ORDERING"),
    ]
    for mode, hudi_mode in modes:
        base, theirs = tmp_path / mode, tmp_path / f"{mode}-hudi"
        create_table(
            base, schema, record_key="id", partition_by="city", ordering_fields="ts", merge_mode=mode, version=9
        )
        write_hudi(base, data)
        hudis[ORACLE].write(
            theirs, data,
            {
                "hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id", "hoodie.datasource.write.partitionpath.field": "city",
                "hoodie.table.ordering.fields": "ts", "hoodie.write.record.merge.mode": hudi_mode, "hoodie.datasource.write.operation": "upsert",
                "hoodie.write.table.version": "9",
            } | NO_METADATA,
            mode="overwrite",
        )  # fmt: skip
        mine = open_table(base).scan().to_arrow()
        assert_same_rows(hudis[ORACLE].read(theirs), mine, columns=schema.names, of=f"Hudi, {mode}")


@VERSIONS
@pytest.mark.parametrize("kind", ["CopyOnWrite", "MergeOnRead"])
def test_hudi_archives_our_timeline_and_cleans_our_files(hudis: Hudis, tmp_path: Path, version: int, kind: str) -> None:
    life = Life(tmp_path / "table", hudis[ORACLE], version, "bucket", kind)
    for step in range(6):
        life.write("upsert", range(step, step + 8))
    life.steps = 50
    data = rows(range(3, 9), life.steps)
    logs = LOGS | {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "1"}
    limits = {"hoodie.keep.min.commits": "3", "hoodie.keep.max.commits": "4", "hoodie.clean.commits.retained": "2"}
    told = limits | NO_METADATA | (logs if kind == "MergeOnRead" else {})
    for _ in range(2):
        upsert(life.oracle, life.base, data, version, "bucket", **told)
    life.model.apply("upsert", data)
    life.check()
    before = len(life.table.timeline(archived=True))
    assert len(load_timeline(life.table.context).commits) < before
    assert list((life.base / ".hoodie/timeline/history").glob("*.parquet"))
    for step in range(3):
        life.write("upsert", range(step, step + 3))
    life.write("delete", range(2))
    life.table.clean(SMALL, force=True)
    life.check()
    assert not [finding for finding in life.table.doctor() if finding.severity.value == "error"]


def agree(table: HudiTable, partitions: set[str]) -> None:
    """The metadata table has these partitions, and they tell what the table holds."""
    assert set(table.context.config.metadata_partitions) == partitions
    assert differences(table.context) == []
    entries = read_entries(loaded_metadata(table), MetadataPartition.RECORD_INDEX)
    assert entries is not None
    assert sorted(entries["key"].to_pylist()) == sorted(table.scan().to_arrow()["id"].to_pylist())


def loaded_metadata(table: HudiTable) -> MetadataTable:
    found = MetadataTable.load(table.context, load_timeline(table.context))
    assert found is not None
    return found


@VERSIONS
def test_hudi_and_we_write_on_one_metadata_table_in_turns_and_compact_it(
    hudis: Hudis, tmp_path: Path, version: int
) -> None:
    metadata_in_turns(hudis[ORACLE], tmp_path / "table", version)


def metadata_in_turns(oracle: HudiOracle, base: Path, version: int) -> None:
    """What either began the other keeps: files, statistics of columns and partitions, the record
    index."""
    life = Life(base, oracle, version, "simple", "MergeOnRead")
    told = {
        "hoodie.metadata.enable": "true",
        "hoodie.metadata.index.column.stats.enable": "true",
        "hoodie.metadata.index.partition.stats.enable": "true",
        "hoodie.metadata.record.index.enable": "true",
        "hoodie.metadata.global.record.level.index.enable": "true",
        "hoodie.metadata.compact.max.delta.commits": "3",
    }
    all_of_it = {"files", "column_stats", "partition_stats", "record_index"}
    skipping = {"hoodie__metadata__enable": "true", "hoodie__enable__data__skipping": "true"}
    life.write("insert", range(20))
    for step in range(3):
        data = rows(range(step, step + 5), 10 + 2 * step)
        upsert(life.oracle, life.base, data, version, "simple", **LOGS, **told)
        life.model.apply("upsert", data)
        life.check()
        found = life.oracle.read(life.base, where="ts >= 10000", **skipping)
        mine = life.table.scan(filter="ts >= 10000", meta=True).to_arrow()
        assert_same_rows(found, mine, columns=["id", *META], of="Hudi, skipping files")
        agree(life.table, all_of_it)
        ours.write(life.base, "upsert", data := rows(range(step + 3, step + 9), 11 + 2 * step), options=told)
        agree(life.table, all_of_it)
        life.model.apply("upsert", data)
        life.check()
        found = life.oracle.read(life.base, where="ts >= 11000", **skipping)
        mine = life.table.scan(filter="ts >= 11000", meta=True).to_arrow()
        assert_same_rows(found, mine, columns=["id", *META], of="Hudi, after ours")


@VERSIONS
def test_partitions_by_time_and_custom_generators(hudis: Hudis, tmp_path: Path, version: int) -> None:
    schema = pa.schema([("id", pa.string()), ("city", pa.string()), ("at", pa.int64()), ("ts", pa.int64())])

    def batch(numbers: range, ts: int) -> pa.Table:
        listed = [
            {"id": f"k{n}", "city": "xy"[n % 2], "at": 1_700_000_000_000 + n * 86_400_000, "ts": ts} for n in numbers
        ]
        return pa.Table.from_pylist(listed, schema=schema)

    by_day = {"field": "at", "type": "Timestamp", "format": "yyyy/MM", "input": "EPOCHMILLISECONDS"}
    partitions: dict[str, list[Any]] = {"single": [by_day], "custom": ["city", by_day]}
    for name, fields in partitions.items():
        base = tmp_path / name / "table"
        create_table(base, schema, record_key="id", partition_by=fields, ordering_fields="ts", index="Simple", version=version)  # fmt: skip
        write_hudi(base, batch(range(12), 1))
        write_hudi(base, batch(range(4, 8), 2))
        upsert(hudis[ORACLE], base, batch(range(6, 14), 3), version, "simple", **NO_METADATA)
        found = open_table(base).scan(meta=True).to_arrow()
        assert len(found) == 14, name
        if name == "single":
            assert_same_rows(hudis[ORACLE].read(base), found, columns=["id", *META], of="Hudi")
        else:
            # Of version 6 no less: it takes the column's values from folders, of which there are too many.
            with pytest.raises(HudiFailedError, match="Failed to parse partition column values"):
                hudis[ORACLE].read(base)
        write_hudi(base, batch(range(10, 16), 4))
        assert open_table(base).scan().count() == 16


@VERSIONS
def test_a_table_without_meta_columns_and_a_resized_one(hudis: Hudis, tmp_path: Path, version: int) -> None:
    base, oracle = tmp_path / "plain", hudis[ORACLE]
    create_table(
        base, ours_schema := rows(range(1), 1).schema, record_key="id", partition_by="city", ordering_fields="ts", version=version,
        options={"hoodie.populate.meta.fields": "false"},
    )  # fmt: skip
    for step, numbers in enumerate((range(12), range(4, 8))):
        write_hudi(base, rows(numbers, step + 1))
    mine = open_table(base).scan().to_arrow()
    assert_same_rows(oracle.read(base), mine, columns=ours_schema.names, of="Hudi, no meta columns")
    life = Life(tmp_path / "table", oracle, version, "bucket", "MergeOnRead")
    life.write("insert", range(20))
    life.write("upsert", range(5, 15))
    life.table.resize_buckets(5)
    life.check()
    life.steps = 9
    data = rows(range(3, 25), life.steps)
    told = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "5"}
    upsert(oracle, life.base, data, version, "bucket", **NO_METADATA, **LOGS, **told)
    life.model.apply("upsert", data)
    life.check()
    life.write("upsert", range(2, 6))
