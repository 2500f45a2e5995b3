"""What a clustering leaves: files that it would write again as they are."""

from __future__ import annotations

import pytest

from hudi_table.services.clustering.execute import run_clustering
from hudi_table.table.engine.local_engine import LocalEngine
from tests.hudi_table.services.clustering.test_clustering import NO_PACKING, PLAN, pending
from tests.support.written import new_table, rows


@pytest.mark.parametrize("order", [{}, {PLAN + "sort.columns": "ts"}])
def test_what_a_clustering_of_the_same_order_wrote_is_left_until_something_came(order: dict[str, str]) -> None:
    table = new_table()
    for number in range(3):
        table.insert(rows((f"a{number}", "x", 9 - number)), options=NO_PACKING)
    table.insert(rows(("c", "y", 3)))
    assert table.services.clustering(order, force=True).schedule() is not None
    run_clustering(table.context, pending(table)[0], LocalEngine(1), max_memory=1 << 28)
    assert table.services.clustering(order, force=True).plan() is None
    other = {PLAN + "sort.columns": "id"}
    assert table.services.clustering(other, force=True).plan() is not None
    table.insert(rows(("d", "y", 3)), options=NO_PACKING)
    again = table.services.clustering(order, force=True).plan()
    assert again is not None
    assert (again.file_groups, again.files_after) == (2, 1)
