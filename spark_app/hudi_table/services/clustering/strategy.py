"""Which slices a clustering rewrites together, and into how many files; the strategies of Hudi
0.15.0.

Facts (0.15.0): a slice counts with its base file's size, one without with the maximum file size;
slices smaller than the small file limit are taken, largest first, into groups of at most so many
bytes; the number of groups is limited over all partitions; a last group of one slice is left out
unless single groups are allowed. A group becomes ceil(bytes / target) files. Unlike Hudi we leave
out what a clustering of the same order wrote, if it would become as many files again. Deprecated
strategy classes name a partition filter: recent days are the greatest partition paths, day rolling
takes every 24th partition of the sorted list, by the hour of the day.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from hudi_table.errors import InvalidOptionError
from hudi_table.model.options.known import (
    boolean_option,
    choice_option,
    default_of,
    explicit_option,
    known_options,
    option_text,
    whole_option,
)
from hudi_table.model.options.values import check_value, regex, short_class, whole
from hudi_table.model.options.write_options import WriteOptions
from hudi_table.table.rows.row_order import LAYOUT, SORT, Layout, RowOrder, order_of
from hudi_table.table.view.file_system_view import FileSlice

PLAN = "hoodie.clustering.plan.strategy."
CLASS = PLAN + "class"
FILTER = "hoodie.clustering.plan.partition.filter.mode"
SMALL_FILE = PLAN + "small.file.limit"
TARGET = PLAN + "target.file.max.bytes"
GROUP_BYTES = PLAN + "max.bytes.per.group"
GROUPS = PLAN + "max.num.groups"
SINGLE = PLAN + "single.group.clustering.enabled"
SELECTED = PLAN + "partition.selected"
PATTERN = PLAN + "partition.regex.pattern"
BEGIN = PLAN + "cluster.begin.partition"
END = PLAN + "cluster.end.partition"
LOOKBACK = PLAN + "daybased.lookback.partitions"
SKIPPED = PLAN + "daybased.skipfromlatest.partitions"
EXECUTION = "hoodie.clustering.execution.strategy.class"
_RUN = "org.apache.hudi.client.clustering.run.strategy."
_HOURS = 24


class PartitionFilter(StrEnum):
    """Hudi's names."""

    NONE = "NONE"
    RECENT_DAYS = "RECENT_DAYS"
    SELECTED_PARTITIONS = "SELECTED_PARTITIONS"
    DAY_ROLLING = "DAY_ROLLING"


RINGS = "ConsistentBucket"
"""The strategy of tables with a consistent hashing index, and of no others."""
_STRATEGIES: Mapping[str, PartitionFilter | None] = {
    "SizeBased": None,
    "SingleFileSort": None,
    "RecentDays": PartitionFilter.RECENT_DAYS,
    "SelectedPartitions": PartitionFilter.SELECTED_PARTITIONS,
    "DayRolling": PartitionFilter.DAY_ROLLING,
    RINGS: None,
}
"""The filter that a strategy's name stands for; None leaves it to the option."""


@dataclass(frozen=True, slots=True)
class SliceGroup:
    """Slices of one partition, and the number of files that they become."""

    slices: tuple[FileSlice, ...]
    outputs: int


@dataclass(frozen=True, slots=True)
class PartitionChoice:
    """Which partitions are looked at. `begin` and `end` are included."""

    mode: PartitionFilter
    selected: tuple[str, ...] = ()
    pattern: re.Pattern[str] | None = None
    begin: str | None = None
    end: str | None = None
    lookback: int = 2
    skipped: int = 0

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> PartitionChoice:
        """From Hudi's keys. Raises InvalidOptionError that names key and value."""
        implied = _STRATEGIES[strategy_name(options)]
        mode = implied or PartitionFilter(choice_option(options, FILTER))
        lost = next((key for key in (BEGIN, END) if options.get(key)), None)
        if lost is not None and mode is not PartitionFilter.SELECTED_PARTITIONS:
            raise InvalidOptionError(
                f"option {lost} chooses nothing by {FILTER}={mode}: give {PartitionFilter.SELECTED_PARTITIONS}, or leave it out"
            )
        for key in (LOOKBACK, SKIPPED):
            given = explicit_option(options, key)
            if mode is not PartitionFilter.RECENT_DAYS and given and whole(key, given) != whole(key, default_of(key)):
                raise InvalidOptionError(
                    f"option {key}={given} chooses nothing by {FILTER}={mode}: give {PartitionFilter.RECENT_DAYS}, or leave it out"
                )
        return cls(
            mode,
            tuple(name.strip() for name in options.get(SELECTED, "").split(",") if name.strip()),
            _pattern(options),
            options.get(BEGIN),
            options.get(END),
            whole_option(options, LOOKBACK),
            whole_option(options, SKIPPED),
        )

    def of(self, partitions: Sequence[str], hour: int) -> list[str]:
        """Those of the table's partitions that are looked at, in the order in which they are;
        `hour` of the day, from 0."""
        known = sorted(partitions)
        if self.selected:
            known = [name for name in known if name in self.selected]
        elif self.pattern is not None:
            known = [name for name in known if self.pattern.fullmatch(name)]
        match self.mode:
            case PartitionFilter.RECENT_DAYS:
                newest = known[::-1][self.skipped :]
                return newest[: self.lookback] if self.lookback else newest
            case PartitionFilter.SELECTED_PARTITIONS:
                return [
                    name
                    for name in known
                    if (self.begin is None or name >= self.begin) and (self.end is None or name <= self.end)
                ]
            case PartitionFilter.DAY_ROLLING:
                return [name for number, name in enumerate(known) if number % _HOURS == hour]
            case _:
                return known


