"""What another engine does to a hash ring while a plan of it waits."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hudi_table.api import HudiTable, open_table
from hudi_table.errors import UnsupportedTableError, WriteConflictError
from hudi_table.model.names import LogFileName
from hudi_table.services.clustering.rings import changes_of
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.view.clustering_plans import pending_clusterings
from hudi_table.table.view.hash_rings import ring_path
from tests.hudi_table.services.clustering.test_rings import SPLIT, made, ring, values


def planned(table: HudiTable) -> str:
    plan = table.schedule_clustering(SPLIT, force=True)
    assert plan is not None
    return plan.instant


def store_ring(table: HudiTable, sequence: int) -> None:
    found = ring(table)
    table.context.storage.put(ring_path("x", found.instant), replace(found, sequence=sequence).to_json())


def coming(table: HudiTable) -> str:
    """A file group that the pending plan is to make in partition x."""
    (plan,) = pending_clusterings(table.context, load_timeline(table.context)).values()
    nodes = [node for change in changes_of(plan) for node in change.changes if change.partition == "x"]
    return next(node.file_id for node in nodes if node.prefix)


def test_a_plan_for_another_ring_than_the_table_has_is_given_up() -> None:
    table = made()
    instant, sequence = planned(table), ring(table).sequence
    store_ring(table, sequence + 1)
    with pytest.raises(WriteConflictError, match=f"ring of partition 'x' has changed .* planned at {instant}"):
        open_table(table.base_path).run_clustering(instant)
    assert open_table(table.base_path).cluster(SPLIT, force=True), "it is given up, and another one is made"
    assert len(values(open_table(table.base_path))) == 250


def test_a_plan_whose_groups_to_come_another_engine_writes_to_is_left_to_it() -> None:
    table = made()
    instant = planned(table)
    log = f"x/{LogFileName(coming(table), instant, 1, '0-1-0')}"
    table.context.storage.put(log, b"")
    with pytest.raises(UnsupportedTableError, match=f"planned at {instant}, by Hudi's .* let Hudi execute the plan"):
        open_table(table.base_path).run_clustering(instant)
    table.context.storage.delete(log)
    assert open_table(table.base_path).run_clustering(instant).figures["rowsWritten"] > 0
