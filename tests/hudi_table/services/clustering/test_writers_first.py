"""A clustering that gives way to writers of its file groups, as the options say: to those that have
committed, and to those that go on."""

from __future__ import annotations

import pytest

from hudi_table.api import HudiTable, open_table
from hudi_table.errors import WriteConflictError
from tests.hudi_table.services.clustering.test_clustering import NO_PACKING, planned
from tests.hudi_table.write.test_conflicts import Meanwhile
from tests.support.written import contents, new_table, rows

STRATEGY = "hoodie.write.lock.conflict.resolution.strategy"
WRITERS_FIRST = {STRATEGY: "org.apache.hudi.client.transaction.PreferWriterConflictResolutionStrategy"}
GIVES_WAY = {"hoodie.clustering.fail.on.pending.ingestion.during.conflict.resolution": "true"}
ALLOWED = {"hoodie.clustering.updates.strategy": "SparkAllowUpdateStrategy"}


@pytest.fixture(params=["CopyOnWrite", "MergeOnRead"])
def table(request: pytest.FixtureRequest) -> HudiTable:
    """Three small files in x, one in y."""
    made = new_table(type=request.param)
    for number in range(3):
        made.insert(rows((f"a{number}", "x", number)), options=NO_PACKING)
    made.insert(rows(("c", "y", 3)))
    return made


ROWS = [("a0", "x", 0), ("a1", "x", 1), ("a2", "x", 2), ("c", "y", 3)]


@pytest.mark.parametrize("asked", [WRITERS_FIRST, GIVES_WAY])
def test_a_clustering_gives_way_to_a_write_that_goes_on_where_writers_are_preferred(
    table: HudiTable, asked: dict[str, str]
) -> None:
    instant, other = planned(table), open_table(table.base_path)

    def clustered() -> None:
        with pytest.raises(WriteConflictError, match=f"to which the plan of {instant} gives way"):
            other.run_clustering(instant, options=asked)

    table.upsert(rows(("a0", "x", 10)), options=WRITERS_FIRST, engine=Meanwhile(clustered))
    assert contents(table) == [("a0", "x", 10), *ROWS[1:]]
    assert table.pending_clusterings() == []
    (done,) = table.cluster(asked, force=True)
    assert (done.figures["rowsWritten"], contents(table)) == (4, [("a0", "x", 10), *ROWS[1:]])


def test_it_goes_on_beside_writes_of_other_file_groups(table: HudiTable) -> None:
    instant = planned(table, **{"hoodie.clustering.plan.strategy.partition.selected": "x"})
    other = open_table(table.base_path)
    clustered = Meanwhile(lambda: other.run_clustering(instant, options=WRITERS_FIRST))
    table.upsert(rows(("c", "y", 30)), options=WRITERS_FIRST, engine=clustered)
    assert contents(table) == [*ROWS[:-1], ("c", "y", 30)]
    assert table.pending_clusterings() == []


def test_without_the_options_the_write_that_goes_on_fails(table: HudiTable) -> None:
    instant, other = planned(table), open_table(table.base_path)
    with pytest.raises(WriteConflictError):
        table.upsert(rows(("a0", "x", 10)), options=ALLOWED, engine=Meanwhile(lambda: other.run_clustering(instant)))
    assert contents(table) == ROWS


def test_a_write_does_not_wait_for_a_plan_where_writers_are_preferred(table: HudiTable) -> None:
    instant = planned(table)
    with pytest.raises(WriteConflictError, match="is being clustered by the plan"):
        table.upsert(rows(("a0", "x", 10)))
    table.upsert(rows(("a0", "x", 10)), options=WRITERS_FIRST)
    with pytest.raises(WriteConflictError, match="was written to since its clustering was planned"):
        table.run_clustering(instant)
    assert contents(table) == [("a0", "x", 10), *ROWS[1:]]
