"""Further releases of Apache Hudi beside ours: 1.0.2, which made version 8, and 1.2.0. And what
1.0.2 can and cannot do on version 6.

Matrix: {1.0.2 on 8, 1.2.0 on 8 and 9} × {copy-on-write, merge-on-read} × {bucket, consistent
hashing (merge-on-read), simple, bloom, record index}, tables of ours, theirs, and golden ones that
we continued; and of version 6, where it is kept, the record index. Archives and plans of services:
`test_random_turns.py`.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from hudi_table.api import open_table
from tests.interop import ours
from tests.interop.further import Releases
from tests.interop.model import Model, rows
from tests.interop.test_kept_properties import dropped_and_mended, written
from tests.interop.test_later_versions import (
    COMPACTING,
    INDEX_OPTIONS,
    LOGS,
    copy_on_write_goes_on,
    golden_table_goes_on,
    merge_on_read_goes_on,
    upsert,
)
from tests.interop.test_metadata_table import KINDS
from tests.interop.test_record_index import assert_one_place_each, by_hudi
from tests.interop.test_services_of_later_versions import metadata_in_turns
from tests.interop.turns import Kind, Them, schema_for
from tests.support import golden
from tests.support.hudi_oracle import HudiFailedError
from tests.support.rows import assert_same_rows

pytestmark = [pytest.mark.interop, pytest.mark.at_scale(2)]

WRITES = [("1.0.2", 8), ("1.2.0", 8), ("1.2.0", 9)]
"""Release and table version."""
TOLD = "hoodie.write.table.version=6,hoodie.write.auto.upgrade=false"
"""What a call is told on a table of version 6."""
INTEGER = r"Integer cannot be cast to class java\.lang\.Long"
AT_ONCE = "hoodie.compact.inline.max.delta.commits=1"
NINE = ("up69", *(name for name in golden.LATER if name.startswith("v9")))
"""The golden tables of version 9."""
GOLDEN = [("1.0.2", name) for name in golden.LATER if name not in NINE] + [("1.2.0", name) for name in golden.LATER]


@pytest.mark.filterwarnings("ignore::hudi_table.metadata.lifecycle.MetadataDroppedWarning")
@pytest.mark.parametrize(("release", "name"), GOLDEN)
def test_a_golden_table_that_we_have_continued_is_read_and_written_on(
    releases: Releases, tmp_path: Path, release: str, name: str
) -> None:
    golden_table_goes_on(releases[release], golden.unpack(name, tmp_path).base, name)


def test_1_0_2_refuses_version_9_by_name(releases: Releases, tmp_path: Path) -> None:
    base = golden.unpack(NINE[0], tmp_path).base
    with pytest.raises(HudiFailedError, match="Unknown table versionCode:9"):
        releases["1.0.2"].read(base)


@pytest.mark.parametrize(
    ("index", "operation"),
    [("bucket", "upsert"), ("simple", "delete"), ("bloom", "upsert"), ("record", "upsert"), ("record", "delete")],
)
@pytest.mark.parametrize(("release", "version"), WRITES)
def test_our_copy_on_write_table_is_read_and_written_on(
    releases: Releases, tmp_path: Path, release: str, version: int, index: str, operation: str
) -> None:
    copy_on_write_goes_on(releases[release], tmp_path / "table", version, index, operation)


@pytest.mark.parametrize(
    ("index", "operation"),
    [("bucket", "upsert"), ("simple", "insert"), ("bloom", "insert"), ("record", "insert"), ("consistent", "upsert")],
)
@pytest.mark.parametrize(("release", "version"), WRITES)
def test_our_merge_on_read_table_is_read_compacted_and_written_on(
    releases: Releases, tmp_path: Path, release: str, version: int, index: str, operation: str
) -> None:
    merge_on_read_goes_on(releases[release], tmp_path / "table", version, index, operation)


@pytest.mark.parametrize(("release", "version"), WRITES)
def test_it_and_we_write_on_one_metadata_table_in_turns(
    releases: Releases, tmp_path: Path, release: str, version: int
) -> None:
    metadata_in_turns(releases[release], tmp_path / "table", version)


@pytest.mark.parametrize(
    ("kind", "index"),
    [(kind, index) for kind in KINDS for index in ("bucket", "simple", "bloom", "record")]
    + [("merge-on-read", "consistent")],
)
@pytest.mark.parametrize(("release", "version"), WRITES)
def test_a_table_that_it_made_is_read_and_written_on_by_us(
    releases: Releases, tmp_path: Path, release: str, version: int, kind: str, index: str
) -> None:
    base, oracle, model = tmp_path / "table", releases[release], Model(partitioned=True)
    told = {
        "hoodie.table.name": "table",
        "hoodie.datasource.write.table.type": KINDS[kind],
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "city",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.write.table.version": str(version),
        "hoodie.metadata.enable": str(index == "record").lower(),
        "hoodie.compact.inline": "false",
    }
    for operation, numbers, number in (("insert", range(20), 1), ("upsert", range(10, 25), 2), ("delete", range(4), 3)):
        data = rows(numbers, number)
        oracle.write(base, data, told | INDEX_OPTIONS[index] | {"hoodie.datasource.write.operation": operation})
        model.apply(operation, data)
        assert_same_rows(ours.read(base), model.rows(), of=f"ours, after its {operation}")
    assert open_table(base).context.config.version == version
    ours.write(base, "upsert", data := rows(range(5, 30), 4), options=INDEX_OPTIONS[index])
    model.apply("upsert", data)
    ours.assert_all_read(base, oracle, model.rows())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("release", ["1.0.2", "1.2.0"])
def test_the_record_index_of_version_6_is_kept_in_turns(
    releases: Releases, tmp_path: Path, release: str, kind: str
) -> None:
    base, oracle, model = tmp_path / "t", releases[release], Model(partitioned=True)
    ours.create(base, index="record", partitioned=True, type="".join(part.title() for part in kind.split("-")))
    steps = (
        ("insert", range(12), False),
        ("upsert", range(6, 18), True),
        ("upsert", range(3, 21), False),
        ("delete", range(5), True),
    )
    # As 1.0 names what `by_hudi` switches on.
    enable = {"hoodie.metadata.record.index.enable": "true"}
    for number, (operation, numbers, by_them) in enumerate(steps, start=1):
        data = rows(numbers, number)
        if by_them:
            by_hudi(oracle, base, kind, operation, data, **enable)
        else:
            ours.write(base, operation, data)
        model.apply(operation, data)
        assert_one_place_each(base, model, f"step {number}")
    assert_same_rows(oracle.read(base, hoodie__metadata__enable="true"), model.rows(), of=repr(oracle))


def on_logs(base: Path) -> Model:
    """A merge-on-read table of version 6: twelve rows, of which some were updated."""
    model = Model(partitioned=True)
    ours.create(base, index="simple", partitioned=True, type="MergeOnRead")
    for operation, numbers, number in (("insert", range(12), 1), ("upsert", range(4, 9), 2)):
        ours.write(base, operation, data := rows(numbers, number))
        model.apply(operation, data)
    return model


def came_back(base: Path) -> Model:
    """The same, after two keys were deleted and written again."""
    model = on_logs(base)
    for operation, number in (("delete", 3), ("upsert", 4)):
        ours.write(base, operation, data := rows(range(4, 6), number))
        model.apply(operation, data)
    return model


def test_1_0_2_cannot_read_a_key_that_came_back_until_its_procedure_compacts(
    releases: Releases, tmp_path: Path
) -> None:
    base, oracle = tmp_path / "table", releases["1.0.2"]
    model = came_back(base)
    with pytest.raises(HudiFailedError, match=INTEGER):
        oracle.read(base)
    compacting = f"op => 'scheduleAndExecute', path => '{base}', options => '{TOLD},{AT_ONCE}'"
    assert oracle.sql(f"CALL run_compaction({compacting})")["state"].to_pylist() == ["COMPLETED"]
    ours.assert_all_read(base, oracle, model.rows())


def test_1_0_2_cannot_compact_a_key_that_came_back_within_a_write_and_we_execute_its_plan(
    releases: Releases, tmp_path: Path
) -> None:
    base, oracle = tmp_path / "table", releases["1.0.2"]
    model = came_back(base)
    with pytest.raises(HudiFailedError, match=INTEGER):
        upsert(oracle, base, data := rows(range(2), 5), 6, "simple", **LOGS, **COMPACTING)
    model.apply("upsert", data)
    assert_same_rows(ours.read(base), model.rows(), of="ours, beside its plan")
    (plan,) = open_table(base).services.compaction().pending()
    open_table(base).run_compaction(plan)
    ours.assert_all_read(base, oracle, model.rows())


def test_1_2_0_reads_a_key_that_came_back(releases: Releases, tmp_path: Path) -> None:
    base = tmp_path / "table"
    model = came_back(base)
    ours.assert_all_read(base, releases["1.2.0"], model.rows())


def test_1_0_2_writes_version_6_by_calls_that_name_it_and_refuses_without(releases: Releases, tmp_path: Path) -> None:
    base, oracle = tmp_path / "table", releases["1.0.2"]
    model, name = on_logs(base), "called"
    oracle.run(f"CREATE TABLE {name} USING hudi LOCATION '{base}'")
    open_table(base).mend()
    instant = open_table(base).timeline()["instant"].to_pylist()[0]
    for reading in (
        f"show_commits(table => '{name}')",
        f"show_compaction(path => '{base}')",
        f"show_fsview_latest(table => '{name}', partition_path => 'city=par')",
        f"show_savepoints(path => '{base}')",
    ):
        oracle.sql(f"CALL {reading}")
    writing = {
        "run_compaction": f"op => 'scheduleAndExecute', path => '{base}'",
        "run_clean": f"table => '{name}', retain_commits => 1",
        "create_savepoint": f"path => '{base}', commit_time => '{instant}'",
        "run_clustering": f"path => '{base}', op => 'scheduleAndExecute'",
    }
    before = contents(base)
    for procedure, arguments in writing.items():
        with pytest.raises(HudiFailedError, match=r"Table version \(SIX\) and Writer version \(EIGHT\) do not match"):
            oracle.sql(f"CALL {procedure}({arguments})")
        assert contents(base) == before, procedure
    oracle.sql(f"CALL run_compaction({writing['run_compaction']}, options => '{TOLD},{AT_ONCE}')")
    assert not [row for row in open_table(base).files().to_pylist() if row["latest"] and row["log_files"]]
    ours.assert_all_read(base, oracle, model.rows())
    try:
        for key, value in (pair.split("=") for pair in TOLD.split(",")):
            oracle.run(f"SET {key}={value}")
        for procedure in ("create_savepoint", "run_clean"):
            oracle.sql(f"CALL {procedure}({writing[procedure]})")
        ours.write(base, "upsert", rows(range(3), 5))
        newest = open_table(base).timeline()["instant"].to_pylist()[-1]
        with pytest.raises(HudiFailedError, match="Failed to scan metadata"):
            oracle.sql(f"CALL rollback_to_instant(table => '{name}', instant_time => '{newest}')")
    finally:
        for pair in TOLD.split(","):
            oracle.run(f"RESET {pair.split('=')[0]}")
        oracle.run(f"DROP TABLE {name}")
    assert open_table(base).context.config.version == 6
    assert [each.instant for each in open_table(base).savepoints()] == [instant]


def test_1_0_2_loses_keys_that_came_back_in_logs_alone_where_it_splits_buckets(
    releases: Releases, tmp_path: Path
) -> None:
    """Every write is Hudi's, of an `int` ordering column; the keys are in no base file."""
    base, schema = tmp_path / "table", schema_for("1.0.2")
    kind = Kind(8, "MergeOnRead", "consistent", "flat", metadata=False, maker="them")
    with Them(base, kind, releases["1.0.2"]) as them:
        for operation, numbers, number in (
            ("insert", range(10), 1),
            ("delete", range(20, 22), 2),
            ("upsert", range(20, 22), 3),
        ):
            them.write(operation, rows(numbers, number, schema))
        before = set(ours.read(base)["id"].to_pylist())
        assert set(them.read()["id"].to_pylist()) == before
        assert len(before) == 12
        them.plan("clustering")
        (plan,) = open_table(base).pending_clusterings()
        them.execute("clustering", plan)
        assert before - set(ours.read(base)["id"].to_pylist()) == {"k020", "k021"}
        assert before - set(them.read()["id"].to_pylist()) == {"k020", "k021"}


