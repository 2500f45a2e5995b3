"""When services owe something."""

from __future__ import annotations

from hudi_table.model.service.debt import ArchivingDebt, CompactionDebt


def test_a_compaction_is_owed_where_a_plan_waits_or_a_new_one_is_due() -> None:
    assert CompactionDebt(pending=("20261121100000000",)).due is True
    assert CompactionDebt(why="3 deltacommits").due is True
    assert CompactionDebt(("20261121100000000",), "3 deltacommits", 2, 10).due is True


def test_nothing_is_owed_of_a_table_of_which_nothing_is_known() -> None:
    nothing = CompactionDebt()
    assert (nothing.due, nothing.file_groups, nothing.bytes_read) == (False, 0, 0)
    assert ArchivingDebt() == ArchivingDebt(writes=0, most=0, leaving=0, due=False, held_by="")
