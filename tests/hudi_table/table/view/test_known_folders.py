"""A handle that looks at a partition again makes what is new alone, and sees what a handle sees
that looks for the first time.

Aspects: what writers and services do beside it; files that go, that change their size, that others
add; what is parsed and looked at.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_table.api import HudiTable, create_table, open_table
from hudi_table.model.bounded import Bounded
from hudi_table.model.names import parse_log_file
from hudi_table.model.timeline.instants import Action
from hudi_table.table.commit.transaction import begin, begin_plan
from hudi_table.table.store.local import LocalStorage
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.timeline.archived import archived_completions
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.lsm import Asked
from hudi_table.table.view.file_groups import FileGroup
from hudi_table.table.view.file_system_view import FileSystemView

ROWS = pa.table({"id": ["a", "b", "c"], "p": ["x", "x", "y"]})
PARTITIONS = ["x", "y", "nowhere"]
KEEP = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.clean.commits.retained": "1"}


@pytest.fixture(params=["local", "memory", "local, version 9", "memory, version 9"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> HudiTable:
    uri = str(tmp_path / "t") if request.param.startswith("local") else f"memory://{uuid.uuid4().hex}/t"
    made = create_table(
        uri, ROWS.schema, record_key="id", partition_by="p", type="MergeOnRead",
        index={"type": "Bucket", "buckets": 2}, version=9 if request.param.endswith("9") else 6,
    )  # fmt: skip
    made.upsert(ROWS)
    return made


def shown(ctx: TableContext) -> tuple[dict[str, list[FileGroup]], set[str]]:
    view = FileSystemView(ctx, load_timeline(ctx))
    view.latest_slices(PARTITIONS)
    return {name: view.groups(name) for name in PARTITIONS}, view.existing(PARTITIONS)


def agrees(ctx: TableContext) -> dict[str, list[FileGroup]]:
    """What the handle sees is what a new one sees, and what a listing of the whole table gives."""
    found, existing = shown(ctx)
    anew = open_table(ctx.base_path).context
    assert (found, existing) == shown(anew)
    whole = FileSystemView(anew, load_timeline(anew))
    whole._load()
    assert found == {name: whole.groups(name) for name in PARTITIONS}
    return found


def test_whatever_writers_and_services_do_beside_it(table: HudiTable) -> None:
    ctx = open_table(table.context.base_path).context
    steps: list[Callable[[], object]] = [
        lambda: table.upsert(ROWS),
        lambda: table.upsert(ROWS.slice(2)),
        lambda: begin_plan(table.context, Action.COMPACTION),
        lambda: table.upsert(ROWS),
        lambda: table.compact(force=True),
        lambda: table.upsert(ROWS),
        lambda: table.delete(ROWS.select(["id", "p"]).slice(0, 1)),
        lambda: table.clean({"hoodie.clean.commits.retained": "1"}, force=True),
        lambda: table.savepoint(),
        lambda: table.upsert(ROWS),
        lambda: table.upsert(ROWS),
        lambda: table.rollback(load_timeline(ctx).commits[-1].time, writers_stopped=True),
        lambda: table.upsert(ROWS),
        lambda: table.restore(table.savepoints()[0].instant, writers_stopped=True),
        lambda: table.upsert(ROWS),
        lambda: table.write(ROWS.slice(2), operation="insert_overwrite"),
        lambda: table.upsert(ROWS),
        lambda: table.write(None, operation="delete_partition", partitions=["y"]),
        lambda: begin(table.context, Action.DELTA_COMMIT),
        lambda: table.upsert(ROWS),
    ]  # fmt: skip
    for step in steps:
        step()
        agrees(ctx)
        agrees(table.context)


def test_the_plan_of_a_compaction_and_its_end(table: HudiTable) -> None:
    ctx = open_table(table.context.base_path).context
    for _ in range(2):
        table.upsert(ROWS)
        agrees(ctx)
    table.schedule_compaction(force=True)
    agrees(ctx)
    table.upsert(ROWS)
    assert any(group.latest.logs for group in agrees(ctx)["x"])
    table.compact()
    agrees(ctx)
    table.upsert(ROWS)
    agrees(ctx)


@pytest.mark.parametrize("table", ["local"], indirect=True)
def test_instants_that_are_archived_count_as_before(table: HudiTable, tmp_path: Path) -> None:
    for _ in range(6):
        table.upsert(ROWS)
    table.compact(force=True)
    ctx = open_table(table.context.base_path).context
    agrees(ctx)
    for path in (tmp_path / "t" / ".hoodie").iterdir():
        os.utime(path, (0, 0))
    assert open_table(table.context.base_path).archive(KEEP, force=True)
    agrees(ctx)
    table.upsert(ROWS)
    agrees(ctx)


def test_however_many_partitions_ask_for_archived_completions_the_archive_is_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = create_table(
        tmp_path / "t", ROWS.schema, record_key="id", partition_by="p", type="MergeOnRead", version=9,
        index={"type": "Bucket", "buckets": 2},
    )  # fmt: skip
    for _ in range(6):
        table.upsert(ROWS)
    table.compact(force=True)
    for path in (tmp_path / "t" / ".hoodie").rglob("*"):
        os.utime(path, (0, 0))
    assert open_table(table.base_path).archive(KEEP, force=True)
    asked: list[TableContext] = []

    def counting(ctx: TableContext, wanted: Asked) -> dict[str, str]:
        asked.append(ctx)
        return archived_completions(ctx, wanted)

    monkeypatch.setattr("hudi_table.table.view.archived_times.archived_completions", counting)
    shown(open_table(table.base_path).context)
    assert len(asked) == 1


def log_names(groups: dict[str, list[FileGroup]]) -> list[str]:
    return [log.path for group in groups["x"] for log in group.latest.logs]


def test_files_that_go_and_files_that_others_add_are_seen(table: HudiTable) -> None:
    for _ in range(3):
        table.upsert(ROWS)
    ctx, storage = open_table(table.context.base_path).context, table.context.storage
    first = log_names(agrees(ctx))[0]
    storage.delete(first)
    assert first not in log_names(agrees(ctx))
    # Another engine's logs, whose names do not tell their writer, before the last one and, with its token, behind it; they grow.
    last = log_names(agrees(ctx))[-1]
    group, _, rest = last.rpartition(".log.")
    version, _, token = rest.partition("_")
    for other in (f"{group}.log.1_0-7-9", f"{group}.log.{int(version) + 1}_{token}"):
        for data in (b"#", b"##", b"###"):
            storage.put(other, data)
            groups = agrees(ctx)
            assert [log.size for found in groups["x"] for log in found.latest.logs if log.path == other] == [len(data)]


def test_of_what_has_completed_nothing_is_parsed_and_nobody_looks_at_a_file_twice(
    table: HudiTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    ctx = open_table(table.context.base_path).context
    parsed: list[str] = []

    def counting(name: str) -> object:
        parsed.append(name)
        return parse_log_file(name)

    monkeypatch.setattr("hudi_table.table.view.known_folders.parse_log_file", counting)
    counts, looked_at = [], []
    for _ in range(12):
        table.upsert(ROWS)
        parsed.clear()
        shown(ctx)
        counts.append(len(parsed))
        if isinstance(ctx.storage, LocalStorage):
            looked_at.append(len(ctx.storage.list_news("x", ctx.folders["x"].settled)[1]))
    # Each upsert adds a log to each group; the file that makes a folder a partition is parsed, too, and is none.
    assert set(counts[1:]) == {counts[-1]}
    assert counts[-1] <= 10
    assert set(looked_at) <= {1}


def test_what_is_kept_of_folders_is_bounded(table: HudiTable) -> None:
    shown(table.context)
    folders = table.context.folders
    assert isinstance(folders, Bounded)
    assert 0 < folders.total == sum(len(folder.sizes) for folder in folders.values())
