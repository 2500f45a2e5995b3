"""Our timeline in Hudi's hands: cleaning, archiving, rolling back a write of ours that died,
rewriting the properties."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from hudi_table.model.table.config import TableType
from hudi_table.table.store.opening import open_storage
from tests.interop import ours
from tests.interop.conftest import Hudis
from tests.interop.model import Model, rows
from tests.interop.test_matrix import upsert
from tests.support.crashes import opened
from tests.support.faults import Crash, Fault, FaultPlan, FaultyStorage
from tests.support.hudi_oracle import HudiOracle

pytestmark = [pytest.mark.interop, pytest.mark.by_turns]

OURS = ("hoodie.index.", "hoodie.bucket.", "hoodie.lakeops.", "hoodie.compaction.payload.class", "hoodie.table.version")


def properties(base: Path) -> dict[str, str]:
    lines = (base / ".hoodie" / "hoodie.properties").read_text("utf-8").splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))


def timeline(base: Path, suffix: str) -> list[str]:
    return sorted(path.name for path in (base / ".hoodie").glob(f"*{suffix}"))


@pytest.mark.parametrize("partitioned", [True, False], ids=["partitioned", "flat"])
def test_hudi_cleans_and_archives_our_commits(hudis: Hudis, tmp_path: Path, partitioned: bool) -> None:
    """Commits and replacecommits of ours, and the files that they superseded, go the way of Hudi's
    own."""
    base, model = tmp_path / "table", Model(partitioned=partitioned)
    ours.create(base, index="bucket", partitioned=partitioned)
    for version in range(1, 8):
        operation = {4: "insert_overwrite", 5: "delete"}.get(version, "upsert")
        ours.write(base, operation, data := rows(range(version, version + 12), version))
        model.apply(operation, data)
    services = {
        "hoodie.cleaner.commits.retained": "1",
        "hoodie.keep.min.commits": "2",
        "hoodie.keep.max.commits": "3",
        # With a metadata table Hudi archives nothing before that one is compacted.
        "hoodie.metadata.enable": "false",
    }

    def go_on(oracle: HudiOracle, copy: Path) -> None:
        expected = model.copy()
        stored, files = properties(copy), len(list(copy.rglob("*.parquet")))
        for version in (8, 9):
            upsert(oracle, copy, data := rows(range(3, 9), version), **services)
            expected.apply("upsert", data)
            ours.assert_all_read(copy, oracle, expected.rows())
        assert len(timeline(copy, ".commit")) <= 3, "nothing was archived: the test shows nothing"
        assert timeline(copy, ".clean"), "nothing was cleaned: the test shows nothing"
        assert len([path for path in copy.rglob("*.parquet") if ".hoodie" not in path.parts]) < files
        kept = {key: value for key, value in properties(copy).items() if key.startswith(OURS)}
        assert kept == {key: value for key, value in stored.items() if key.startswith(OURS)}
        assert list((copy / ".hoodie" / ".txn").glob("*.json"))
        for operation, version in (("upsert", 10), ("insert_overwrite", 11), ("upsert", 12)):
            ours.write(copy, operation, data := rows(range(5, 20), version))
            expected.apply(operation, data)
            ours.assert_all_read(copy, oracle, expected.rows())

    hudis.each_on_a_copy(base, go_on)


def die_undecided(base: Path, data: pa.Table, options: dict[str, str] | None = None) -> None:
    """An upsert of ours that dies with its files written, just before it would be decided."""
    plan = FaultPlan(at=1, fault=Fault.CRASH_BEFORE, only=lambda call: call.writes and ".txn/" in call.path)
    with pytest.raises(Crash):
        opened(FaultyStorage(open_storage(str(base)), plan)).write(data, options=options)


def data_files(base: Path) -> set[str]:
    """Names of the base files and the logs."""
    return {path.name for path in base.rglob("*") if path.is_file() and ".hoodie" not in path.parts} - {METADATA}


METADATA = ".hoodie_partition_metadata"
TYPE = "hoodie.datasource.write.table.type"
DYING: dict[str, tuple[str, str, dict[str, str], int]] = {
    "rewrites by buckets": ("bucket", "CopyOnWrite", {}, 0),
    "rewrites and new files": ("simple", "CopyOnWrite", {}, 0),
    "files that roll over": (
        "simple",
        "CopyOnWrite",
        {
            "hoodie.parquet.max.file.size": "20000",
            "hoodie.parquet.small.file.limit": "0",
            "hoodie.copyonwrite.record.size.estimate": "1",
            "hoodie.lakeops.row.group.rows": "50",
            "hoodie.parquet.compression.codec": "uncompressed",
        },
        1_000,
    ),
    "logs": ("bucket", "MergeOnRead", {}, 0),
}
"""Index, type, options of the write that dies, and how many more new rows it has."""


@pytest.mark.parametrize("case", DYING)
def test_hudi_rolls_back_a_write_of_ours_that_died(hudis: Hudis, tmp_path: Path, case: str) -> None:
    """Its files are marked in Hudi's batched form, so Hudi undoes them before it writes; until then
    nobody sees them."""
    index, kind, options, more = DYING[case]
    base, model = tmp_path / "table", Model(partitioned=True)
    ours.create(base, index=index, partitioned=True, type=kind)
    ours.write(base, "upsert", data := rows(range(12), 1))
    model.apply("upsert", data)
    before = data_files(base)
    die_undecided(base, rows([*range(6, 18), *range(1_000, 1_000 + more)], 2), options)
    lost = data_files(base) - before
    assert lost
    inflight = timeline(base, ".inflight")[-1]
    (folder,) = (base / ".hoodie" / ".temp").iterdir()
    batches = {path.name: path.read_text("utf-8") for path in folder.iterdir()}
    assert folder.name == inflight.partition(".")[0]
    assert batches.pop("MARKERS.type") == "TIMELINE_SERVER_BASED"
    assert len(batches) == 1 if not more else len(batches) > 3, (
        "the first files have one batch, each later one has its own"
    )
    assert {
        line.rpartition("/")[2].partition(".marker.")[0] for batch in batches.values() for line in batch.split()
    } == lost

    def go_on(oracle: HudiOracle, copy: Path) -> None:
        expected = model.copy()
        ours.assert_all_read(copy, oracle, expected.rows())
        upsert(oracle, copy, data := rows(range(3, 9), 3), **{TYPE: TableType(kind).hudi_name})
        expected.apply("upsert", data)
        # The rollback of 0.15.0 is later than the write that begins it. At its block in a log every reader stops until a later write completes.
        if (kind, oracle.version) != ("MergeOnRead", "0.15.0"):
            ours.assert_all_read(copy, oracle, expected.rows())
        assert timeline(copy, ".rollback")
        assert not (copy / folder.relative_to(base)).exists()
        # A log of a later version of the format goes as a file; before that it stays, beside a block that says what counts no more.
        assert kind == "MergeOnRead" or not lost & data_files(copy)
        ours.write(copy, "upsert", data := rows(range(6, 20), 4))
        expected.apply("upsert", data)
        ours.assert_all_read(copy, oracle, expected.rows())

    hudis.each_on_a_copy(base, go_on)
