"""Archiving of tables of versions 8 and 9: what stands in the archive, its levels and manifests,
several archivers, and what releases of Hudi left.

Aspects: (1) every instant that left is told once, with the bytes that its files held; (2) files of
a level are merged, readers of the recent past find theirs; (3) archivers that meet, sleep or die
lose nothing; (4) archives of Hudi are gone on with, those with its bugs too; (5) any history of
archivings is equal to a dictionary of the timeline files.
"""

from __future__ import annotations

import io
import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_table.api import HudiTable, open_table
from hudi_table.codec.lsm_entries import LSM_SCHEMA, lsm_file, read_lsm_rows
from hudi_table.errors import CorruptTableError, UnavailableError
from hudi_table.model.service.services import ServiceResult
from hudi_table.services.archiving import bodies, lsm
from hudi_table.services.archiving.lsm import add_rows, compact_levels
from hudi_table.services.archiving.policy import ArchivePolicy
from hudi_table.table.store.ports import Storage
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.timeline.archived import archived_completions, archived_entries
from hudi_table.table.timeline.lsm import read_files, read_manifest
from tests.hudi_table.services.test_archiving import Interposed
from tests.support import golden
from tests.support.aged import AgedStorage
from tests.support.crashes import LATER, copied, opened, prepared, read, rows
from tests.support.scale import scaled

HISTORY = ".hoodie/timeline/history"
KEEP = {"hoodie.clean.commits.retained": "1", "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}
SIMPLE = {"hoodie.index.type": "SIMPLE"}


def archive(store: Any, **options: str) -> ServiceResult | None:
    done = opened(AgedStorage(store)).archive(KEEP | options, force=True)
    assert done is None or isinstance(done, ServiceResult)
    return done


def written(writes: int) -> Storage:
    store = prepared(LATER)
    for number in range(writes):
        opened(store).write(rows(("a", "x", number)), operation="upsert")
    return store


def row(number: int, metadata: bytes = b"") -> dict[str, Any]:
    time = f"2026010100000{number:04d}"
    return {
        "instantTime": time,
        "completionTime": f"{int(time) + 1}",
        "action": "rollback",
        "metadata": metadata,
        "version": 1,
    }


def table_of(*numbers: int, metadata: bytes = b"") -> pa.Table:
    return pa.Table.from_pylist([row(number, metadata) for number in numbers], schema=LSM_SCHEMA)


def archived(table: HudiTable) -> dict[str, dict[str, Any]]:
    """Every row of the archive, by its time; each is there once."""
    storage = table.context.storage
    files = read_manifest(storage, HISTORY).files
    found = [r for f in files for r in read_lsm_rows(storage.get(f"{HISTORY}/{f.name}"), path=f.name).to_pylist()]
    assert len({r["instantTime"] for r in found}) == len(found)
    return {r["instantTime"]: r for r in found}


def test_an_archived_instant_keeps_its_completion_and_the_bytes_of_its_files() -> None:
    store = written(4)
    table = opened(store)
    table.clean({"hoodie.clean.commits.retained": "1"}, force=True)
    before = load_timeline(table.context)
    held = {name: store.get(f".hoodie/timeline/{name}") for name in before.files}
    archive(store)
    left = load_timeline(opened(store).context)
    gone = [i for i in before.completed if i not in left.completed]
    found = archived(opened(store))
    assert found.keys() == {i.time for i in gone}
    for instant in gone:
        kept = found[instant.time]
        assert (kept["completionTime"], kept["action"]) == (instant.completion, instant.action.value)
        assert kept["metadata"] == held[instant.file_name]
    assert archived_completions(opened(store).context) == {i.time: i.completion for i in gone}


def test_a_file_is_compressed_and_made_as_hudi_makes_it(tmp_path: Path) -> None:
    theirs = next((golden.unpack("v8_lsm", tmp_path).base / HISTORY).glob("*.parquet"))
    ours, hudis = pq.ParquetFile(io.BytesIO(lsm_file(table_of(1, 2)))), pq.ParquetFile(theirs)
    assert ours.schema_arrow.remove_metadata() == hudis.schema_arrow.remove_metadata()
    assert json.loads(ours.metadata.metadata[b"parquet.avro.schema"]) == json.loads(
        hudis.metadata.metadata[b"parquet.avro.schema"]
    )
    compressions = {ours.metadata.row_group(0).column(i).compression for i in range(len(LSM_SCHEMA))}
    assert compressions == {"GZIP"}


def test_files_of_a_level_become_one_of_the_next_and_manifests_of_the_past_stay_for_readers() -> None:
    store = written(0)
    options = {"hoodie.timeline.compaction.batch.size": "2", "hoodie.timeline.manifest.retained.versions": "2"}
    known: set[str] = set()
    levels: set[int] = set()
    for number in range(9):
        opened(store).write(rows(("a", "x", number)), operation="upsert")
        known |= {i.time for i in load_timeline(opened(store).context).completed}
        archive(store, **options)
        now = read_manifest(store, HISTORY)
        levels |= {file.level for file in now.files}
        assert all(len([f for f in now.files if f.level == level]) < 2 for level in {f.level for f in now.files})
        assert store.get(f"{HISTORY}/_version_") == str(now.number).encode()
        for manifest in now.others:
            assert all(store.get(f"{HISTORY}/{f.name}") for f in read_files(store, f"{HISTORY}/manifest_{manifest}"))
        assert len(now.others) <= 2 + 3 + 1
    assert levels >= {0, 1, 2}
    active = {i.time for i in load_timeline(opened(store).context).completed}
    assert archived(opened(store)).keys() | active == known


def test_what_would_take_too_much_memory_is_not_merged(monkeypatch: pytest.MonkeyPatch) -> None:
    store = written(0)
    ctx = opened(AgedStorage(store)).context
    for number in range(4):
        add_rows(ctx, table_of(number, metadata=bytes(1000)))
    monkeypatch.setattr(lsm, "MERGED_BYTES", 3_000)
    assert compact_levels(ctx, ArchivePolicy(level_files=4)) == 0
    monkeypatch.undo()
    assert compact_levels(ctx, ArchivePolicy(level_files=4)) == 4
    assert len(archived(opened(store))) == 4


def test_large_archives_go_to_several_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lsm, "FILE_BYTES", 1)
    monkeypatch.setattr(bodies, "BODIES_AHEAD", 2)
    store = written(6)
    archive(store)
    assert len(read_manifest(store, HISTORY).files) >= 3
    assert read(store) == {("a", "x", 5), ("b", "x", 2), ("c", "y", 3)}


