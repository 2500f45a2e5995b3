"""Faults of compaction and clustering: what a plan takes, who writes beside it, and what of it ends
in the new files."""

from __future__ import annotations

from tests.museum.mutant import Mutant

MUTANTS = (
    Mutant(
        name="a log whose completion only the archive tells is left out of its slice",
        bug="#14365",
        file="table/view/file_groups.py",
        old="known = self._archived().get(instant)",
        new='known = "9" * 17',
        test="hudi_table/table/view/test_slices_by_completion.py::test_the_archive_tells_when_an_old_log_completed_where_that_matters",
    ),
    Mutant(
        name="rows that are written beside a compaction's plan go into logs that the compaction drops",
        bug="#10803, #7969",
        file="write/workload.py",
        old="instant = planned or item.instant",
        new="instant = item.instant",
        test="hudi_table/services/test_compaction.py::test_what_is_written_beside_a_plan_is_there_before_and_after_its_execution",
    ),
    Mutant(
        name="a file group lies in two pending plans",
        bug="#1780",
        file="services/compaction/debt.py",
        old="free = (item for item in view.latest_slices() if (item.partition, item.file_id) not in held)",
        new="free = (item for item in view.latest_slices() if item.file_id not in held)",
        test="hudi_table/services/test_compaction.py::test_a_group_lies_in_one_plan_only_and_a_plan_of_nothing_is_none",
    ),
)
