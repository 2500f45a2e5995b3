"""Another engine takes a delta commit back while a compaction of ours is under way: no row of it
comes back by the compacted base file, and the plan can be executed still."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hudi_table.api import HudiTable, create_table, open_table
from hudi_table.codec.log.blocks import rollback_block
from hudi_table.errors import UnavailableError, WriteConflictError
from hudi_table.metadata.port import open_context
from hudi_table.model.names import LogFileName, join, parse_log_file
from hudi_table.model.timeline.instants import Action, Instant, State, parse_instant
from hudi_table.table.commit import rollback
from hudi_table.table.commit.transaction import Transaction
from hudi_table.table.timeline.active import commit_metadata, load_timeline
from hudi_table.table.timeline.context import TxnSettings
from hudi_table.table.timeline.instants import draw_instant
from hudi_table.table.timeline.layout import encode_record
from tests.hudi_table.services.test_late_plans import LOCK, SCHEMA, row, values
from tests.support.beside import OWN, an_engine_without_our_chain, on_a_copy
from tests.support.decided import Killed, killed_before_publication
from tests.support.late_publication import asleep_before_the_create

DELTA = 7
"""The value of the row whose delta commit is taken back."""


@pytest.fixture(params=[6, 9])
def table(tmp_path: Path, request: pytest.FixtureRequest) -> HudiTable:
    made = create_table(
        tmp_path / "t", SCHEMA, record_key="id", partition_by=["city"], version=request.param, type="MergeOnRead",
        index={"type": "Bucket", "buckets": 1},
    )  # fmt: skip
    for value in (1, 2):
        made.upsert(row("a", value))
    return open_table(tmp_path / "t", lock=LOCK)


@pytest.fixture(params=[True, False], ids=["ours", "theirs"])
def delta(table: HudiTable, request: pytest.FixtureRequest) -> Instant:
    """A delta commit, of ours or of another engine, that the plan of a compaction takes."""
    if request.param:
        table.upsert(row("b", DELTA))
    else:
        an_engine_without_our_chain(table, lambda other: other.upsert(row("b", DELTA)))
    made = load_timeline(table.context).last_commit
    assert made is not None
    assert table.schedule_compaction(force=True) is not None
    return made


class TakenBack:
    """A rollback of a write by Hudi, which puts its plan, ends the write, takes the log back by a
    block (version 6) or deletes it, and reports."""

    def __init__(self, table: HudiTable, made: Instant, paths: set[str]) -> None:
        self.ctx, self.made, self.paths = table.context, made, paths
        undo = Instant(draw_instant(self.ctx, load_timeline(self.ctx).newest_time), Action.ROLLBACK, State.REQUESTED)
        self.undo, path = undo, self.ctx.layout.timeline_path
        self.ctx.storage.put(path(undo.file_name), rollback.rollback_plan(self.ctx, made, []))
        self.ctx.storage.put(path(undo.with_state(State.INFLIGHT).file_name), b"")

    def ends(self) -> None:
        ctx, timeline = self.ctx, load_timeline(self.ctx)
        own = timeline.own_names(self.made)
        for name in own[-1:]:
            ctx.storage.delete(ctx.layout.timeline_path(name))
        for path in self.paths:
            folder, _, name = path.rpartition("/")
            log = parse_log_file(name)
            if log is None or ctx.layout.logs_tell_writers:
                ctx.storage.delete(path)
                continue
            after = LogFileName(log.file_id, log.base_instant, log.version + 1, "1-0-1")
            ctx.storage.put(join(folder, str(after)), rollback_block(self.undo.time, self.made.time))
        for name in own[:-1]:
            ctx.storage.delete(ctx.layout.timeline_path(name))
        report = rollback.rollback_record(ctx, self.made, self.undo.time, [])
        rollback.complete(ctx, self.undo, encode_record("HoodieRollbackMetadata", report))


def died(table: HudiTable) -> tuple[Instant, set[str]]:
    """A write of another engine that has died before it completed, and its data files."""
    ctx = table.context
    before = {info.path: ctx.storage.get(info.path) for info in ctx.storage.list() if not info.path.startswith(OWN)}
    after = on_a_copy(before, lambda other: other.upsert(row("b", DELTA)))
    new = {path for path in after.keys() - before.keys() if not path.startswith(OWN)}
    for path in new:
        instant = parse_instant(path.rpartition("/")[2])
        if instant is None or not instant.completed:
            ctx.storage.put(path, after[path])
    (made,) = [i for i in load_timeline(ctx).pending if i.is_write]
    return made, {path for path in new if not path.startswith(".hoodie/")}


def begins_to_take_back(table: HudiTable, made: Instant) -> TakenBack:
    return TakenBack(table, made, set(commit_metadata(table.context, made).paths))


def takes_back(table: HudiTable, made: Instant) -> None:
    begins_to_take_back(table, made).ends()


def goes_on(table: HudiTable, *there: int) -> None:
    """Writers of ours write, and the plan is executed."""
    writer = open_table(table.base_path, lock=LOCK)
    assert values(table) == sorted(there)
    writer.upsert(row("c", 9))
    there = tuple({*there} - {9})
    assert values(table) == sorted([*there, 9])
    # Behind an abort a plan is executed again when nobody can still write its files.
    later = open_context(table.context.storage, settings=TxnSettings(1.0, 900.0))
    later.clock.sleep(1.1)
    HudiTable(replace(later, lock=writer.context.lock)).compact()
    assert not [i for i in load_timeline(table.context).pending if i.action is Action.COMPACTION]
    assert values(table) == sorted([*there, 9])
    writer.upsert(row("b", 8))
    assert values(table) == sorted([*there, 8, 9])


def test_before_the_decision(table: HudiTable, delta: Instant, monkeypatch: pytest.MonkeyPatch) -> None:
    commit = Transaction.commit

    def late(*arguments: Any) -> Instant:
        monkeypatch.undo()
        takes_back(table, delta)
        return commit(*arguments)

    monkeypatch.setattr(Transaction, "commit", late)
    with pytest.raises(WriteConflictError, match="another engine"):
        table.compact()
    goes_on(table, 2)


def test_behind_the_decision_of_an_executor_that_died(table: HudiTable, delta: Instant) -> None:
    with killed_before_publication(), suppress(Killed):
        table.compact()
    takes_back(table, delta)
    goes_on(table, 2)


def test_while_an_executor_sleeps_before_the_create_of_its_file(table: HudiTable, delta: Instant) -> None:
    asleep_before_the_create(table.compact, Path(table.base_path), lambda: takes_back(table, delta), dies=False)
    goes_on(table, 2)


def test_a_rollback_that_began_before_the_executor_read(table: HudiTable, delta: Instant) -> None:
    begun = begins_to_take_back(table, delta)
    with pytest.raises(UnavailableError, match=f"has begun to take {delta.time} back"):
        table.compact()
    begun.ends()
    goes_on(table, 2)


def test_an_executor_that_finds_what_another_decided_and_others_gave_up(
    table: HudiTable, delta: Instant, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow, commit = open_table(table.base_path, lock=LOCK), Transaction.commit

    def late(*arguments: Any) -> Instant:
        monkeypatch.setattr(Transaction, "commit", commit)
        with killed_before_publication(), suppress(Killed):
            table.compact()
        takes_back(table, delta)
        open_table(table.base_path, lock=LOCK).upsert(row("c", 9))
        return commit(*arguments)

    monkeypatch.setattr(Transaction, "commit", late)
    with pytest.raises(WriteConflictError):
        slow.compact()
    goes_on(table, 2, 9)


@pytest.mark.parametrize("when", ["before it reads", "before its decision", "behind its decision"])
def test_of_a_write_that_has_not_completed_a_compaction_holds_no_row(
    table: HudiTable, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    made, new = died(table)
    commit = Transaction.commit
    assert table.schedule_compaction(force=True) is not None

    def late(*arguments: Any) -> Instant:
        monkeypatch.undo()
        TakenBack(table, made, new).ends()
        return commit(*arguments)

    if when == "before it reads":
        TakenBack(table, made, new).ends()
    elif when == "before its decision":
        monkeypatch.setattr(Transaction, "commit", late)
    if when == "behind its decision":
        with killed_before_publication(), suppress(Killed):
            table.compact()
        TakenBack(table, made, new).ends()
    else:
        table.compact()
    goes_on(table, 2)