def test_an_instant_that_a_dead_archiver_left_in_both_is_archived_once() -> None:
    store = written(5)
    twin = copied(store)
    archive(store)
    for info in store.list(HISTORY):
        twin.put(info.path, store.get(info.path))
    opened(twin).write(rows(("b", "x", 7)), operation="upsert")
    names = opened(twin).timeline(archived=True)["instant"].to_pylist()
    archive(twin)
    assert len(archived(opened(twin))) == len(archived(opened(store))) + 1
    assert opened(twin).timeline(archived=True)["instant"].to_pylist() == sorted(set(names))


def test_files_of_one_name_and_other_rows_are_both_kept() -> None:
    """Two archivers whose files begin and end alike."""
    store = written(0)
    ctx = opened(AgedStorage(store)).context
    first, last = row(1)["instantTime"], row(9)["instantTime"]
    name = f"{HISTORY}/{first}_{last}_0.parquet"
    store.put(name, lsm_file(table_of(1, 5, 9)))
    add_rows(ctx, table_of(1, 4, 9))
    assert store.get(name) == lsm_file(table_of(1, 5, 9))
    assert archived(opened(store)).keys() == {row(n)["instantTime"] for n in (1, 4, 9)}


def test_of_two_archivers_at_once_neither_takes_the_instants_of_the_other_out_of_the_archive() -> None:
    store = written(0)
    ctx = opened(AgedStorage(store)).context

    def other() -> None:
        add_rows(ctx, table_of(2))

    add_rows(opened(Interposed(store, "put_if_absent", "manifest_", other)).context, table_of(1))
    assert archived(opened(store)).keys() == {row(n)["instantTime"] for n in (1, 2)}


@pytest.mark.parametrize("told", [b"1", b"99", b"no number", None])
def test_a_version_that_tells_another_manifest_is_put_right_before_anything_is_deleted(told: bytes | None) -> None:
    store = written(3)
    archive(store)
    opened(store).write(rows(("a", "x", 7)), operation="upsert")
    archive(store)
    known = archived(opened(store))
    if told is None:
        store.delete(f"{HISTORY}/_version_")
    else:
        store.put(f"{HISTORY}/_version_", told)
    assert archived(opened(store)) == known
    opened(store).write(rows(("a", "x", 8)), operation="upsert")
    archive(store)
    newest = read_manifest(store, HISTORY).number
    assert store.get(f"{HISTORY}/_version_") == str(newest).encode()
    assert len(archived(opened(store))) == len(known) + 1


def test_an_archiver_that_slept_names_no_file_that_may_be_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    store = written(4)
    before = opened(store).timeline()
    monkeypatch.setattr(lsm, "_put", _asleep(lsm._put))
    with pytest.raises(UnavailableError, match="nothing was deleted, archive again"):
        archive(store)
    monkeypatch.undo()
    assert opened(store).timeline().equals(before)
    assert read_manifest(store, HISTORY).files == ()
    archive(store)
    assert archived(opened(store)).keys() == set(before["instant"].to_pylist()[:-2])


