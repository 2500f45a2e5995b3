"""What is replaced, once the replacement is archived: of it only the cleans tell."""

from __future__ import annotations

import pytest

from hudi_table.model.table.config import TableType
from tests.hudi_table.metadata.test_keeping import ONE_VERSION
from tests.hudi_table.services.test_archiving import COW, aged, archive, completed
from tests.support.crashes import LATER, LATER_LOGS, LOG_LAYOUTS, Layout, opened, prepared, rows


@pytest.mark.parametrize("layout", [COW, LOG_LAYOUTS[0], LATER, LATER_LOGS], ids=str)
def test_a_moment_behind_an_archived_replacement_is_read_and_kept_though_a_later_clean_took_what_was_replaced(
    layout: Layout,
) -> None:
    store = prepared(layout)
    gone = opened(store).write(None, operation="delete_partition", partitions=["y"]).instant
    for number in range(5):
        opened(store).write(rows(("a", "x", 100 + number)), operation="upsert")
    if layout.type is TableType.MERGE_ON_READ:
        opened(store).compact(force=True)
    newest = completed(opened(store))[-1]
    assert opened(store).clean(ONE_VERSION, force=True)
    archive(aged(store))
    assert gone not in completed(opened(store))
    assert newest in completed(opened(store))
    seen = opened(store).scan(as_of=newest).to_arrow()
    assert seen.num_rows == opened(store).scan().to_arrow().num_rows > 0
    assert opened(store).savepoint().instant == newest
    assert opened(store).savepoint(newest).replayed
