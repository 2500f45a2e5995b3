"""Clusterings beside other writes: by the file groups that both wrote to, and by the schema."""

from __future__ import annotations

import pyarrow as pa
import pytest

from hudi_table.api import HudiTable, open_table
from hudi_table.errors import WriteConflictError
from hudi_table.model.timeline.conflict_keys import KEY_LIMIT
from hudi_table.table.timeline.active import load_timeline
from tests.hudi_table.services.clustering.test_clustering import NO_PACKING, planned
from tests.hudi_table.write.test_conflicts import Meanwhile
from tests.support.written import contents, new_table, rows

ROWS = [("a", "x", 1), ("b", "x", 2), ("c", "y", 3)]


@pytest.fixture(params=["CopyOnWrite", "MergeOnRead"])
def table(request: pytest.FixtureRequest) -> HudiTable:
    """Two small files in x and one in y."""
    made = new_table(type=request.param)
    for row in ROWS:
        made.insert(rows(row), options=NO_PACKING)
    return made


MANY = rows(*((f"many{number}", "x", number) for number in range(KEY_LIMIT + 1)))


def test_a_large_insert_that_writes_to_no_planned_group_and_the_clustering_both_stand(table: HudiTable) -> None:
    instant, other = planned(table), open_table(table.base_path)
    table.run_clustering(instant, engine=Meanwhile(lambda: other.upsert(MANY)))
    assert len(contents(table)) == len(ROWS) + len(MANY)
    assert instant in {i.time for i in load_timeline(table.context).commits}


@pytest.mark.parametrize("whole", [False, True])
def test_a_large_insert_stands_beside_a_clustering_that_it_did_not_see(table: HudiTable, whole: bool) -> None:
    other = open_table(table.base_path)
    work = (lambda: other.cluster(force=True)) if whole else (lambda: planned(other))
    table.upsert(MANY, options=NO_PACKING, engine=Meanwhile(work))
    assert len(contents(table)) == len(ROWS) + len(MANY)
    table.cluster()
    assert len(contents(table)) == len(ROWS) + len(MANY)


def test_overwriting_a_partition_excludes_a_clustering_of_it_that_it_did_not_see(table: HudiTable) -> None:
    other = open_table(table.base_path)
    with pytest.raises(WriteConflictError):
        table.write(
            rows(("o", "x", 1)), operation="insert_overwrite", engine=Meanwhile(lambda: other.cluster(force=True))
        )
    assert contents(table) == ROWS


def test_a_change_of_the_schema_makes_a_clustering_that_is_executed_void(table: HudiTable) -> None:
    instant, other = planned(table), open_table(table.base_path)
    wider = rows(("n", "new", 1)).append_column("extra", pa.array(["e"]))
    with pytest.raises(WriteConflictError):
        table.run_clustering(instant, engine=Meanwhile(lambda: other.insert(wider)))
    assert len(contents(table)) == len(ROWS) + 1


def test_an_overwrite_is_counted_as_a_commit_and_not_as_a_clustering(table: HudiTable) -> None:
    every_fifth = {"hoodie.clustering.async.max.commits": "5"}
    assert table.schedule_clustering(every_fifth) is None
    table.write(rows(("o", "x", 1)), operation="insert_overwrite")
    table.insert(rows(("p", "x", 2)), options=NO_PACKING)
    assert table.schedule_clustering(every_fifth) is not None