def _asleep(put: Any) -> Any:
    def slow(ctx: Any, *arguments: Any) -> Any:
        files = put(ctx, *arguments)
        clock = ctx.clock
        slept = clock.boot_seconds() + ctx.settings.quarantine_seconds
        ctx.clock = type("Later", (), {
            "boot_seconds": lambda self: slept, "now": lambda self: clock.now(), "sleep": lambda self, seconds: None,
        })()  # fmt: skip
        return files

    return slow


def test_a_file_that_nobody_names_is_deleted_once_it_is_old() -> None:
    store = written(0)
    ctx = opened(store).context
    orphan = f"{HISTORY}/{row(3)['instantTime']}_{row(4)['instantTime']}_0.parquet"
    store.put(orphan, lsm_file(table_of(3, 4)))
    for number in (1, 2):
        add_rows(ctx, table_of(number))
    compact_levels(ctx, ArchivePolicy(level_files=2))
    assert store.get(orphan)
    aged = opened(AgedStorage(store)).context
    for number in (5, 6):
        add_rows(aged, table_of(number))
    compact_levels(aged, ArchivePolicy(level_files=2))
    assert orphan not in [info.path for info in store.list(HISTORY)]
    assert len(archived(opened(store))) == 4


def test_nothing_is_deleted_of_what_cannot_be_read() -> None:
    store = written(4)
    name = load_timeline(opened(store).context).commits[0].file_name
    store.put(f".hoodie/timeline/{name}", b"Obj\x01 no container")
    before = [info.path for info in store.list(".hoodie/timeline")]
    with pytest.raises(CorruptTableError, match=name):
        archive(store)
    assert [info.path for info in store.list(".hoodie/timeline")] == before


@pytest.mark.parametrize("name", ["v8_lsm", "v9_mor_sched", "up68", "up69"])
def test_an_archive_of_hudi_is_gone_on_with_and_its_files_are_merged_with_ours(name: str, tmp_path: Path) -> None:
    """Rows newest first, and records without a container (up68), stand in ours as they stood in
    theirs."""
    base = golden.unpack(name, tmp_path).base
    table = open_table(str(base))
    known = {e["commitTime"]: e for entries in archived_entries(table.context) for e in entries}
    seen = table.scan(meta=True).to_arrow()
    ctx = opened(AgedStorage(table.context.storage)).context
    add_rows(ctx, table_of(*range(3)))
    compact_levels(ctx, ArchivePolicy(level_files=2))
    for number in range(3, 5):
        add_rows(ctx, table_of(number))
    compact_levels(ctx, ArchivePolicy(level_files=2))
    found = {e["commitTime"]: e for entries in archived_entries(open_table(str(base)).context) for e in entries}
    assert found.keys() == known.keys() | {row(n)["instantTime"] for n in range(5)}
    assert {time: found[time] for time in known} == known
    assert open_table(str(base)).scan(meta=True).to_arrow().equals(seen)


def test_the_archive_of_a_table_that_hudi_downgraded_is_found_in_the_folder_where_it_lies(tmp_path: Path) -> None:
    table = open_table(str(golden.unpack("lsm96", tmp_path).base))
    found = {e["commitTime"] for entries in archived_entries(table.context) for e in entries}
    assert table.context.config.archive_folder == "history"
    assert len(found) == 20
    assert table.history(archived=True).num_rows > table.history().num_rows


def test_any_history_of_archivings_is_equal_to_a_dictionary() -> None:
    chance = random.Random(19)
    for _ in range(scaled(4)):
        store, model = written(0), dict[str, bytes]()
        numbers = list(range(1, 200))
        while len(numbers) > 150:
            ctx = opened(AgedStorage(store) if chance.random() < 0.5 else store).context
            taken = sorted(chance.sample(numbers[:40], chance.randint(1, 6)))
            again = chance.sample(sorted(model), min(len(model), chance.randint(0, 2)))
            numbers = [number for number in numbers if number not in taken]
            body = chance.randbytes(chance.randint(0, 40))
            found = {**{row(n)["instantTime"]: body for n in taken}, **{time: model[time] for time in again}}
            made = [row(int(time[-4:]), data) for time, data in sorted(found.items())]
            add_rows(ctx, pa.Table.from_pylist(made, schema=LSM_SCHEMA))
            model |= found
            if chance.random() < 0.7:
                compact_levels(ctx, ArchivePolicy(level_files=chance.randint(2, 4), manifests=chance.randint(1, 3)))
            if chance.random() < 0.2:
                store.delete(f"{HISTORY}/_version_")
            assert {time: r["metadata"] for time, r in archived(opened(store)).items()} == model
        completions = archived_completions(opened(store).context)
        assert completions == {time: row(int(time[-4:]))["completionTime"] for time in model}