@dataclass(frozen=True, slots=True)
class ClusteringStrategy:
    """What is clustered, and how. Sizes are bytes; defaults are Hudi's."""

    partitions: PartitionChoice
    one_by_one: bool
    small_file_limit: int
    target_file_size: int
    group_bytes: int
    groups_max: int
    single_groups: bool
    base_less_size: int
    order: RowOrder
    execution: str

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> ClusteringStrategy:
        """From Hudi's keys. Raises InvalidOptionError that names key and value."""
        if strategy_name(options) == RINGS:
            raise InvalidOptionError(
                f"{CLASS} is {options[CLASS]!r}, which is for tables with a ConsistentBucket index: leave it out"
            )
        one_by_one = strategy_name(options) == "SingleFileSort"
        fitting = "SparkSingleFileSortExecutionStrategy" if one_by_one else "SparkSortAndSizeExecutionStrategy"
        return cls(
            partitions=PartitionChoice.parse(options),
            one_by_one=one_by_one,
            small_file_limit=whole_option(options, SMALL_FILE),
            target_file_size=whole_option(options, TARGET, least=1),
            group_bytes=whole_option(options, GROUP_BYTES, least=1),
            groups_max=whole_option(options, GROUPS, least=1),
            single_groups=boolean_option(options, SINGLE),
            base_less_size=WriteOptions.parse(options).target_file_size,
            order=order_of(options),
            execution=_execution(options, fitting),
        )

    @property
    def params(self) -> dict[str, str]:
        """What the plan says of the order, so that whoever executes it makes the same. Hudi reads
        the columns only."""
        found = {SORT: ",".join(self.order.columns)} if self.order.columns else {}
        return found | ({LAYOUT: self.order.layout.value} if self.order.layout is not Layout.LINEAR else {})

    def groups(
        self,
        slices: Sequence[FileSlice],
        partitions: Sequence[str],
        hour: int,
        clustered: Callable[[FileSlice], bool] = lambda _: False,
    ) -> list[SliceGroup]:
        """The groups of the free slices of a table that has these partitions. `clustered`: whether
        a clustering of this order wrote a slice's base file."""
        by_partition: dict[str, list[FileSlice]] = {}
        for item in slices:
            if (item.base.size if item.base else 0) < self.small_file_limit:
                by_partition.setdefault(item.partition, []).append(item)
        found: list[SliceGroup] = []
        for partition in self.partitions.of(partitions, hour):
            items = by_partition.get(partition, [])
            packed = [SliceGroup((item,), 1) for item in items] if self.one_by_one else self._packed(items)
            found += [group for group in packed if not _well(group, clustered)]
            if len(found) >= self.groups_max:
                break
        return found[: self.groups_max]

    def _packed(self, slices: list[FileSlice]) -> list[SliceGroup]:
        groups: list[SliceGroup] = []
        held: list[FileSlice] = []
        total = 0
        for item in sorted(slices, key=self._size, reverse=True):
            if held and total + self._size(item) > self.group_bytes:
                groups.append(self._group(held, total))
                held, total = [], 0
            held.append(item)
            total += self._size(item)
        if len(held) > 1 or (held and self.single_groups):
            groups.append(self._group(held, total))
        return groups

    def _group(self, held: list[FileSlice], total: int) -> SliceGroup:
        return SliceGroup(tuple(held), max(1, math.ceil(total / self.target_file_size)))

    def _size(self, item: FileSlice) -> int:
        return item.base.size if item.base else self.base_less_size


def _well(group: SliceGroup, clustered: Callable[[FileSlice], bool]) -> bool:
    """Whether a group's files would be written again as they are."""
    same = group.outputs == len(group.slices)
    return same and all(item.base is not None and not item.logs and clustered(item) for item in group.slices)


def strategy_name(options: Mapping[str, str]) -> str:
    """The short name of the plan strategy; a class or a short name may be given. Raises
    InvalidOptionError."""
    class_name = option_text(options, CLASS)
    check_value(CLASS, known_options()[CLASS].values, class_name)
    return short_class(class_name)


def _execution(options: Mapping[str, str], fitting: str) -> str:
    """The class of Hudi that writes what is planned. Raises InvalidOptionError for one that would
    write something else."""
    class_name = explicit_option(options, EXECUTION) or fitting
    if short_class(class_name) != short_class(fitting):
        raise InvalidOptionError(
            f"{EXECUTION} is {class_name!r}, and what {CLASS} plans is written by {fitting}: leave one out"
        )
    return _RUN + fitting


def _pattern(options: Mapping[str, str]) -> re.Pattern[str] | None:
    text = options.get(PATTERN)
    return regex(PATTERN, text) if text else None
