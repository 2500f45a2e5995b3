"""Looking at real tables: figures, checkpoints, failed writes, keys with colons, and tables that Hudi wrote."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_operator.api.resources import desired_table
from hudi_operator.plan.observed import Problem, TableObservation, Trace
from hudi_operator.plan.report import records_of
from hudi_operator.runtime.observe import Observer, storage_options
from hudi_table.api import HudiTable, create_table
from hudi_table.model.checkpoint import Checkpoint, SourceFile, advance, key_of
from hudi_table.model.instants import Action
from hudi_table.model.services import ServiceType
from hudi_table.model.table_properties import METADATA_DROPPED
from hudi_table.table.clock import SystemClock
from hudi_table.table.properties import replace_properties
from hudi_table.table.transaction import begin
from hudi_table.table.view import FileSystemView
from tests.support import golden
from tests.support.manifests import manifest, stored
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


def test_a_damaged_checkpoint_is_a_problem_that_names_its_commit(tmp_path: Path) -> None:
    table = make(tmp_path)
    result = table.upsert(ROWS, extra_metadata={key_of("feed"): "{}"})
    found = look(tmp_path / "lake")
    assert isinstance(found, Problem)
    assert found.reason == "CorruptTable"
    assert result.instant in found.message


def test_a_pending_write_is_told_and_after_long_is_taken_for_failed(tmp_path: Path) -> None:
    table = make(tmp_path)
    table.upsert(ROWS)
    begin(table.context, Action.COMMIT).inflight()
    now = seen(tmp_path / "lake")
    assert len(now.pending) == 1
    assert now.suspects == ()
    late = TestClock(SystemClock().now() + timedelta(hours=1))
    assert seen(tmp_path / "lake", Observer(late)).suspects == (now.pending[0].file_name,)


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
    for path in (tmp_path / "lake" / ".hoodie").glob("*.commit"):
        path.write_text("damaged since")
    assert seen(tmp_path / "lake", observer) == first


@pytest.mark.parametrize("name", ["bktcow", "nopart", "tskg"])
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
