"""A rollback beside the archived timeline: files of archived writes count as long as a write is
left that is not."""

from __future__ import annotations

import pytest

from hudi_table.errors import InvalidRequestError
from hudi_table.table.timeline.active import load_timeline
from tests.support.taken_back import FIRST, KINDS, aged, written
from tests.support.written import contents, rows


@KINDS
def test_the_last_write_that_is_not_archived_stays_though_it_brought_new_rows_alone(kind):
    table = written(kind)
    bounds = {
        "hoodie.keep.min.commits": "2",
        "hoodie.keep.max.commits": "3",
        "hoodie.cleaner.commits.retained": "1",
        "hoodie.compact.inline.trigger.strategy": "TIME_ELAPSED",
    }
    for name in "defg":
        table.insert(rows((name, "x", 1)), options={"hoodie.parquet.small.file.limit": "0"})
    aged(table).archive(bounds)
    kept = load_timeline(table.context).commits
    for commit in kept[:0:-1]:
        aged(table).rollback(commit.time)
    before = contents(table)
    assert len(kept) < 5
    assert before[:3] == FIRST
    with pytest.raises(InvalidRequestError, match="is the only write that is not archived"):
        aged(table).rollback(kept[0].time)
    with pytest.raises(InvalidRequestError, match="is the only write that is not archived"):
        aged(table).services.rollback(kept[0].time).plan()
    assert contents(table) == before
