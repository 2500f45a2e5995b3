"""Which slices a clustering takes together: Hudi 0.15.0's strategies, filters and limits."""

from __future__ import annotations

import pytest

from hudi_table.errors import InvalidOptionError
from hudi_table.services.clustering.strategy import ClusteringStrategy
from hudi_table.table.rows.row_order import Layout, RowOrder, order_of
from hudi_table.table.view.file_system_view import BaseFile, FileSlice

PLAN = "hoodie.clustering.plan.strategy."
MIB = 1 << 20
DAYS = [f"2026-11-{day:02d}" for day in range(1, 31)]


def piece(number: int, size: int | None, partition: str = "") -> FileSlice:
    """A slice of `size` bytes; None has no base file."""
    base = None if size is None else BaseFile(f"f{number}", partition, f"f{number}", "1", size)
    return FileSlice(partition, f"f{number}", "1", base)


def groups(options: dict[str, str], slices: list[FileSlice], hour: int = 0) -> list[tuple[list[str], int]]:
    partitions = sorted({item.partition for item in slices})
    found = ClusteringStrategy.parse(options).groups(slices, partitions, hour)
    return [([item.file_id for item in group.slices], group.outputs) for group in found]


def test_small_files_go_together_largest_first_up_to_the_limit_of_a_group() -> None:
    sizes = [96, 120, 93, 120, 62, 300]
    slices = [piece(number, size * MIB) for number, size in enumerate(sizes)]
    target = {PLAN + "target.file.max.bytes": str(300 * MIB), PLAN + "small.file.limit": str(200 * MIB)}
    assert groups(target, slices) == [(["f1", "f3", "f0", "f2", "f4"], 2)]
    assert groups(target | {PLAN + "max.bytes.per.group": str(240 * MIB)}, slices) == [
        (["f1", "f3"], 1),
        (["f0", "f2"], 1),
        (["f4"], 1),
    ]


@pytest.mark.parametrize(("size", "outputs"), [(299, 1), (300, 1), (301, 2), (600, 2), (601, 3)])
def test_a_group_becomes_as_many_files_as_the_target_size_goes_into_it(size: int, outputs: int) -> None:
    options = {PLAN + "target.file.max.bytes": "300", PLAN + "small.file.limit": "1000"}
    assert groups(options, [piece(0, size)]) == [(["f0"], outputs)]


def test_a_file_of_the_limit_is_not_small_and_one_without_base_file_counts_with_the_maximum_file_size() -> None:
    options = {PLAN + "small.file.limit": "100", "hoodie.parquet.max.file.size": "700"}
    slices = [piece(0, 100), piece(1, 99), piece(2, None)]
    assert groups(options | {PLAN + "target.file.max.bytes": "400"}, slices) == [(["f2", "f1"], 2)]


def test_a_group_of_one_slice_is_left_out_if_single_groups_are_not_wanted() -> None:
    one = {PLAN + "single.group.clustering.enabled": "false"}
    assert groups(one, [piece(0, 5)]) == []
    assert groups(one, [piece(0, 5), piece(1, 5)]) == [(["f0", "f1"], 1)]
    # Hudi asks only of a partition's last group.
    assert groups(one | {PLAN + "max.bytes.per.group": "5"}, [piece(0, 5), piece(1, 5)]) == [(["f0"], 1)]


def test_the_number_of_groups_is_limited_over_all_partitions() -> None:
    slices = [piece(number, 5, f"p{number % 3}") for number in range(9)]
    limited = {PLAN + "max.num.groups": "4", PLAN + "max.bytes.per.group": "5"}
    assert groups(limited, slices) == [(["f0"], 1), (["f3"], 1), (["f6"], 1), (["f1"], 1)]


def test_single_file_sort_rewrites_every_small_file_by_itself() -> None:
    options = {PLAN + "class": "SparkSingleFileSortPlanStrategy", PLAN + "target.file.max.bytes": "1"}
    assert groups(options, [piece(0, 5), piece(1, 7)]) == [(["f0"], 1), (["f1"], 1)]
    assert ClusteringStrategy.parse(options).execution.endswith(".SparkSingleFileSortExecutionStrategy")


