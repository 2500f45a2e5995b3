"""When a compaction is due, and which file groups it takes."""

from __future__ import annotations

from datetime import date

import pytest

from hudi_table.errors import InvalidOptionError
from hudi_table.model.names import LogFileName
from hudi_table.model.timeline.instants import Action, Instant, State, parse_instant_time
from hudi_table.services.compaction.strategy import Candidates, candidates, strategy_of
from hudi_table.services.compaction.trigger import Trigger
from hudi_table.table.timeline.timeline import Timeline
from hudi_table.table.view.file_system_view import BaseFile, FileSlice, LogFile

MIB = 1 << 20
NOW = parse_instant_time("20261121100000000")


def at(minute: int) -> str:
    return f"2026112109{minute:02d}00000"


def timeline(*found: tuple[int, Action, State]) -> Timeline:
    return Timeline(tuple(Instant(at(minute), action, state) for minute, action, state in found))


DELTA, DONE = (Action.DELTA_COMMIT, State.COMPLETED), (Action.COMMIT, State.COMPLETED)
ASKED = (Action.COMPACTION, State.REQUESTED)
HISTORY = timeline((1, *DELTA), (2, *DELTA), (10, *DONE), (11, *DELTA), (12, *DELTA), (20, *ASKED), (21, *DELTA))


@pytest.mark.parametrize(
    ("options", "due"),
    [
        ({"commits": "3"}, "3 deltacommits since 20261121091000000"),
        ({"commits": "4"}, None),
        ({"commits": "1", "strategy": "NUM_COMMITS_AFTER_LAST_REQUEST"}, "1 deltacommits since 20261121092000000"),
        ({"commits": "2", "strategy": "NUM_COMMITS_AFTER_LAST_REQUEST"}, None),
        ({"seconds": "3000", "strategy": "TIME_ELAPSED"}, "3000 s since 20261121091000000"),
        ({"seconds": "3001", "strategy": "TIME_ELAPSED"}, None),
        ({"seconds": "3000", "commits": "4", "strategy": "NUM_AND_TIME"}, None),
        ({"seconds": "3000", "commits": "3", "strategy": "num_and_time"}, "3 deltacommits since 20261121091000000 and 3000 s"),
        ({"seconds": "3000", "commits": "4", "strategy": "NUM_OR_TIME"}, "3000 s since"),
        ({"seconds": "9999", "commits": "4", "strategy": "NUM_OR_TIME"}, None),
    ],
)  # fmt: skip
def test_a_compaction_is_due_by_number_by_time_by_both_or_either(options: dict[str, str], due: str | None) -> None:
    keys = {
        "commits": "hoodie.compact.inline.max.delta.commits",
        "seconds": "hoodie.compact.inline.max.delta.seconds",
        "strategy": "hoodie.compact.inline.trigger.strategy",
    }
    trigger = Trigger.parse({keys[key]: value for key, value in options.items()})
    found = trigger.due(HISTORY, NOW)
    assert (found is None) if due is None else (found or "").startswith(due)


def test_a_table_without_deltacommits_since_its_compaction_has_nothing_due() -> None:
    always = Trigger.parse({"hoodie.compact.inline.max.delta.commits": "1"})
    assert always.due(timeline((1, *DELTA), (2, *DONE)), NOW) is None
    assert always.due(timeline(), NOW) is None
    assert always.due(timeline((1, *DELTA)), NOW) == "1 deltacommits since the first"


def slice_of(partition: str, name: str, base: int | None, *logs: int) -> FileSlice:
    file = None if base is None else BaseFile(f"{partition}/{name}.parquet", partition, name, at(0), base * MIB)
    found = [
        LogFile(f"{partition}/.{name}.log.{n}", size * MIB, LogFileName(name, at(0), n, None))
        for n, size in enumerate(logs)
    ]
    return FileSlice(partition, name, at(0), file, tuple(found))


