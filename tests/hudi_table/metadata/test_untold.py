"""A commit of a writer that does not keep the metadata table is lost to no reader, nor to the index
of the next write: as Flink's with its defaults, or of a job that began before there was one."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from hudi_table.index.record_index import RecordIndexWarning
from hudi_table.metadata import building_plans, indexing
from hudi_table.metadata.bootstrap import begin
from hudi_table.metadata.building_plans import MetadataGoneError
from hudi_table.metadata.files_listing import metadata_files
from hudi_table.metadata.lifecycle import MetadataDroppedWarning
from hudi_table.metadata.table import read_partitions
from hudi_table.metadata.validate import differences
from hudi_table.model.names import METADATA_TABLE, PROPERTIES
from hudi_table.model.table.config import IndexType
from hudi_table.model.table.properties import METADATA_DROPPED
from hudi_table.model.timeline.instants import parse_instant
from hudi_table.services.metadata.upkeep import keep_metadata
from hudi_table.table.store.ports import Storage
from hudi_table.table.timeline import chain
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.timeline.instants import draw_completion
from tests.support.aged import DAYS, AgedStorage
from tests.support.beside import OWN, carry_over, on_a_copy
from tests.support.crashes import FIRST, LATER, LATER_LOGS, LAYOUTS, LOG_LAYOUTS, Layout, opened, prepared, read, rows

THEIRS = ("theirs", "x", 7)
OURS = ("ours", "y", 1)
KINDS = [LAYOUTS[0], LOG_LAYOUTS[0], LATER, LATER_LOGS]
KEEP = {"hoodie.clean.commits.retained": "1", "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}
kinds = pytest.mark.parametrize("layout", KINDS, ids=str)
KEYED = [Layout(IndexType.GLOBAL_SIMPLE, True), Layout(IndexType.GLOBAL_SIMPLE, True, version=9)]


class Unaware:
    """A writer for which the table has no metadata table. It upserts its row, `begin` and then
    `complete`, or both at once."""

    def __init__(self, store: Storage) -> None:
        self.store = store
        self.left: dict[str, bytes] = {}

    def begin(self) -> None:
        """All but its completed file is there."""
        hidden = (METADATA_TABLE, OWN, ".hoodie/.index_defs")
        before = {
            info.path: self.store.get(info.path)
            for info in self.store.list()
            if not info.path.startswith(hidden) and ".indexing" not in info.path
        }
        after = on_a_copy({**before, PROPERTIES: self._properties()}, lambda table: table.upsert(rows(THEIRS)))
        new = {path: data for path, data in after.items() if path not in before}
        self.left = {path: data for path, data in new.items() if _completed(path)}
        assert len(self.left) == 1
        carry_over(before, {**before, **{p: data for p, data in new.items() if p not in self.left}}, self.store)

    def complete(self) -> None:
        """Its completed file, which on later versions says when it was put."""
        ctx = opened(self.store).context
        for path, data in self.left.items():
            instant = parse_instant(path.rpartition("/")[2])
            assert instant is not None
            name = ctx.layout.completed(instant, draw_completion(ctx, "")).file_name
            self.store.put(ctx.layout.timeline_path(name), data)

    def commit(self) -> None:
        self.begin()
        self.complete()

    def _properties(self) -> bytes:
        lines = self.store.get(PROPERTIES).decode().splitlines()
        plain = [line.replace("RECORD_INDEX", "GLOBAL_SIMPLE") for line in lines]
        return "\n".join(line for line in plain if "metadata" not in line).encode()


def _completed(path: str) -> bool:
    instant = parse_instant(path.rpartition("/")[2]) if path.startswith(".hoodie/") else None
    return instant is not None and instant.completed


def built(layout: Layout, *indexes: str) -> Storage:
    store = prepared(layout)
    assert opened(store).build_metadata(indexes)
    return store


def is_asked(store: Storage) -> bool:
    ctx = opened(store).context
    return metadata_files(ctx, load_timeline(ctx)) is not None


@kinds
def test_a_commit_that_it_was_not_told_of_is_read_behind_one_of_ours(layout: Layout) -> None:
    store = built(layout)
    Unaware(store).commit()
    assert read(store) == {*FIRST, THEIRS}
    with pytest.warns(MetadataDroppedWarning, match=r"does not keep it committed \d+; let all writers keep it"):
        opened(store).upsert(rows(OURS))
    assert read(store) == {*FIRST, THEIRS, OURS}
    assert "does not keep it" in opened(store).context.config.extra[METADATA_DROPPED]
    assert opened(store).build_metadata()
    assert is_asked(store)
    assert differences(opened(store).context) == []


@kinds
def test_one_that_was_told_of_later_commits_alone_is_not_asked(layout: Layout) -> None:
    """Ours may look before the other commit, and decide behind it."""
    store = built(layout)
    theirs = Unaware(store)
    theirs.begin()
    opened(store).upsert(rows(OURS))
    assert is_asked(store)
    theirs.complete()
    opened(store).clean({"hoodie.clean.policy": "KEEP_LATEST_COMMITS"})
    assert not is_asked(store)
    assert read(store) == {*FIRST, THEIRS, OURS}


@pytest.mark.parametrize("layout", KEYED, ids=str)
def test_a_key_that_its_record_index_was_not_told_of_is_not_written_a_second_time(layout: Layout) -> None:
    store = built(layout, "record_index")
    opened(store).use_index("RecordIndex")
    Unaware(store).commit()
    with pytest.warns(MetadataDroppedWarning), pytest.warns(RecordIndexWarning):
        opened(store).upsert(rows(("theirs", "y", 8)))
    assert read(store) == {*FIRST, ("theirs", "y", 8)}


@kinds
def test_a_job_that_began_before_it_was_built_and_ends_later_is_read(layout: Layout) -> None:
    store = prepared(layout)
    theirs = Unaware(store)
    theirs.begin()
    assert opened(store).build_metadata()
    assert is_asked(store)
    theirs.complete()
    assert not is_asked(store)
    with pytest.warns(MetadataDroppedWarning):
        opened(store).upsert(rows(OURS))
    assert read(store) == {*FIRST, THEIRS, OURS}


@kinds
def test_a_commit_that_comes_while_it_is_built_is_in_the_one_that_is_built(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = prepared(layout)
    theirs = Unaware(store)
    theirs.begin()
    ready, done = indexing._make_ready, list[bool]()

    def late(*arguments: Any) -> None:
        if not done:
            done.append(True)
            theirs.complete()
        ready(*arguments)

    monkeypatch.setattr(indexing, "_make_ready", late)
    assert opened(store).build_metadata()
    assert done
    assert is_asked(store)
    assert differences(opened(store).context) == []
    opened(store).upsert(rows(OURS))
    assert read(store) == {*FIRST, THEIRS, OURS}


@kinds
def test_beside_a_writer_that_does_not_keep_it_and_does_not_rest_none_is_built(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = prepared(layout)
    ready = indexing._make_ready

    def late(*arguments: Any) -> None:
        Unaware(store).commit()
        ready(*arguments)

    monkeypatch.setattr(indexing, "_make_ready", late)
    monkeypatch.setattr(indexing, "_ATTEMPTS_MAX", 2)
    with pytest.raises(MetadataGoneError, match="does not keep it committed"):
        opened(store).build_metadata()
    assert read_partitions(opened(store).context).all == ()
    assert read(store) == {*FIRST, THEIRS}


@kinds
def test_a_commit_of_ours_between_the_claim_of_a_building_and_its_plan_ends_nothing(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its instant is later than the building's, which holds it all the same."""
    store = prepared(layout)

    def late(*arguments: Any) -> None:
        opened(store).upsert(rows(OURS))
        begin(*arguments)

    monkeypatch.setattr(building_plans, "begin", late)
    assert opened(store).build_metadata()
    monkeypatch.undo()
    with warnings.catch_warnings():
        warnings.simplefilter("error", MetadataDroppedWarning)
        opened(store).upsert(rows(("next", "y", 1)))
    # The properties tell it, so no reader walks the chain for it.
    monkeypatch.setattr(chain, "find_decisions", None)
    assert is_asked(store)
    assert read(store) == {*FIRST, OURS, ("next", "y", 1)}


@kinds
def test_what_an_open_write_of_another_engine_may_lack_is_not_archived(layout: Layout) -> None:
    store = built(layout)
    theirs = Unaware(store)
    theirs.begin()
    for number in range(40):
        table = opened(AgedStorage(store), suspect=DAYS)
        table.upsert(rows(("ours", "y", number)), options={"hoodie.metadata.compact.max.delta.commits": "5"})
        keep_metadata(table.context, 5)
    assert is_asked(store)
    theirs.complete()
    assert not is_asked(store)
    assert read(store) == {*FIRST, THEIRS, ("ours", "y", 39)}


@kinds
def test_archiving_drops_one_that_lacks_a_commit_before_that_leaves_the_timeline(layout: Layout) -> None:
    store = built(layout)
    Unaware(store).commit()
    for _ in range(4):
        Unaware(store).commit()
    with pytest.warns(MetadataDroppedWarning):
        opened(AgedStorage(store)).archive(KEEP, force=True)
    assert read_partitions(opened(store).context).all == ()
    assert read(store) == {*FIRST, THEIRS}
