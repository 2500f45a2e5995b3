"""Which commits are told after a position: each once, in order, also what completes late, is
archived, or is many.

Aspects: (1) order and pages; (2) writes that were open; (3) the archive; (4) what is told of a
commit, and what is not; (5) texts of positions.
"""

from __future__ import annotations

import json
import random
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from hudi_table.api import create_table, open_table
from hudi_table.callbacks.cloud_events import EVENT_TYPE, body_of, event_of, rfc3339
from hudi_table.callbacks.commits import Commit, commits_after, newest_position
from hudi_table.callbacks.kinds import CommitKind
from hudi_table.callbacks.position import Position
from hudi_table.errors import InvalidOptionError, WriteAbortedError
from hudi_table.model.job.positions import Positions, TopicPositions
from hudi_table.model.table.config import IndexType, TableType
from hudi_table.model.timeline.instants import Action
from hudi_table.table.commit.transaction import Transaction, begin
from hudi_table.table.store.ports import Storage
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.timeline.context import TableContext
from tests.support.aged import AgedStorage
from tests.support.crashes import LATER, Layout, opened, prepared, rows
from tests.support.scale import scaled
from tests.support.tables import finish, write_file

SIX = Layout(IndexType.BUCKET, True)
LAYOUTS = [SIX, replace(LATER, version=8), LATER]
KEEP = {"hoodie.clean.commits.retained": "1", "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}


@pytest.fixture(params=LAYOUTS, ids=str)
def store(request: pytest.FixtureRequest) -> Storage:
    return prepared(request.param)


def context(store: Any) -> TableContext:
    return opened(store).context


def follow(store: Any, position: Position, limit: int = 1000) -> tuple[list[str], Position]:
    """The instants behind a position, which goes through its text as between two processes."""
    ctx, found, more = context(store), [], True
    while more:
        page = commits_after(ctx, Position.parse(str(position), "UTC"), limit=limit)
        found += [told.commit.instant for told in page.told]
        position, more = page.position, page.more
    return found, position


def commit_times(store: Any) -> list[str]:
    """Of the active timeline, in the order of their completion where it is known."""
    return [i.time for i in sorted(load_timeline(context(store)).commits, key=lambda i: i.moment)]


def open_write(store: Any) -> Transaction:
    txn = begin(context(store), Action.COMMIT)
    txn.inflight()
    return txn


def complete(txn: Transaction, bucket: int, partition: str) -> str:
    finish(txn, [write_file(txn, bucket, partition)], [bucket], partition)
    return txn.time


@pytest.mark.parametrize(
    ("micros", "shown"), [(0, ".000Z"), (999, ".000Z"), (1_000, ".001Z"), (998_999, ".998Z"), (999_000, ".999Z")]
)
def test_moments_of_events_are_told_to_the_millisecond_that_has_begun(micros: int, shown: str) -> None:
    assert rfc3339(datetime(2026, 11, 21, 10, 0, 59, micros, UTC)) == f"2026-11-21T10:00:59{shown}"


@pytest.mark.parametrize("limit", [1, 2, 100])
def test_commits_come_in_order_each_once_in_pages_of_any_size(store: Storage, limit: int) -> None:
    for number in range(5):
        opened(store).write(rows(("a", "x", number)), operation="upsert")
    found, position = follow(store, Position(), limit)
    assert found == commit_times(store)
    assert len(found) == 8
    assert follow(store, position) == ([], position)
    for number in range(2):
        opened(store).write(rows(("a", "x", number)), operation="upsert")
    assert follow(store, position, limit)[0] == commit_times(store)[-2:]


def test_an_instant_stands_for_the_moment_behind_it(store: Storage) -> None:
    moments = sorted(i.moment for i in load_timeline(context(store)).commits)
    page = commits_after(context(store), Position.parse(moments[0], "UTC"))
    assert [told.commit.instant for told in page.told] == commit_times(store)[1:]


def test_who_begins_now_is_told_of_what_completes_from_now_on(store: Storage) -> None:
    before = commit_times(store)
    late = open_write(store)
    position = newest_position(context(store))
    assert follow(store, position)[0] == []
    opened(store).write(rows(("a", "x", 5)), operation="upsert")
    complete(late, 7, "other")
    assert follow(store, position)[0] == commit_times(store)[len(before) :]
    assert late.time in commit_times(store)


def test_a_write_that_completes_after_newer_ones_is_told_when_it_completes(store: Storage) -> None:
    _, position = follow(store, Position())
    late = open_write(store)
    opened(store).write(rows(("a", "x", 5)), operation="upsert")
    newer, position = follow(store, position)
    assert newer == [commit_times(store)[-1]]
    assert newer[0] > late.time
    complete(late, 7, "other")
    assert follow(store, position)[0] == [late.time]
    _, position = follow(store, position)
    assert follow(store, position)[0] == []


def test_one_that_began_first_completed_last_and_was_archived_before_its_turn_is_told(store: Storage) -> None:
    _, position = follow(store, Position())
    late = open_write(store)
    opened(store).write(rows(("a", "x", 5)), operation="upsert")
    newer = commit_times(store)[-1]
    complete(late, 7, "other")
    page = commits_after(context(store), Position.parse(str(position), "UTC"), limit=1)
    assert len(page.told) == 1
    opened(store).write(rows(("a", "x", 6)), operation="upsert")
    opened(AgedStorage(store)).archive(KEEP, force=True)
    active = load_timeline(context(store)).commit_times
    assert late.time not in active
    assert newer in active
    rest, _ = follow(store, page.told[0].position)
    assert {page.told[0].commit.instant, *rest} >= {late.time, newer}


def test_a_write_that_is_given_up_leaves_the_position(store: Storage) -> None:
    late = open_write(store)
    opened(store).write(rows(("a", "x", 5)), operation="upsert")
    _, position = follow(store, Position())
    # In table version 6 it comes before what was told; from version 8 on nothing that completes can.
    assert late.time in position.open or position.after < late.time or context(store).layout.tells_completions
    late.abort()
    opened(store).write(rows(("a", "x", 6)), operation="upsert")
    found, position = follow(store, position)
    assert found == commit_times(store)[-1:]
    assert late.time not in position.open


@pytest.mark.parametrize("limit", [1, 3, 100])
def test_what_was_archived_meanwhile_is_told_all_the_same(store: Storage, limit: int) -> None:
    _, position = follow(store, Position())
    before = commit_times(store)
    wrote = []
    for number in range(6):
        opened(store).write(rows(("a", "x", number)), operation="upsert")
        wrote.append(commit_times(store)[-1])
    assert opened(AgedStorage(store)).archive(KEEP, force=True) is not None
    assert len(commit_times(store)) < 6
    assert follow(store, position, limit)[0] == wrote
    assert follow(store, Position(), limit)[0] == [*before, *wrote]
    moment = Position.parse(wrote[-1], "UTC")
    assert follow(store, moment)[0] in ([], [wrote[-1]])


def test_a_write_that_was_open_and_is_archived_when_it_is_asked_for_is_told(store: Storage) -> None:
    late = open_write(store)
    opened(store).write(rows(("a", "x", 5)), operation="upsert")
    _, position = follow(store, Position())
    complete(late, 7, "other")
    wrote = []
    for number in range(6):
        opened(store).write(rows(("a", "x", number)), operation="upsert")
        wrote.append(commit_times(store)[-1])
    opened(AgedStorage(store)).archive(KEEP, force=True)
    assert late.time not in commit_times(store)
    assert follow(store, position)[0] == [late.time, *wrote]


@pytest.mark.parametrize("seed", range(scaled(12, quick=3)))
@pytest.mark.parametrize("layout", [SIX, LATER], ids=str)
def test_in_any_history_of_writers_every_commit_is_told_once(layout: Layout, seed: int) -> None:
    chance = random.Random(seed)
    store, position = prepared(layout), Position()
    told: list[str] = []
    done = commit_times(store)
    waiting: list[tuple[Transaction, int]] = []
    for step in range(25):
        choice = chance.random()
        if choice < 0.35 and len(waiting) < 4:
            waiting.append((open_write(store), step))
        elif choice < 0.6 and waiting:
            txn, bucket = waiting.pop(chance.randrange(len(waiting)))
            with suppress(WriteAbortedError):  # it was so old for the archiving that it was taken for dead
                done.append(complete(txn, bucket, "other"))
        elif choice < 0.7 and waiting:
            with suppress(WriteAbortedError):
                waiting.pop(chance.randrange(len(waiting)))[0].abort()
        elif choice < 0.78:
            opened(AgedStorage(store)).archive(KEEP, force=True)
        else:
            ctx = context(store)
            page = commits_after(ctx, Position.parse(str(position), "UTC"), limit=chance.choice([1, 2, 50]))
            for each in page.told:
                told.append(each.commit.instant)
                position = each.position
                if chance.random() < 0.2:
                    break  # it is gone here, and goes on from what it has kept
            else:
                position = page.position
    rest, _ = follow(store, position)
    told += rest
    assert sorted(told) == sorted(done)


def commits_of(table: Any) -> list[Commit]:
    return [told.commit for told in commits_after(table.context, Position()).told]


def test_a_commit_tells_what_it_did_and_no_other_metadata(tmp_path: Any) -> None:
    schema = pa.schema([("id", pa.string()), ("n", pa.int64())])
    table = create_table(str(tmp_path / "t"), schema, record_key="id")
    first = pa.table({"id": ["a", "b"], "n": [1, 2]})
    table.upsert(first, extra_metadata={"password": "s3cr3t", "deltastreamer.checkpoint.key": "orders,0:12"})
    positions = Positions("c", {"orders": TopicPositions("id", {0: 12, 1: 9})})
    table.upsert(pa.table({"id": ["a", "c"], "n": [9, 3]}), extra_metadata={"lakeops.ingest.feed": positions.to_text()})
    table.delete(pa.table({"id": ["b"]}))
    _, inserted, updated, deleted = commits_of(table)
    assert (inserted.operation, inserted.action, inserted.kind) == ("UPSERT", "commit", CommitKind.WRITE)
    assert (inserted.rows_inserted, inserted.rows_written, inserted.files, inserted.partitions) == (2, 2, 1, 1)
    assert inserted.checkpoints == ({"source": "HudiStreamer", "position": "orders,0:12"},)
    assert (updated.rows_inserted, updated.rows_updated, deleted.rows_deleted) == (1, 1, 1)
    (held,) = updated.checkpoints
    assert (held["ingest"], held["source"], held["position"]) == ("feed", "Kafka", "orders,0:12,1:9")
    event = event_of(table.context, inserted)
    assert {"specversion", "id", "source", "type", "subject", "time", "datacontenttype", "data"} == set(event)
    assert (event["specversion"], event["type"], event["id"]) == ("1.0", EVENT_TYPE, f"t/{inserted.instant}")
    assert event["time"].startswith(f"{inserted.instant[:4]}-{inserted.instant[4:6]}-{inserted.instant[6:8]}T")
    assert b"s3cr3t" not in body_of(event)
    assert b"password" not in body_of(event)
    assert json.loads(body_of(event))["data"]["rowsInserted"] == 2


def test_a_change_of_the_schema_is_told_with_the_commit_that_brings_it(tmp_path: Any) -> None:
    table = create_table(str(tmp_path / "t"), pa.schema([("id", pa.string())]), record_key="id")
    for rows_ in (
        {"id": ["a"]},
        {"id": ["b"]},
        {"id": ["c"], "more": [1]},
        {"id": ["d"], "more": [1]},
    ):
        open_table(str(tmp_path / "t")).upsert(pa.table(rows_), options={"hoodie.schema.on.read.enable": "false"})
    assert [each.schema_changed for each in commits_of(table)] == [None, False, False, True, False]


def test_rewrites_are_told_to_who_asks_for_them() -> None:
    store = prepared(Layout(IndexType.SIMPLE, False, TableType.MERGE_ON_READ))
    table = opened(store)
    table.write(rows(("a", "x", 9)), operation="upsert")
    planned = table.schedule_compaction(force=True)
    assert planned is not None
    table.write(rows(("b", "x", 9)), operation="upsert")
    _, position = follow(store, Position())
    assert position.open == (planned.instant,)
    table.run_compaction(planned.instant)
    page = commits_after(context(store), position, kinds=(CommitKind.WRITE,))
    assert (page.told, page.position.open) == ((), ())
    page = commits_after(context(store), position, kinds=(CommitKind.REWRITE,))
    assert [(each.commit.instant, each.commit.operation) for each in page.told] == [(planned.instant, "COMPACT")]


@pytest.mark.parametrize("text", ["", "20261", "x", "0++", "20260101000000000++1", "20260101000000000+1", "+"])
def test_what_is_no_position_is_refused(text: str) -> None:
    with pytest.raises(InvalidOptionError, match="is no position: give 17 digits"):
        Position.parse(text, "UTC")


@pytest.mark.parametrize(
    "position",
    [
        Position(),
        Position(looked=True),
        Position("20260101000000000"),
        Position("20260101000000000", looked=True),
        Position("20260101000000000", ("20250101000000000", "20250102000000000"), looked=True),
    ],
)
def test_a_position_is_the_same_after_it_was_printed(position: Position) -> None:
    assert Position.parse(str(position), "UTC") == position