SLICES = [
    slice_of("2026/11/01", "a", 100, 5),
    slice_of("2026/11/02", "b", 100, 1, 1, 1),
    slice_of("2026/11/03", "c", None, 20),
    slice_of("2026/11/03", "d", 100),
    slice_of("2026/11/03", "e", 10, 2, 2),
]


def chosen(**options: str) -> str:
    keys = {
        "strategy": "hoodie.compaction.strategy",
        "io": "hoodie.compaction.target.io",
        "size": "hoodie.compaction.logfile.size.threshold",
        "number": "hoodie.compaction.logfile.num.threshold",
        "days": "hoodie.compaction.daybased.target.partitions",
        "regex": "hoodie.compaction.partition.path.regex",
    }
    found: Candidates = strategy_of({keys[key]: value for key, value in options.items()}, date(2026, 11, 3))(
        candidates(SLICES, 120 * MIB)
    )
    return "".join(candidate.slice.file_id for candidate in found)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, "caeb"),
        ({"size": str(4 * MIB)}, "cae"),
        ({"io": "140"}, "c"),
        ({"io": "141"}, "ca"),
        ({"strategy": "UnBounded"}, "abce"),
        ({"strategy": "BoundedIO", "io": "1"}, "a"),
        ({"strategy": "LogFileNumBased", "number": "2"}, "be"),
        ({"strategy": "org.apache.hudi.table.action.compact.strategy.DayBasedCompactionStrategy", "days": "2"}, "ceb"),
        ({"strategy": "BoundedPartitionAware", "days": "1"}, "ceb"),
        ({"strategy": "UnBoundedPartitionAwareCompactionStrategy", "days": "1"}, "a"),
        ({"strategy": "BoundedPartitionAware, BoundedIO", "days": "0", "io": "1"}, "c"),
        ({"strategy": "PartitionRegexBased", "regex": "2026/11/0[12]"}, "ab"),
        ({"strategy": "PartitionRegexBased, LogFileSizeBased", "regex": "2026/11/0[23]", "io": "150"}, "ce"),
    ],
)
def test_each_strategy_takes_its_groups_in_its_order(options: dict[str, str], expected: str) -> None:
    assert chosen(**options) == expected


def test_the_metrics_are_those_of_hudis_plans() -> None:
    (_, _, third, _) = candidates(SLICES, 120 * MIB)
    assert third.metrics() == {
        "TOTAL_LOG_FILES": 1.0,
        "TOTAL_IO_READ_MB": 20.0,
        "TOTAL_IO_WRITE_MB": 120.0,
        "TOTAL_IO_MB": 140.0,
        "TOTAL_LOG_FILES_SIZE": 20.0 * MIB,
    }


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"strategy": "Alphabetical"}, "Alphabetical"),
        ({"strategy": "PartitionRegexBased"}, "hoodie.compaction.partition.path.regex"),
        ({"regex": "("}, "no regular expression"),
        ({"io": "much"}, "'much'"),
    ],
)
def test_an_option_that_cannot_be_is_refused_by_name(options: dict[str, str], named: str) -> None:
    with pytest.raises(InvalidOptionError, match=named):
        chosen(**options)
    with pytest.raises(InvalidOptionError, match="NUM_COMMITS"):
        Trigger.parse({"hoodie.compact.inline.trigger.strategy": "MOON"})


def test_a_partition_that_is_no_date_is_told_to_strategies_that_go_by_dates() -> None:
    strategy = strategy_of({"hoodie.compaction.strategy": "BoundedPartitionAware"}, date(2026, 11, 3))
    hive = slice_of("year=2026/month=11/day=03", "h", 1, 1)
    assert [c.slice.file_id for c in strategy(candidates([hive], MIB))] == ["h"]
    with pytest.raises(InvalidOptionError, match="'town' is no path yyyy/MM/dd"):
        strategy(candidates([slice_of("town", "t", 1, 1)], MIB))