@pytest.mark.parametrize(("release", "version"), WRITES)
def test_what_create_table_drops_of_later_versions_is_seen_and_mended(
    releases: Releases, tmp_path: Path, release: str, version: int
) -> None:
    base = tmp_path / "table"
    written(base, version)
    dropped_and_mended(releases[release], base)


def contents(base: Path) -> dict[Path, bytes]:
    """Every file of the table but those that the local file system's client keeps beside them."""
    return {path: path.read_bytes() for path in base.rglob("*") if path.is_file() and path.suffix != ".crc"}


@pytest.mark.parametrize("ordering", ["", "hoodie.datasource.write.precombine.field=ts"])
def test_a_late_row_wins_in_a_compaction_that_1_0_2_is_called_for_unless_it_is_told_the_ordering_field(
    tmp_path: Path, releases: Releases, ordering: str
) -> None:
    """Case 59, by event time; a compaction within its writes is right."""
    base, oracle, kind = tmp_path / "table", releases["1.0.2"], Kind(8, "MergeOnRead", "simple", "plain", False, "them")
    them, schema = Them(base, kind, oracle), schema_for("1.0.2")
    late = pa.Table.from_pylist([row | {"ts": 500} for row in rows([1], 2, schema).to_pylist()], schema=schema)
    with them:
        them.write("insert", rows(range(6), 1, schema))
        them.write("upsert", late)
        before = oracle.read(base)
        assert_same_rows(ours.read(base), rows(range(6), 1, schema))
        them.plan("compaction")
        (instant,) = open_table(base).services.compaction().pending()
        told = ",".join(["hoodie.metadata.enable=false", "hoodie.write.table.version=8", *filter(None, [ordering])])
        oracle.sql(f"CALL run_compaction(op => 'run', timestamp => {instant}, path => '{base}', options => '{told}')")
        after = {row["id"]: row["ts"] for row in oracle.read(base).to_pylist()}
    assert after == {row["id"]: row["ts"] for row in before.to_pylist()} | ({} if ordering else {"k001": 500})
