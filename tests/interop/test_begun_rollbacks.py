"""Rollbacks that Hudi begins and cannot end, and what was begun of a compaction and taken back."""

from __future__ import annotations

from pathlib import Path

import pytest

from hudi_table.table.commit.decision import Decider
from hudi_table.table.timeline import chain
from hudi_table.table.timeline.active import load_timeline
from tests.interop.conftest import Hudis
from tests.interop.model import rows
from tests.interop.test_later_versions import ORACLE, upsert
from tests.interop.test_services_of_later_versions import VERSIONS, Life
from tests.support.hudi_oracle import HudiFailedError
from tests.support.taken_back import aged

pytestmark = [pytest.mark.interop]


def test_a_rollback_that_hudi_began_and_could_not_end_is_ended_by_us(hudis: Hudis, tmp_path: Path) -> None:
    """At ten deltas Hudi compacts the metadata table first, and then finds the commit in it."""
    life = Life(tmp_path / "table", hudis[ORACLE], 8, "simple", "CopyOnWrite")
    life.write("insert", range(20))

    def write(numbers: range) -> str:
        life.steps += 1
        data = rows(numbers, life.steps)
        upsert(life.oracle, life.base, data, 8, life.index)
        life.model.apply("upsert", data)
        return load_timeline(life.table.context).commits[-1].time

    def deltas() -> int:
        return len(list((life.base / ".hoodie/metadata/.hoodie/timeline").glob("[0-9]*.deltacommit")))

    write(range(5))  # Hudi builds the metadata table
    while deltas() < 9:
        life.write("upsert", range(deltas()))
    kept = life.model.copy()
    taken = write(range(30))
    assert deltas() == 10
    life.oracle.run(f"CREATE TABLE begun USING hudi LOCATION '{life.base}'")
    with pytest.raises(HudiFailedError, match="is earlier than the latest compaction"):
        life.oracle.sql(f"CALL rollback_to_instant(table => 'begun', instant_time => '{taken}')")
    life.model = kept
    life.table.rollback(taken, writers_stopped=True)
    aged(life.table).clean(force=True)
    assert not life.table.doctor()
    life.check()
    write(range(12))
    life.check()


@VERSIONS
def test_hudi_reads_a_compaction_of_ours_that_was_taken_back_and_is_executed_again(
    hudis: Hudis, tmp_path: Path, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    life = Life(tmp_path / "table", hudis[ORACLE], version, "bucket", "MergeOnRead")
    life.write("insert", range(20))
    life.write("upsert", range(5, 15))
    table = life.table
    plan = table.schedule_compaction(force=True)
    assert plan is not None
    with monkeypatch.context() as changes:
        changes.setattr(Decider, "publish", lambda *_: None)
        table.run_compaction(plan.instant)
    assert chain.append_abort(table.context, chain.read_tail(table.context), plan.instant)
    life.write("upsert", range(12, 18))
    aged(life.table).run_compaction(plan.instant)
    life.check()
    assert not load_timeline(life.table.context).pending
    life.write("upsert", range(2, 22), by_them=True)
