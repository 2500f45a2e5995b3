"""All checks of a table, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from hudi_table.errors import CorruptTableError, HudiError, InvalidOptionError, UnsupportedTableError
from hudi_table.model.counts import counted
from hudi_table.model.names import parse_base_file, parse_log_file
from hudi_table.model.progress import ProgressFunction
from hudi_table.model.service.findings import Check, Finding, Severity
from hudi_table.services.doctor import files, missing, places, timeline
from hudi_table.services.doctor.data import damaged, damaged_data
from hudi_table.services.doctor.examined import Examined
from hudi_table.services.doctor.keys import duplicate_keys, wrong_keys
from hudi_table.services.doctor.logs import damaged_logs
from hudi_table.services.doctor.metadata import metadata_table
from hudi_table.table.engine.local_engine import LocalEngine
from hudi_table.table.engine.operation_log import logged
from hudi_table.table.engine.progress import reporting
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.relisting import relists

_ORDER = {Severity.ERROR: 0, Severity.WARNING: 1, Severity.INFO: 2}


@logged("doctor")
@relists
def examine(
    ctx: TableContext,
    *,
    keys: bool = False,
    data: bool = False,
    max_memory: int,
    progress: ProgressFunction | None = None,
) -> tuple[Finding, ...]:
    """What is wrong with a table, the worst first; nothing is changed. `keys`: every key is read
    too, to find those that come twice or are not those of their rows. `data`: every row of the
    newest slices is read. Both in about `max_memory` bytes.

    Writers may go on meanwhile. A check that damage keeps from its end says so as a finding. Raises
    InvalidOptionError, and what storage raises.
    """
    if max_memory < 1:
        raise InvalidOptionError(f"max_memory is {max_memory}; give bytes, at least 1")
    findings = [*timeline.properties(ctx.storage), *timeline.lost_properties(ctx)]
    try:
        seen = Examined.of(ctx)
    except (CorruptTableError, UnsupportedTableError) as error:
        return (*findings, _incomplete("examination", error))
    checks: tuple[Callable[[Examined], Iterable[Finding]], ...] = (
        timeline.unreadable_instants,
        missing.missing_files,
        files.wrong_sizes,
        damaged_logs,
        files.invalid_footers,
        files.orphan_files,
        places.duplicate_buckets,
        files.partition_metadata,
        timeline.pending_instants,
        timeline.leftovers,
        timeline.staging_files,
        timeline.lock_files,
        metadata_table,
    )
    work: list[tuple[str, Callable[[], Iterable[Finding]]]] = [
        (check.__name__, partial(check, seen)) for check in checks
    ]
    if data:
        work.append((damaged_data.__name__, partial(damaged_data, seen, max_memory, progress)))
    if keys:
        work += [(read.__name__, partial(read, seen, max_memory)) for read in (duplicate_keys, wrong_keys)]
    engine = reporting(LocalEngine(1), "doctor", progress)
    findings += [finding for some in engine.map(lambda item: _carried_out(item[1], item[0]), work) for finding in some]
    return tuple(sorted(_each_once(findings), key=lambda finding: _ORDER[finding.severity]))


def checked(ctx: TableContext, *, keys: bool, data: bool = False) -> str:
    """What an examination looks at, in one line."""
    try:
        timeline = load_timeline(ctx)
    except (CorruptTableError, UnsupportedTableError):
        return "checked: what could be read of a damaged timeline"
    commits, waiting = len(timeline.commits), len(timeline.pending)
    rows = "every row of the newest slices" if data else "no row (--data reads them)"
    read = "every record key" if keys else "no record key (--keys reads them)"
    return (
        f"checked: properties, {counted(commits, 'commit')} and {counted(waiting, 'pending instant')} of the active timeline, names, sizes and footers of "
        f"the files that count, files that do not, partition metadata, leftovers, the metadata table; {rows}; {read}"
    )


def _each_once(findings: list[Finding]) -> list[Finding]:
    """Without damaged rows of files that are known to be damaged: several checks may end at the
    same file."""
    known = {f.path for f in findings if f.check in (Check.INVALID_PARQUET, Check.DAMAGED_LOG)}
    found = []
    for finding in findings:
        if finding.check is Check.DAMAGED_DATA:
            if finding.path in known:
                continue
            known.add(finding.path)
        found.append(finding)
    return found


def _carried_out(check: Callable[[], Iterable[Finding]], name: str) -> list[Finding]:
    """What a check finds, as far as it comes. The file at whose damage it ends is a finding of its
    own."""
    found: list[Finding] = []
    try:
        found.extend(check())
    except (CorruptTableError, UnsupportedTableError) as error:
        name_of_file = (error.path or "").rpartition("/")[2]
        is_data = parse_base_file(name_of_file) is not None or parse_log_file(name_of_file) is not None
        if error.path and is_data and isinstance(error, CorruptTableError):
            found.append(damaged(error.path, error.message))
        found.append(_incomplete(f"check {name}", error))
    return found


def _incomplete(what: str, error: HudiError) -> Finding:
    return Finding(
        Check.INCOMPLETE,
        Severity.ERROR,
        error.path or "",
        f"the {what} ended at damage: {' '.join(error.message.split())}",
        "mend what is named here and in the other findings, then examine the table again",
    )
