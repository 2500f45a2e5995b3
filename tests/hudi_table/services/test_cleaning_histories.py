"""Random histories of writes, compactions, cleans by every policy, and savepoints, each step by
another process: a reader of any moment, one that planned its scan then included, gets the rows of
that moment or `Expired`; what is kept reads the same."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable

import pytest

from hudi_table.api import HudiTable
from hudi_table.errors import ExpiredError
from hudi_table.model.options.retention import CleanPolicy
from hudi_table.model.table.config import IndexType, TableType
from hudi_table.model.timeline.instants import Action
from hudi_table.read.scan import Scan
from hudi_table.table.store.ports import Storage
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.view.compaction_plans import planned_slices
from hudi_table.write.checks.create_table import create
from tests.support.crashes import FIRST, Layout, Rows, new_store, opened, read, rows, spec
from tests.support.scale import scaled

STEPS = 18
LAYOUTS = [
    Layout(IndexType.BUCKET, True),
    Layout(IndexType.SIMPLE, True, TableType.MERGE_ON_READ),
    Layout(IndexType.BUCKET, False, TableType.MERGE_ON_READ),
]


def upsert(table: HudiTable, chance: random.Random) -> None:
    items = [(f"k{chance.randrange(9)}", "", chance.randrange(100)) for _ in range(3)]
    # A key stays in its partition.
    table.upsert(rows(*{key: (key, "xyz"[int(key[1:]) % 3], value) for key, _, value in items}.values()))


def overwrite(table: HudiTable, chance: random.Random) -> None:
    key = chance.randrange(9)
    table.write(rows((f"k{key}", "xyz"[key % 3], 1)), operation="insert_overwrite")


def drop(table: HudiTable, chance: random.Random) -> None:
    if table.context.config.partition_by:
        known = [
            info.path.partition("/")[0] for info in table.context.storage.list() if info.path.endswith("_metadata")
        ]
        table.write(None, operation="delete_partition", partitions=[chance.choice(known)])


def plan_compaction(table: HudiTable, chance: random.Random) -> None:
    del chance
    if table.context.config.type is TableType.MERGE_ON_READ:
        table.schedule_compaction(force=True)


def compact(table: HudiTable, chance: random.Random) -> None:
    del chance
    if table.context.config.type is TableType.MERGE_ON_READ:
        table.compact(force=True)


def policy(chance: random.Random) -> dict[str, str]:
    keep = str(chance.randint(1, 3))
    kind, key = chance.choice(
        [
            (CleanPolicy.KEEP_LATEST_COMMITS, "hoodie.clean.commits.retained"),
            (CleanPolicy.KEEP_LATEST_FILE_VERSIONS, "hoodie.clean.fileversions.retained"),
        ]
    )
    return {"hoodie.clean.policy": kind, key: keep}


def plan_clean(table: HudiTable, chance: random.Random) -> None:
    table.schedule_clean(policy(chance), force=True)


def clean(table: HudiTable, chance: random.Random) -> None:
    table.clean(policy(chance), force=True)


def keep(table: HudiTable, chance: random.Random) -> None:
    instant = chance.choice(load_timeline(table.context).commits[-3:]).time
    with contextlib.suppress(ExpiredError):
        table.savepoint(instant)


def let_go(table: HudiTable, chance: random.Random) -> None:
    for found in table.savepoints():
        if chance.random() < 0.5:
            table.delete_savepoint(found.instant, writers_stopped=True)


OPERATIONS: tuple[Callable[[HudiTable, random.Random], None], ...] = (
    upsert, upsert, upsert, upsert, overwrite, drop, plan_compaction, compact, plan_clean, clean, clean, keep, let_go,
)  # fmt: skip


@pytest.mark.parametrize("seed", range(scaled(1)))
@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_readers_have_their_rows_or_are_told_that_they_are_gone(layout: Layout, seed: int) -> None:
    chance = random.Random(f"{layout} {seed}")
    store = new_store()
    create(store, spec(layout))
    opened(store).upsert(rows(*FIRST))
    moments: dict[str, tuple[Rows, Scan]] = {}
    done: list[str] = []
    for _ in range(STEPS):
        operation = chance.choice(OPERATIONS)
        done.append(operation.__name__)
        operation(opened(store), chance)
        last = load_timeline(opened(store).context).last_commit
        assert last is not None
        if last.time not in moments:
            scan = opened(store).scan(as_of=last.time)
            assert scan.plan
            moments[last.time] = (read(store), scan)
        check(store, moments, " ".join(done))


def check(store: Storage, moments: dict[str, tuple[Rows, Scan]], where: str) -> None:
    newest = max(moments)
    assert read(store) == moments[newest][0], where
    kept = {found.instant for found in opened(store).savepoints()}
    for time, (expected, begun) in moments.items():
        for scan in (begun, opened(store).scan(as_of=time)):
            try:
                seen = frozenset(tuple(row.values()) for row in scan.to_arrow().to_pylist())
            except ExpiredError:
                assert time not in kept, f"{where}: the kept {time} is gone"
                assert time != newest, f"{where}: the newest is gone"
            else:
                assert seen == expected, f"{where}: as of {time}"
    context = opened(store).context
    listed = {info.path for info in store.list()}
    for instant in load_timeline(context).pending:
        if instant.action is Action.COMPACTION:
            for item in planned_slices(context, instant):
                assert {item.base_path, *item.log_paths} - {None} <= listed, f"{where}: a planned slice is gone"
