"""The doctor finds what is wrong and nothing in a sound table; what it puts aside can be put back.

Aspects: each kind of damage on each kind of table it can befall; writers at work beside it; golden
tables of Hudi; the quarantine.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_table.api import HudiTable, open_table
from hudi_table.cli import main
from hudi_table.codec.log.rows import delete_block
from hudi_table.errors import InvalidOptionError
from hudi_table.metadata.port import open_context
from hudi_table.model.counts import counted
from hudi_table.model.service.findings import Check, Severity
from hudi_table.model.timeline.instants import Action
from hudi_table.model.timeline.seals import sealed, unsealed
from hudi_table.table.commit.transaction import begin
from hudi_table.table.metadata_dropping import drop_metadata_table
from hudi_table.table.timeline.active import load_timeline
from tests.support import golden
from tests.support.aged import AgedStorage
from tests.support.damaged import after_start, base_of, found, logged, orphan_of, written
from tests.support.faults import FaultPlan, FaultyStorage
from tests.support.tables import reopen, write_file
from tests.support.written import contents, new_table, rows, slices

KEEP = {"hoodie.clean.commits.retained": "1", "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}
OLD = "20200101000000000"


@pytest.mark.parametrize("kind", ["CopyOnWrite", "MergeOnRead"])
@pytest.mark.parametrize("index", ["simple", "global", "bucket"])
def test_a_sound_table_has_no_findings(index, kind):
    table = written(index, type=kind)
    if kind == "MergeOnRead":
        table.compact(force=True)
        table.upsert(rows(("a", "x", 10)))
        table.schedule_compaction(force=True)
    assert [f for f in found(table, keys=True) if f.severity is not Severity.INFO] == []


@pytest.mark.parametrize("name", [*golden.COPY_ON_WRITE, *golden.MERGE_ON_READ])
def test_tables_of_hudi_have_no_orphan_missing_or_broken_files(name, tmp_path):
    table = open_table(str(golden.unpack(name, tmp_path).base))
    wrong = [f for f in found(table, keys=name != "bktcons") if f.severity is Severity.ERROR]
    assert wrong == []


def test_a_file_of_an_instant_that_is_nowhere_is_an_orphan():
    table = written()
    path = orphan_of(table, after_start(table))
    assert [(f.path, f.severity) for f in found(table)] == [(path, Severity.ERROR)]


@pytest.mark.parametrize("kind", ["CopyOnWrite", "MergeOnRead"])
def test_files_that_an_archived_instant_hides_by_coming_back_count_and_are_never_put_aside(kind):
    table = written(type=kind)
    storage = table.context.storage
    before = {info.path: storage.get(info.path) for info in storage.list_dir(".hoodie")[1]}
    for value in range(4):
        table.upsert(rows((f"k{value}", f"p{value}", value)))
    expected = contents(table)
    aged = HudiTable(open_context(AgedStorage(storage)))
    assert aged.archive(KEEP, force=True)
    start = min(path for path in before if path.endswith("commit"))
    storage.put(start, before[start])
    assert contents(table) != expected
    (finding,) = found(table)
    assert (finding.check, finding.path) == (Check.ARCHIVED_INSTANT, start)
    assert not table.quarantine(
        [finding, *(replace(finding, check=Check.ORPHAN_FILE, path=f.path) for f in storage.list())]
    )
    assert aged.archive(KEEP, force=True)
    assert not found(table)
    assert contents(table) == expected


def test_a_log_of_an_instant_that_is_nowhere_is_an_orphan_whatever_its_token_says():
    table = written(type="MergeOnRead")
    log = logged(table).logs[0]
    assert log.instant is not None
    gone = after_start(table)
    path = log.path.replace(".log.1_", ".log.2_")
    keys = pa.array(["a"])
    table.context.storage.put(path, delete_block(keys, log.path.rpartition("/")[0], gone))
    assert [f.path for f in found(table, Check.ORPHAN_FILE)] == [path]


def test_a_write_to_a_log_with_the_token_of_another_is_taken_back_by_its_blocks():
    """Hudi 1.1.1 names its log by the token of the log before it."""
    table = written(type="MergeOnRead")
    log = logged(table).logs[0]
    second = table.upsert(rows(("a", "x", 11)))
    newer = logged(table).logs[-1]
    store = table.context.storage
    renamed = newer.path.replace(str(newer.name.token), str(log.name.token))
    store.put(renamed, store.get(newer.path))
    store.delete(newer.path)
    body = store.get(f".hoodie/{second.instant}.deltacommit")
    body = sealed(unsealed(body).replace(newer.path.encode(), renamed.encode()))
    store.put(f".hoodie/{second.instant}.deltacommit", body)
    fresh = HudiTable(open_context(store))
    fresh.rollback(second.instant, writers_stopped=True)
    assert ("a", "x", 9) in contents(fresh)
    assert found(fresh) == []
    assert [each.path for each in logged(fresh).logs] == [log.path]


def test_a_change_data_log_without_its_commit_is_an_orphan():
    table = written(options={"hoodie.table.cdc.enabled": "true"})
    gone = after_start(table)
    table.context.storage.put(f"x/.{slices(table)[0].file_id}_{gone}.log.1_0-0-0.cdc", b"")
    assert len(found(table, Check.ORPHAN_FILE)) == 1


def test_a_file_that_a_completed_commit_does_not_name_is_told_apart():
    table = written()
    path = orphan_of(table, load_timeline(table.context).commits[-1].time)
    assert [(f.check, f.path) for f in found(table)] == [(Check.UNNAMED_FILE, path)]


def test_files_of_a_writer_at_work_are_no_finding():
    table = written()
    txn = begin(reopen(table.context.storage), Action.COMMIT)
    txn.inflight()
    write_file(txn, 0, "x", table.context.storage.get(base_of(table).path))
    assert found(table) == []


class CommitsWhileListing(FaultyStorage):
    """A store on which another writer begins and commits between the first timeline and the listing
    of the files."""

    def __init__(self, inner, write):
        super().__init__(inner, FaultPlan())
        self.write = write

    def list(self, prefix="", **more):
        write, self.write = self.write, None
        if write is not None:
            write()
        return super().list(prefix, **more)


@pytest.mark.parametrize("kind", ["CopyOnWrite", "MergeOnRead"])
def test_a_commit_between_its_listings_is_no_finding(kind):
    table = written(type=kind)
    store = table.context.storage
    other = HudiTable(open_context(store))
    slow = CommitsWhileListing(store, lambda: other.upsert(rows(("a", "x", 5), ("z", "new", 1))))
    findings = HudiTable(open_context(slow)).doctor()
    assert [f for f in findings if f.severity is not Severity.INFO] == []
    assert slow.write is None


def test_a_file_whose_size_is_not_the_committed_one_is_found():
    table = written()
    path = base_of(table).path
    data = table.context.storage.get(path)
    table.context.storage.put(path, b"PAR1" + data)
    assert [(f.check, f.path) for f in found(table)] == [(Check.WRONG_SIZE, path)]


@pytest.mark.parametrize("damage", [b"", b"PAR1", None], ids=["empty", "magic alone", "cut"])
def test_a_base_file_that_is_no_parquet_is_found(damage):
    table = written()
    path = base_of(table).path
    data = table.context.storage.get(path)
    table.context.storage.put(path, data[: len(data) // 2] if damage is None else damage)
    assert [f.severity for f in found(table, Check.INVALID_PARQUET)] == [Severity.ERROR]


def test_a_key_in_two_files_of_a_partition_is_found_by_reading_keys():
    table = written()
    table.write(rows(("a", "x", 7)), operation="bulk_insert")
    assert found(table) == []
    (finding,) = found(table, keys=True)
    assert (finding.check, finding.path) == (Check.DUPLICATE_KEY, "x")
    assert "1 key of partition 'x'" in finding.message
    assert "'a' (2 times" in finding.message


@pytest.mark.parametrize(("index", "count"), [("simple", 0), ("global", 1)])
def test_a_key_in_two_partitions_is_one_too_many_only_for_a_global_index(index, count):
    table = written(index)
    table.write(rows(("a", "y", 7)), operation="bulk_insert")
    assert len(found(table, Check.DUPLICATE_KEY, keys=True)) == count


def test_keys_are_compared_by_way_of_disk_where_they_do_not_fit():
    data = pa.table({"id": [f"k{number:06d}" for number in range(20_000)]})
    table = new_table(partitioned=False, schema=data.schema)
    table.write(data, operation="bulk_insert")
    table.write(data.slice(0, 500), operation="bulk_insert")
    (finding,) = found(table, Check.DUPLICATE_KEY, keys=True, max_memory=1 << 16)
    assert finding.message.startswith("500 keys of partition ''")


def test_keys_that_are_not_stored_are_computed(tmp_path):
    folder = str(golden.unpack("nometa", tmp_path).base)
    # By the metadata table's listing nobody sees the file that is doubled below.
    drop_metadata_table(open_table(folder).context, "")
    table = open_table(folder)
    count = table.scan().count()
    base, store = base_of(table), table.context.storage
    store.put(base.path.replace(base.file_id, f"{base.file_id[:-3]}f-0"), store.get(base.path))
    doubled = table.scan().count() - count
    (finding,) = found(table, Check.DUPLICATE_KEY, keys=True)
    assert finding.message.startswith(f"{counted(doubled, 'key')} of partition")


@pytest.mark.parametrize("state", ["commit", "requested"])
def test_an_instant_of_no_bytes_is_found(state):
    table = written(type="MergeOnRead" if state == "requested" else "CopyOnWrite")
    if state == "requested":
        table.schedule_compaction(force=True)
    timeline = load_timeline(table.context)
    name = next(n for n in sorted(timeline.files, reverse=True) if n.endswith((".commit", ".compaction.requested")))
    table.context.storage.put(f".hoodie/{name}", b"")
    fresh = HudiTable(open_context(table.context.storage))
    assert [f.path for f in found(fresh, Check.UNREADABLE_INSTANT)] == [f".hoodie/{name}"]


def test_an_instant_that_cannot_be_parsed_is_found():
    table = written()
    name = load_timeline(table.context).commits[-1].file_name
    table.context.storage.put(f".hoodie/{name}", b"[1]")
    fresh = HudiTable(open_context(table.context.storage))
    assert [f.path for f in found(fresh, Check.UNREADABLE_INSTANT)] == [f".hoodie/{name}"]


def test_a_wrong_checksum_and_a_backup_left_over_are_found():
    table = written()
    store = table.context.storage
    good = store.get(".hoodie/hoodie.properties")
    store.put(".hoodie/hoodie.properties.backup", good)
    store.put(".hoodie/hoodie.properties", good.replace(b"hoodie.table.checksum=", b"hoodie.table.checksum=1"))
    findings = found(HudiTable(open_context(store)))
    assert [(f.check, f.path.rpartition("/")[2]) for f in findings] == [
        (Check.PROPERTIES, "hoodie.properties"),
        (Check.PROPERTIES, "hoodie.properties.backup"),
    ]


def test_two_file_groups_of_one_bucket_are_found():
    table = written("bucket")
    store = table.context.storage
    base = base_of(table)
    twin = base.path.replace(base.file_id[9:17], "ffffffff")
    store.put(twin, store.get(base.path))
    assert len(found(table, Check.DUPLICATE_BUCKET)) == 1


def test_keys_of_another_bucket_are_found():
    table = written("bucket", partitioned=False)
    store = table.context.storage
    first, second = base_of(table), base_of(table, 1)
    store.put(first.path, store.get(second.path))
    (finding,) = found(table, Check.WRONG_BUCKET)
    assert finding.path == first.path


def test_a_file_group_of_no_bucket_is_found():
    table = written("bucket")
    orphan_of(table, "20190101000000000")
    path = base_of(table).path
    table.context.storage.put(path.replace("/0000000", "/1111111"), table.context.storage.get(path))
    assert Check.WRONG_BUCKET in {f.check for f in found(table)}


def test_a_partition_without_its_metadata_file_is_found():
    table = written()
    table.context.storage.delete("x/.hoodie_partition_metadata")
    assert [(f.check, f.path) for f in found(table)] == [(Check.PARTITION_METADATA, "x")]


def test_what_a_dead_writer_left_is_told_with_its_age():
    table = written()
    store = table.context.storage
    store.put(f".hoodie/{OLD}.commit.requested", b"")
    store.put(f".hoodie/.temp/{OLD[:-1]}1/x/file.parquet.marker.CREATE", b"")
    store.put(f".hoodie/.heartbeat/{OLD}", b"")
    store.put(f".hoodie/{OLD}.claim", b"")
    assert found(table, Check.PENDING_INSTANT) == []
    table.context.clock = reopen(store).clock
    table.context.clock.moment = store.head(f".hoodie/.heartbeat/{OLD}").modified
    table.context.clock.advance(3600)
    pending = found(table, Check.PENDING_INSTANT)
    assert sorted(f.path for f in pending) == [f".hoodie/{OLD}.claim", f".hoodie/{OLD}.commit.requested"]
    assert all("3,6" in f.message for f in pending)
    assert {f.path for f in found(table, Check.LEFTOVER)} == {f".hoodie/.temp/{OLD[:-1]}1", f".hoodie/.heartbeat/{OLD}"}


def test_staged_rows_that_nobody_has_committed_for_a_day_are_told():
    table = written()
    store = table.context.storage
    store.put(".hoodie/.staged/token-000000-1.arrow", b"rows")
    table.context.clock = reopen(store).clock
    table.context.clock.moment = store.head(".hoodie/.staged/token-000000-1.arrow").modified
    assert found(table, Check.LEFTOVER) == []
    table.context.clock.advance(86_400)
    assert [f.path for f in found(table, Check.LEFTOVER)] == [".hoodie/.staged/token-000000-1.arrow"]


def test_a_wrong_budget_is_refused():
    with pytest.raises(InvalidOptionError, match="max_memory is 0"):
        written().doctor(max_memory=0)


def test_the_verb_tells_of_properties_that_cannot_be_read(tmp_path: Path, capsys):
    base = tmp_path / "t"
    new_table(str(base)).upsert(rows(("a", "x", 1)))
    (base / ".hoodie" / "hoodie.properties").write_text("nothing=here\n")
    assert main(["doctor", str(base)]) == 3
    assert "names no hoodie.table.name" in capsys.readouterr().out
