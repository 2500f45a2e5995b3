"""Looking at real tables: figures, checkpoints, failed writes, keys with colons, and tables that
Hudi wrote."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pytest

from hudi_operator.api.resources import desired_table
from hudi_operator.plan.observed import Problem, TableObservation, Trace
from hudi_operator.plan.status.report import records_of
from hudi_operator.runtime import known, observe
from hudi_operator.runtime.observe import Observer
from hudi_operator.runtime.observing.stores import storage_options
from hudi_table.api import HudiTable, create_table
from hudi_table.model.job.checkpoint import Checkpoint, SourceFile, advance, key_of
from hudi_table.model.service.debt import ArchivingDebt
from hudi_table.model.service.services import ServiceType
from hudi_table.model.table.properties import METADATA_DROPPED
from hudi_table.model.timeline.instants import Action
from hudi_table.table.commit.transaction import begin
from hudi_table.table.store.clock import SystemClock
from hudi_table.table.store.opening import open_storage
from hudi_table.table.timeline.properties import replace_properties
from hudi_table.table.view.file_system_view import FileSystemView
from tests.support import golden
from tests.support.aged import AgedStorage
from tests.support.crashes import opened
from tests.support.manifests import ingest, manifest, stored
from tests.support.tables import TestClock

ROWS = pa.table({"id": ["a", "b", "c"], "ts": pa.array([1, 2, 3], pa.int64()), "day": ["x", "x", "y"]})
INDEX = {"type": "Bucket", "buckets": 2}


def make(folder: Path, **changes: Any) -> HudiTable:
    fields: dict[str, Any] = {"record_key": "id", "ordering_fields": "ts", "index": INDEX, "partition_by": "day"}
    return create_table(str(folder / "lake"), ROWS.schema, **(fields | changes))


def look(location: Path, observer: Observer | None = None) -> TableObservation | Problem | None:
    document = stored(manifest(location=f"file://{location}", recordKey=["id"]))
    return (observer or Observer(SystemClock())).table(desired_table(document), {})


def seen(location: Path, observer: Observer | None = None) -> TableObservation:
    found = look(location, observer)
    assert isinstance(found, TableObservation), found
    return found


def taken(attempt: str, *names: str) -> Checkpoint:
    files = tuple(SourceFile(name, 1, "v", SystemClock().now()) for name in names)
    return advance(None, "feed", attempt, files, files)


def test_nothing_is_no_table_and_no_problem(tmp_path: Path) -> None:
    assert look(tmp_path / "lake") is None
    (tmp_path / "lake" / ".hoodie").mkdir(parents=True)
    assert look(tmp_path / "lake") is None


def test_figures_are_those_of_a_snapshot_read(tmp_path: Path) -> None:
    table = make(tmp_path)
    table.upsert(ROWS)
    table.upsert(ROWS.slice(0, 1))
    table.delete(ROWS.slice(2))
    found = seen(tmp_path / "lake")
    assert records_of(found) == table.scan().count() == 2
    assert sum(f.size for f in found.files) > 0
    assert found.last_moment is not None
    assert abs(found.last_moment - SystemClock().now()) < timedelta(minutes=5)


def test_event_times_are_those_that_writes_record(tmp_path: Path) -> None:
    table, observer, day = make(tmp_path), Observer(SystemClock()), 1767225600000
    track = {"hoodie.write.track.event.time.watermark": "true"}
    table.upsert(ROWS)
    assert seen(tmp_path / "lake", observer).event_times is None
    for start in (day, day - 1000):
        times = pa.array([start, start + 1, start + 2], pa.int64())
        table.insert(ROWS.set_column(1, "ts", times), options=track)
    table.delete(ROWS.slice(2))
    for looking in (observer, None):
        assert seen(tmp_path / "lake", looking).event_times == (day - 1000, day + 2)


def test_the_newest_checkpoint_of_each_ingest_counts(tmp_path: Path) -> None:
    table = make(tmp_path)
    first, second, other = taken("one", "1"), taken("two", "1", "2"), taken("three", "9")
    table.upsert(ROWS, extra_metadata={key_of("feed"): first.to_text()})
    newest = table.upsert(ROWS, extra_metadata={key_of("feed"): second.to_text()})
    table.upsert(ROWS, extra_metadata={key_of("other"): other.to_text()})
    table.upsert(ROWS)
    found = seen(tmp_path / "lake")
    assert found.checkpoints["feed"].checkpoint == second
    assert found.checkpoints["feed"].instant == newest.instant
    assert found.checkpoints["other"].checkpoint == other
    assert set(found.attempts) == {"one", "two", "three"}


def test_a_damaged_checkpoint_is_a_problem_of_its_ingest_alone(tmp_path: Path) -> None:
    table = make(tmp_path)
    good = taken("one", "1")
    result = table.upsert(ROWS, extra_metadata={key_of("feed"): "{}", key_of("other"): good.to_text()})
    found = seen(tmp_path / "lake")
    assert found.checkpoints["other"].checkpoint == good
    assert set(found.checkpoints) == {"other"}
    problem = found.unknown_checkpoints["feed"]
    assert problem.reason == "CorruptTable"
    assert result.instant in problem.message
    table.upsert(ROWS, extra_metadata={key_of("feed"): good.to_text()})
    assert seen(tmp_path / "lake").checkpoints["feed"].checkpoint == good, "the newest counts"


class TestAnIngestThatRests:
    """Its checkpoint is found, however many others have written since and wherever its commit is
    now."""

    HELD = taken("one", "1", "2")
    KEEP: ClassVar = {
        "hoodie.keep.min.commits": "2",
        "hoodie.keep.max.commits": "3",
        "hoodie.clean.commits.retained": "1",
    }

    def rests(self, folder: Path, commits: int) -> HudiTable:
        table = make(folder)
        table.upsert(ROWS, extra_metadata={key_of("feed"): self.HELD.to_text()})
        for _ in range(commits):
            table.upsert(ROWS.slice(0, 1))
        return table

    def found(self, folder: Path, observer: Observer | None = None) -> Checkpoint | None:
        document = stored(manifest(location=f"file://{folder}/lake", recordKey=["id"], ingest=[ingest()]))
        found = (observer or Observer(SystemClock())).table(desired_table(document), {})
        assert isinstance(found, TableObservation), found
        assert not found.unknown_checkpoints
        return found.files_held("feed")

    def archived(self, folder: Path) -> None:
        assert opened(AgedStorage(open_storage(f"file://{folder}/lake"))).archive(self.KEEP)

    def test_behind_more_commits_than_are_read_for_their_rows(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(known, "COMMITS_READ_MAX", 2)
        observer = Observer(SystemClock())
        table = self.rests(tmp_path, 4)
        assert self.found(tmp_path, observer) == self.HELD
        table.upsert(ROWS)
        assert self.found(tmp_path, observer) == self.HELD

    def test_in_the_archive_whoever_looks_and_whenever(self, tmp_path: Path) -> None:
        watching = Observer(SystemClock())
        table = self.rests(tmp_path, 4)
        assert self.found(tmp_path, watching) == self.HELD
        self.archived(tmp_path)
        assert self.found(tmp_path, watching) == self.found(tmp_path) == self.HELD
        newer = taken("two", "1", "2", "3")
        table.upsert(ROWS, extra_metadata={key_of("feed"): newer.to_text()})
        assert self.found(tmp_path, watching) == newer

    def test_in_the_archive_is_read_there_once(self, tmp_path: Path) -> None:
        self.rests(tmp_path, 4)
        self.archived(tmp_path)
        watching = Observer(SystemClock())
        assert self.found(tmp_path, watching) == self.HELD
        for path in (tmp_path / "lake" / ".hoodie" / "timeline" / "history").iterdir():
            path.write_bytes(b"damaged since")
        assert self.found(tmp_path, watching) == self.HELD

    def test_that_wrote_and_was_archived_while_nobody_looked(self, tmp_path: Path) -> None:
        watching = Observer(SystemClock())
        table = make(tmp_path)
        table.upsert(ROWS)
        assert self.found(tmp_path, watching) is None
        table.upsert(ROWS, extra_metadata={key_of("feed"): self.HELD.to_text()})
        for _ in range(5):
            table.upsert(ROWS.slice(0, 1))
        self.archived(tmp_path)
        assert self.found(tmp_path, watching) == self.HELD

    def test_whose_newest_commit_was_taken_back(self, tmp_path: Path) -> None:
        watching = Observer(SystemClock())
        table = self.rests(tmp_path, 1)
        kept = table.savepoint()
        table.upsert(ROWS, extra_metadata={key_of("feed"): taken("two", "3").to_text()})
        assert self.found(tmp_path, watching) == taken("two", "3")
        table.restore(kept.instant, writers_stopped=True)
        assert self.found(tmp_path, watching) == self.HELD


def test_what_is_remembered_has_bounds_and_is_read_again_past_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, most in (
        ("FACTS_MAX", 8),
        ("ANSWERS_MAX", 40),
        ("FOOTERS_MAX", 2),
        ("ENTRIES_MAX", 2),
        ("BODIES_BYTES_MAX", 1),
    ):
        monkeypatch.setattr(observe, name, most)
    observer = Observer(SystemClock())
    folders = [tmp_path / str(number) for number in range(4)]
    for folder in folders:
        table = make(folder)
        for number in range(3):
            table.upsert(ROWS.slice(0, 1 + number))
    first = [seen(folder / "lake", observer) for folder in folders]
    assert [seen(folder / "lake", observer) for folder in folders] == first
    for cache in (observer._tables, observer._answers, observer._footers, observer._entries, observer._bodies):
        assert len(cache) <= 2


def test_a_pending_write_is_told_and_after_long_is_taken_for_failed(tmp_path: Path) -> None:
    table = make(tmp_path)
    table.upsert(ROWS)
    begin(table.context, Action.COMMIT).inflight()
    now = seen(tmp_path / "lake")
    assert len(now.pending) == 1
    assert now.oldest_pending is not None
    assert timedelta(0) <= SystemClock().now() - now.oldest_pending < timedelta(minutes=1)
    assert now.suspects == ()
    late = TestClock(SystemClock().now() + timedelta(hours=1))
    assert seen(tmp_path / "lake", Observer(late)).suspects == (now.pending[0].file_name,)
    begin(table.context, Action.COMMIT).inflight()
    # Digits that are no moment, as another engine may leave them.
    (tmp_path / "lake/.hoodie/timeline/20261399000000000.commit.requested").touch()
    later = seen(tmp_path / "lake")
    assert (len(later.pending), later.oldest_pending) == (3, now.oldest_pending)


@pytest.mark.parametrize(
    ("keys", "changes", "expected"),
    [
        (["a:1", "b"], {}, True),
        (["a", "b"], {}, None),
        (["a:1", "b"], {"index": "Simple"}, None),
    ],
)
def test_keys_with_colons_are_noticed_where_they_matter(
    tmp_path: Path, keys: list[str], changes: dict[str, Any], expected: bool | None
) -> None:
    rows = pa.table({"id": keys, "ts": pa.array([1, 1], pa.int64()), "day": ["x", "x"]})
    make(tmp_path, **changes).upsert(rows)
    assert seen(tmp_path / "lake").colon_keys is expected


def test_what_cannot_change_is_read_once(tmp_path: Path) -> None:
    table = make(tmp_path)
    table.upsert(ROWS)
    observer = Observer(SystemClock())
    first = seen(tmp_path / "lake", observer)
    for path in (tmp_path / "lake" / ".hoodie" / "timeline").glob("*.commit"):
        path.write_text("damaged since")
    assert seen(tmp_path / "lake", observer) == first


@pytest.mark.parametrize("name", ["bktcow", "nopart", "tskg", "v8_cow_hive", "v9_rli_part"])
def test_tables_that_hudi_wrote_are_seen(tmp_path: Path, name: str) -> None:
    table = golden.unpack(name, tmp_path)
    found = seen(table.base)
    assert records_of(found) == table.rows().num_rows


def test_local_paths_get_no_options_of_stores() -> None:
    document = stored(
        manifest(location="s3://lake/x", recordKey=["id"], storage={"endpoint": "http://s3:1", "region": "r"})
    )
    spec = desired_table(document).spec
    assert spec is not None
    secret = {"AWS_ACCESS_KEY_ID": "a", "HUDI_INDEX_CONNECTION": "postgresql://…"}
    assert storage_options(spec, "file:///x", secret) == {}
    assert storage_options(spec, "s3://b/x", secret) == {
        "endpoint": "http://s3:1",
        "region": "r",
        "aws_access_key_id": "a",
    }


def test_a_plan_of_a_compaction_is_no_failed_write_however_long_it_waits(tmp_path: Path) -> None:
    table = make(tmp_path, type="MergeOnRead")
    table.upsert(ROWS)
    table.upsert(ROWS.slice(0, 1))
    plan = table.schedule_compaction(force=True)
    assert plan is not None
    late = TestClock()
    late.advance((SystemClock().now() - late.now()).total_seconds() + 3 * 86_400)
    found = seen(tmp_path / "lake", Observer(late))
    assert [instant.time for instant in found.pending] == [plan.instant]
    assert found.suspects == ()
    assert records_of(found) is None


def test_what_services_have_left_is_counted(tmp_path: Path) -> None:
    table = make(tmp_path, type="MergeOnRead")
    table.upsert(ROWS)
    table.upsert(ROWS.slice(0, 1))
    found = seen(tmp_path / "lake")
    writes = len(found.commits)
    assert found.trace(ServiceType.COMPACTION) == Trace(commits_since=writes)
    assert found.last_write == found.commits[-1].time
    assert found.timeline_files >= 2 * writes
    assert found.log_bytes > 0
    plan = table.schedule_compaction(force=True)
    assert plan is not None
    assert seen(tmp_path / "lake").trace(ServiceType.COMPACTION) == Trace((plan.instant,), None, writes)
    table.run_compaction(plan.instant)
    after = seen(tmp_path / "lake")
    assert after.trace(ServiceType.COMPACTION) == Trace((), plan.instant, 0)
    assert after.last_write == found.last_write, "a compaction is no write"
    assert after.trace(ServiceType.ARCHIVING).commits_since == writes + 1
    table.upsert(ROWS.slice(0, 1))
    assert seen(tmp_path / "lake").trace(ServiceType.COMPACTION).commits_since == 1


def test_the_building_of_a_metadata_table_leaves_its_instant(tmp_path: Path) -> None:
    table = make(tmp_path)
    table.upsert(ROWS)
    assert ServiceType.INDEXING not in seen(tmp_path / "lake").traces
    table.build_metadata()
    table.upsert(ROWS)
    trace = seen(tmp_path / "lake").trace(ServiceType.INDEXING)
    assert (trace.pending, trace.last is not None, trace.commits_since) == ((), True, 1)


def test_why_a_metadata_table_was_dropped_is_seen_though_no_instant_tells_it(tmp_path: Path) -> None:
    table, observer = make(tmp_path), Observer(SystemClock())
    table.upsert(ROWS)
    before = seen(tmp_path / "lake", observer)
    replace_properties(table.context, {METADATA_DROPPED: "a key stands in two file groups"})
    after = seen(tmp_path / "lake", observer)
    assert (before.config.extra.get(METADATA_DROPPED), before.commits) == (None, after.commits)
    assert after.config.extra[METADATA_DROPPED] == "a key stands in two file groups"
    assert after.config.metadata_partitions == ()


def test_what_a_cleaning_would_free_is_asked_only_for_whom_it_concerns(tmp_path: Path) -> None:
    make(tmp_path).upsert(ROWS)
    asked: list[dict[str, str]] = []

    def cleanable(view: FileSystemView, options: Mapping[str, str]) -> int:
        asked.append(dict(options))
        return len(view.latest_slices())

    observer = Observer(SystemClock(), cleanable)
    assert seen(tmp_path / "lake", observer).bytes_to_clean is None
    document = desired_table(stored(manifest(location=f"file://{tmp_path}/lake", recordKey=["id"])))
    found = observer.table(document, {}, {"hoodie.clean.policy": "KEEP_LATEST_COMMITS"})
    assert isinstance(found, TableObservation)
    assert found.bytes_to_clean
    assert asked == [{"hoodie.clean.policy": "KEEP_LATEST_COMMITS"}]


def test_options_that_a_service_would_refuse_are_refused_before_there_is_a_table(tmp_path: Path) -> None:
    for options, said in (
        (
            {"hoodie.keep.min.commits": "5"},
            "hoodie.keep.min.commits=5 must be greater than hoodie.clean.commits.retained",
        ),
        ({"hoodie.clean.commits.retained": "²"}, "'²'"),
        ({"hoodie.clean.policy": "KEEP_ALL"}, "'KEEP_ALL'"),
    ):
        document = stored(manifest(location=f"file://{tmp_path}/lake", recordKey=["id"], options=options))
        problem = Observer(SystemClock()).table(desired_table(document), {})
        assert isinstance(problem, Problem)
        assert (problem.reason, said in problem.message) == ("InvalidOption", True), problem.message


def test_archiving_is_due_when_enough_may_leave(tmp_path: Path) -> None:
    table = make(tmp_path)
    for _ in range(4):
        table.upsert(ROWS.slice(0, 1))
    document = manifest(
        location=f"file://{tmp_path}/lake",
        recordKey=["id"],
        maintenance={"cleaning": {"keepCommits": 1}, "archiving": {"minCommits": 2, "maxCommits": 3}},
    )

    def debt(later: timedelta) -> ArchivingDebt:
        found = Observer(TestClock(SystemClock().now() + later)).table(desired_table(stored(document)), {})
        assert isinstance(found, TableObservation), found
        assert found.archiving is not None
        return found.archiving

    young, old = debt(timedelta(0)), debt(timedelta(days=1))
    assert (young.due, young.leaving, "its age" in young.held_by) == (False, 0, True)
    assert (old.due, old.most, old.held_by) == (True, 3, "")
