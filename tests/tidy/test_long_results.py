"""What the long tests counted is added up over shards and over runs; of what is no count there is
no sum."""

from __future__ import annotations

from dataclasses import replace

from scripts.test_full import Result, totals

FIRST = Result(
    "soak-1", "c1", "", True, 60, 2, 0, 0, 1, "2 passed", ["1,200 processes killed (2 tests)", "9 seconds at the most (1 tests)"]
)  # fmt: skip


def rows(*results: Result) -> list[str]:
    return [line for line in totals(results) if line.startswith("| ") and "counted" not in line]


def test_counts_of_shards_are_added_up() -> None:
    assert rows(FIRST, replace(FIRST, shard="soak-2")) == ["| processes killed | 2 | 2,400 | 2,400 |"]


def test_earlier_runs_count_in_a_column_of_their_own_and_failed_ones_in_none() -> None:
    again = replace(FIRST, commit="c2", before=dict(FIRST.ever))
    assert rows(again) == ["| processes killed | 1 | 1,200 | 2,400 |"]
    failed = replace(again, passed=False, before=dict(again.ever))
    assert rows(failed) == ["| processes killed | 0 | 0 | 2,400 |"]
    assert rows() == []
