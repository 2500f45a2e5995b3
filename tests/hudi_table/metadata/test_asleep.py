"""A compaction of the metadata table whose process slept over its end."""

from __future__ import annotations

from hudi_table.metadata.compaction import compact_metadata
from hudi_table.metadata.table import MetadataTable
from hudi_table.model.timeline.instants import Action, Instant
from hudi_table.table.store.ports import Storage
from hudi_table.table.timeline.active import load_timeline
from tests.support.aged import HOURS
from tests.support.crashes import FIRST, LAYOUTS, opened, prepared, rows
from tests.support.meanwhile import BeforePut, Sleeper


def completed_commits(store: Storage) -> list[Instant]:
    """Completed commits, which are compactions, of the metadata table."""
    ctx = opened(store).context
    table = MetadataTable.load(ctx, load_timeline(ctx))
    assert table is not None
    return [i for i in table.timeline.instants if i.completed and i.action is Action.COMMIT]


def test_a_compaction_that_slept_over_its_end_does_not_bring_back_its_archived_commit() -> None:
    store = prepared(LAYOUTS[0])
    for _ in range(3):
        opened(store).write(rows(FIRST[2]), operation="upsert", options={"hoodie.metadata.enable": "true"})
    clock = Sleeper()

    def executed_and_archived() -> None:
        compact_metadata(opened(store).context)
        (done,) = completed_commits(store)
        for info in store.list(".hoodie/metadata/.hoodie"):
            if info.path.rpartition("/")[2].startswith(f"{done.time}."):
                store.delete(info.path)
        clock.slept += HOURS

    table = opened(BeforePut(store, ".commit", executed_and_archived))
    table.context.clock = clock
    assert compact_metadata(table.context, 1)
    assert clock.slept
    assert not completed_commits(store)
