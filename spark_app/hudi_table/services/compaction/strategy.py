"""Which file groups a compaction takes, and in which order; every strategy of Hudi 0.15.0, and
several in a row.

Facts (0.15.0): reading a slice costs its base and log files, writing it the base file's size, or
the maximum file size without one; the strategies that are bounded take groups in their order until
the target is spent, the one that spends it included; a day is a partition path in its natural
order, newest first. The strategies that know partitions read a path as `yyyy/MM/dd`: the bounded
one takes what is at most so many days old, days to come included, the unbounded one the rest.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import partial

from hudi_table.errors import InvalidOptionError
from hudi_table.model import digits
from hudi_table.model.options.known import known_options, option_text, whole_option
from hudi_table.model.options.values import check_value, regex, short_class
from hudi_table.table.view.file_system_view import FileSlice

STRATEGY = "hoodie.compaction.strategy"
TARGET_IO = "hoodie.compaction.target.io"
LOG_SIZE = "hoodie.compaction.logfile.size.threshold"
LOG_NUMBER = "hoodie.compaction.logfile.num.threshold"
DAYS = "hoodie.compaction.daybased.target.partitions"
PARTITIONS = "hoodie.compaction.partition.path.regex"
_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Candidate:
    """A slice with logs, and what compacting it costs. Sizes are bytes."""

    slice: FileSlice
    max_file_size: int

    @property
    def log_bytes(self) -> int:
        """Bytes of its logs."""
        return sum(log.size for log in self.slice.logs)

    @property
    def read_bytes(self) -> int:
        """What is read."""
        return self.slice.size

    @property
    def write_bytes(self) -> int:
        """What is written, as Hudi estimates it."""
        return self.slice.base.size if self.slice.base else self.max_file_size

    def metrics(self) -> dict[str, float]:
        """As they stand in the plan; Hudi counts whole MiB."""
        read, write = self.read_bytes // _MIB, self.write_bytes // _MIB
        return {
            "TOTAL_LOG_FILES": float(len(self.slice.logs)),
            "TOTAL_IO_READ_MB": float(read),
            "TOTAL_IO_WRITE_MB": float(write),
            "TOTAL_IO_MB": float(read + write),
            "TOTAL_LOG_FILES_SIZE": float(self.log_bytes),
        }


Candidates = list[Candidate]
Select = Callable[[Candidates], Candidates]


def candidates(slices: Sequence[FileSlice], max_file_size: int) -> Candidates:
    """The slices that have logs."""
    return [Candidate(item, max_file_size) for item in slices if item.logs]


def strategy_of(options: Mapping[str, str], today: date) -> Select:
    """The strategy that `hoodie.compaction.strategy` names: a class of Hudi's, or its short name
    (`LogFileSizeBased`, …); several, separated by commas, apply one after the other. `today` is in
    the timeline's zone. Raises InvalidOptionError that names key and value."""
    days = whole_option(options, DAYS)
    since = today - timedelta(days=min(days, (today - date.min).days))
    known: dict[str, Select] = {
        "UnBounded": list,
        "BoundedIO": partial(_bounded, target=whole_option(options, TARGET_IO) * _MIB),
        "DayBased": partial(_newest_days, days=days),
        "BoundedPartitionAware": partial(_by_date, since=since, newer=True),
        "UnBoundedPartitionAware": partial(_by_date, since=since, newer=False),
        "PartitionRegexBased": partial(_partitions, pattern=_pattern(options)),
    }
    known["LogFileSizeBased"] = _in_a_row(
        [partial(_large_logs, least=whole_option(options, LOG_SIZE)), known["BoundedIO"]]
    )
    known["LogFileNumBased"] = _in_a_row(
        [partial(_many_logs, least=whole_option(options, LOG_NUMBER)), known["BoundedIO"]]
    )
    names = option_text(options, STRATEGY)
    check_value(STRATEGY, known_options()[STRATEGY].values, names)
    chosen = [short_class(name) for name in names.split(",")]
    if "PartitionRegexBased" in chosen and not options.get(PARTITIONS):
        raise InvalidOptionError(f"{STRATEGY}=PartitionRegexBased needs {PARTITIONS}")
    return _in_a_row([known[name] for name in chosen])


def _in_a_row(chosen: Sequence[Select]) -> Select:
    def select(candidates: Candidates) -> Candidates:
        for one in chosen:
            candidates = one(candidates)
        return candidates

    return select


def _bounded(candidates: Candidates, *, target: int) -> Candidates:
    taken: Candidates = []
    for candidate in candidates:
        taken.append(candidate)
        target -= candidate.read_bytes + candidate.write_bytes
        if target <= 0:
            break
    return taken


def _large_logs(candidates: Candidates, *, least: int) -> Candidates:
    return sorted((c for c in candidates if c.log_bytes >= least), key=lambda c: -c.log_bytes)


def _many_logs(candidates: Candidates, *, least: int) -> Candidates:
    return sorted((c for c in candidates if len(c.slice.logs) >= least), key=lambda c: -len(c.slice.logs))


def _newest_days(candidates: Candidates, *, days: int) -> Candidates:
    newest = sorted({c.slice.partition for c in candidates}, reverse=True)[:days]
    return [c for partition in newest for c in candidates if c.slice.partition == partition]


def _by_date(candidates: Candidates, *, since: date, newer: bool) -> Candidates:
    """Groups of the partitions from a day on, those to come included, or of the ones before it; the
    newest first."""
    dates = {partition: _date_of(partition) for partition in {c.slice.partition for c in candidates}}
    chosen = [partition for partition, day in dates.items() if (day >= since) is newer]
    order = sorted(chosen, key=lambda partition: dates[partition], reverse=True)
    return [c for partition in order for c in candidates if c.slice.partition == partition]


def _date_of(partition: str) -> date:
    """The day of a path `yyyy/MM/dd`, with or without the names of its fields. Raises
    InvalidOptionError."""
    parts = [digits.whole(part.rpartition("=")[2]) or 0 for part in partition.split("/")]
    try:
        year, month, day = parts
        return date(year, month, day)
    except (ValueError, OverflowError):
        raise InvalidOptionError(
            f"{STRATEGY} goes by the dates of partitions, and {partition!r} is no path yyyy/MM/dd; use another strategy"
        ) from None


def _partitions(candidates: Candidates, *, pattern: re.Pattern[str] | None) -> Candidates:
    return [c for c in candidates if pattern is not None and pattern.fullmatch(c.slice.partition)]


def _pattern(options: Mapping[str, str]) -> re.Pattern[str] | None:
    text = options.get(PARTITIONS)
    return regex(PARTITIONS, text) if text else None
