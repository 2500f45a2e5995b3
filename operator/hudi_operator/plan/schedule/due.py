"""Whether a table service is due: by what was measured, or by its own rule. One judgement for
TableServices and `maintenance`."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from hudi_operator.api.fields.sections import Need
from hudi_operator.api.service import RunMode
from hudi_operator.manifests.quantities import bytes_of, human_bytes
from hudi_operator.manifests.services import ServiceWork
from hudi_operator.plan.figures import Figures
from hudi_operator.plan.observed import TableObservation
from hudi_table.model.counts import counted
from hudi_table.model.digits import whole
from hudi_table.model.service.services import ServiceType

CLEAN_EVERY = "hoodie.clean.trigger.max.commits"
CLEAN_EVERY_DEFAULT = 5
"""Hudi cleans after every commit, inside the writer; a job of its own is worth more than that."""
CLUSTER_EVERY = "hoodie.clustering.async.max.commits"
CLUSTER_EVERY_DEFAULT = 4
_COMPARED = re.compile(r"^(>=?) ?(\S+)$")


@dataclass(frozen=True, slots=True)
class Due:
    """Why a run is due, and `batch`, which names what it is due for: a run that ended well for it
    is not repeated.

    `work` may go less far than what was asked: only plans that wait, say.
    """

    why: str
    batch: str
    work: ServiceWork
    file_groups: int = 0
    bytes_read: int = 0


def due_now(work: ServiceWork, table: TableObservation, options: Mapping[str, str]) -> Due | None:
    """By its need, else by its own rule; None if it is not. `options` are the table's."""
    waiting = table.trace(work.type).pending
    executes = work.mode in (RunMode.EXECUTE, RunMode.SCHEDULE_AND_EXECUTE)
    if waiting and executes and (work.when is None or work.mode is RunMode.EXECUTE):
        return _waiting(work, table, waiting)
    why = needed(work.when, Figures.of(table, work, options)) if work.when is not None else _rule(work, table, options)
    return None if why is None else Due(why, table.state, work, *extent(work, table))


def needed(need: Need, figures: Figures) -> str | None:
    """The first condition that holds, in words."""
    conditions: tuple[tuple[str, str | None, float | None, Callable[[str], float], Callable[[float], str]], ...] = (
        ("smallFileRatio", need.small_file_ratio, figures.small_file_ratio, float, "{:.2f}".format),
        ("logBytesRatio", need.log_bytes_ratio, figures.log_bytes_ratio, float, "{:.2f}".format),
        ("logBytes", need.log_bytes, figures.log_bytes, bytes_of, human_bytes),
        ("commitsSince", need.commits_since, figures.commits_since, int, "{:.0f}".format),
        ("bytesToClean", need.bytes_to_clean, figures.bytes_to_clean, bytes_of, human_bytes),
    )
    for name, wanted, measured, number, shown in conditions:
        match = _COMPARED.fullmatch(wanted) if wanted is not None else None
        if match is None or measured is None:
            continue
        holds = operator.ge if match[1] == ">=" else operator.gt
        if holds(measured, number(match[2])):
            return f"{name} is {shown(measured)}, {wanted} is asked for"
    return None


def _waiting(work: ServiceWork, table: TableObservation, waiting: tuple[str, ...]) -> Due:
    """Plans that wait are carried out; a compaction whose trigger says so is planned in the same
    run."""
    debt = table.compaction if work.type is ServiceType.COMPACTION else None
    plans = debt is not None and debt.why is not None and work.mode is RunMode.SCHEDULE_AND_EXECUTE
    found = work if plans else work.only(RunMode.EXECUTE)
    return Due(f"executes the plan of {waiting[0]}", waiting[0], found, *extent(work, table))


def _rule(work: ServiceWork, table: TableObservation, options: Mapping[str, str]) -> str | None:
    """Why a service is due that nobody gave a need or a schedule."""
    trace, commits = table.trace(work.type), len(table.commits)
    merged = {**options, **work.options}
    match work.type:
        case ServiceType.COMPACTION:
            return table.compaction.why if table.compaction is not None else None
        case ServiceType.CLUSTERING:
            figures = Figures.of(table, work, options)
            enough = trace.commits_since >= _number(merged, CLUSTER_EVERY, CLUSTER_EVERY_DEFAULT)
            return (
                f"{counted(figures.small_files, 'small file')} among {len(table.files)}"
                if enough and not figures.well_sized
                else None
            )
        case ServiceType.CLEANING:
            kept = _number(merged, "hoodie.clean.commits.retained", 10)
            enough = trace.commits_since >= _number(merged, CLEAN_EVERY, CLEAN_EVERY_DEFAULT)
            return f"{counted(commits, 'commit')}, of which {kept} stay" if commits > kept and enough else None
        case ServiceType.ARCHIVING:
            debt = table.archiving
            due = debt is not None and debt.due
            return (
                f"{counted(debt.writes, 'commit')} in the active timeline, {debt.most} may be" if debt and due else None
            )
        case _:
            return None


def extent(work: ServiceWork, table: TableObservation) -> tuple[int, int]:
    """(file groups, bytes) that a run is likely to read: an upper bound where only planning could
    tell."""
    logged = [f for f in table.groups if f.log_size]
    match work.type:
        case ServiceType.COMPACTION if table.compaction is not None and table.compaction.due:
            return table.compaction.file_groups, table.compaction.bytes_read
        case ServiceType.COMPACTION:
            return len(logged), sum(f.size + f.log_size for f in logged)
        case ServiceType.LOG_COMPACTION:
            return len(logged), sum(f.log_size for f in logged)
        case ServiceType.CLUSTERING | ServiceType.RESIZE:
            return len(table.groups), table.base_bytes + table.log_bytes
        case _:
            return 0, 0


def _number(options: Mapping[str, str], key: str, default: int) -> int:
    """An option that is a whole number; what is none is left to the job to refuse."""
    found = whole(options.get(key, ""))
    return default if found is None else found