FILTER = "hoodie.clustering.plan.partition.filter.mode"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, DAYS),
        ({FILTER: "RECENT_DAYS"}, ["2026-11-30", "2026-11-29"]),
        ({PLAN + "class": "org.apache.hudi.client.clustering.plan.strategy.SparkRecentDaysClusteringPlanStrategy",
          PLAN + "daybased.lookback.partitions": "1", PLAN + "daybased.skipfromlatest.partitions": "2"}, ["2026-11-28"]),
        ({PLAN + "class": "SparkSelectedPartitions", PLAN + "cluster.begin.partition": "2026-11-04",
          PLAN + "cluster.end.partition": "2026-11-05"}, ["2026-11-04", "2026-11-05"]),
        ({FILTER: "SELECTED_PARTITIONS", PLAN + "cluster.begin.partition": "2026-11-30"}, ["2026-11-30"]),
        ({FILTER: "day_rolling"}, ["2026-11-03", "2026-11-27"]),
        ({PLAN + "class": "DayRolling"}, ["2026-11-03", "2026-11-27"]),
        ({PLAN + "partition.selected": "2026-11-09,2026-11-07"}, ["2026-11-07", "2026-11-09"]),
        ({PLAN + "partition.regex.pattern": ".*-1[01]"}, ["2026-11-10", "2026-11-11"]),
    ],
)  # fmt: skip
def test_partitions_are_chosen_as_hudi_does(options: dict[str, str], expected: list[str]) -> None:
    slices = [piece(number, 5, day) for number, day in enumerate(DAYS)]
    found = ClusteringStrategy.parse(options | {PLAN + "max.num.groups": "99"}).groups(slices, DAYS, 2)
    assert [group.slices[0].partition for group in found] == expected


def test_recent_days_are_those_of_the_table_even_if_they_hold_no_small_file() -> None:
    found = ClusteringStrategy.parse({FILTER: "RECENT_DAYS"}).groups([piece(0, 5, DAYS[0])], DAYS, 0)
    assert found == []


@pytest.mark.parametrize("text", ["z-order", "ZORDER", "z_order"])
def test_a_layout_is_named_as_hudi_names_it_in_any_release(text: str) -> None:
    options = {PLAN + "sort.columns": " a, b ", "hoodie.layout.optimize.strategy": text}
    assert order_of(options) == RowOrder(("a", "b"), Layout.Z_ORDER)
    assert order_of(ClusteringStrategy.parse(options).params) == RowOrder(("a", "b"), Layout.Z_ORDER)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (PLAN + "class", "org.example.Mine"),
        (FILTER, "SOME"),
        (PLAN + "target.file.max.bytes", "0"),
        (PLAN + "partition.regex.pattern", "("),
        (PLAN + "single.group.clustering.enabled", "maybe"),
        ("hoodie.layout.optimize.strategy", "spiral"),
    ],
)
def test_a_bad_option_is_refused_by_its_name(key: str, value: str) -> None:
    with pytest.raises(InvalidOptionError, match=key):
        ClusteringStrategy.parse({key: value})


@pytest.mark.parametrize("end", ["begin", "end"])
def test_a_span_of_partitions_that_no_filter_looks_at_is_refused(end: str) -> None:
    """All partitions were taken, whatever the span said."""
    key = f"{PLAN}cluster.{end}.partition"
    with pytest.raises(InvalidOptionError, match=f"{key} chooses nothing by .*=NONE: give SELECTED_PARTITIONS"):
        ClusteringStrategy.parse({key: "2026"})


@pytest.mark.parametrize("key", ["daybased.lookback.partitions", "daybased.skipfromlatest.partitions"])
def test_days_are_counted_by_the_filter_of_recent_days_alone(key: str) -> None:
    with pytest.raises(InvalidOptionError, match=f"{PLAN}{key}=5 chooses nothing by .*NONE: give RECENT_DAYS"):
        ClusteringStrategy.parse({PLAN + key: "5"})
    ClusteringStrategy.parse({PLAN + key: "5", "hoodie.clustering.plan.partition.filter.mode": "RECENT_DAYS"})
    ClusteringStrategy.parse({PLAN + key: "5", PLAN + "class": "SparkRecentDaysClusteringPlanStrategy"})
