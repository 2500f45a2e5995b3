"""Services that a writer runs after its commit: what their errors tell of the write."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hudi_table.api import HudiTable
from hudi_table.errors import InvalidOptionError
from hudi_table.model.timeline.instants import planner_claim
from hudi_table.services.inline import run_inline
from hudi_table.table.engine.local_engine import LocalEngine
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.view.clustering_plans import pending_clusterings
from tests.support.faults import Fault, FaultPlan, FaultyStorage
from tests.support.written import contents, new_table, rows

NOW = {"hoodie.clustering.inline": "true", "hoodie.clustering.inline.max.commits": "1"}
PLANNED = {"hoodie.clustering.schedule.inline": "true", "hoodie.parquet.small.file.limit": "0"}


def test_an_error_says_that_the_write_stands() -> None:
    made = new_table()
    made.insert(rows(("k", "x", 0)))
    options = NOW | {"hoodie.clustering.plan.strategy.sort.columns": "nope"}
    with pytest.raises(InvalidOptionError, match="'nope' is no column") as raised:
        run_inline(made.context, "20260101000000000", options, LocalEngine(), max_memory=1 << 20)
    assert "20260101000000000 is committed; only the clustering after it failed" in raised.value.__notes__[0]


def test_a_store_that_is_away_by_then_makes_nobody_write_the_rows_again(caplog: pytest.LogCaptureFixture) -> None:
    made = new_table()
    claims = FaultPlan(1, Fault.UNAVAILABLE, times=9, only=lambda call: planner_claim("") in call.path)
    away = HudiTable(replace(made.context, storage=FaultyStorage(made.context.storage, claims)))
    away.insert(rows(("k", "x", 0)), options=PLANNED)
    assert claims.fired
    assert contents(made) == [("k", "x", 0)]
    assert "is committed; only the clustering after it failed, which a later write does" in caplog.text
    made.insert(rows(("l", "x", 1)), options=PLANNED)
    assert pending_clusterings(made.context, load_timeline(made.context))
