"""Whether a clean took files of a snapshot between the timeline and the files that were listed:
then nothing would tell that rows are missing.

Our cleans leave for a minute what was superseded (`services/cleaning/policy.py`), so who lists the
files soon need not ask. Hudi's do not, where they keep one version of each file, one commit, or
none of a replaced group. What superseded a file has another base file then, whose instant the
timeline does not show completed: where one is listed, the timeline is listed once more.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from itertools import chain

from hudi_table.errors import ObjectNotFoundError
from hudi_table.model.names import parse_base_file, parse_log_file
from hudi_table.model.timeline.instants import Instant, comparable_time
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.timeline import Timeline
from hudi_table.table.view.clean_plans import taken_by
from hudi_table.table.view.file_groups import FileGroup, Visible

LISTED_WITHIN_SECONDS = 5.0
"""Files that are listed so soon after the timeline are those of its snapshot, if no other engine
cleans: ours retain more."""
Group = tuple[str, str]
"""(partition, file id)."""


def check_nothing_taken(
    ctx: TableContext,
    timeline: Timeline,
    groups: Mapping[str, list[FileGroup]],
    asked: Container[str] | None,
    hidden: Container[Group],
    *,
    is_newer: bool,
) -> None:
    """Raise ObjectNotFoundError if a file of the snapshot of `timeline` may have gone before the
    files were listed that make `groups`, by partition, in those that were `asked` for, or in all.
    `is_newer`: see `shows_newer`."""
    last, listed_at = timeline.last_commit, timeline.listed_at
    if last is None or listed_at is None:
        return
    passed = ctx.clock.boot_seconds() - listed_at
    if passed <= LISTED_WITHIN_SECONDS and not is_newer:
        return
    now = load_timeline(ctx)
    start = comparable_time(now.start or "")
    taken_back = (i.time for i in timeline.commits if comparable_time(i.time) >= start and i not in now.commits)
    unseen = taken_by(ctx, now, _unseen(timeline, now, last))
    visible = Visible(timeline, None, dict)
    # After so long another clean may have come and be archived; which files it took nobody can tell.
    long = passed > ctx.settings.quarantine_seconds
    latest = {(g.partition, g.file_id): comparable_time(g.latest.instant) for found in groups.values() for g in found}
    taken = (
        time
        for time, files in unseen.items()
        if any(
            long or _is_needed(visible, latest, hidden, partition, name)
            for partition, names in files.items()
            if asked is None or partition in asked
            for name in names
        )
    )
    by = next(chain(taken_back, taken), None)
    if by is not None:
        raise ObjectNotFoundError(
            f"files of the snapshot of {last.time} may have gone with {by} before they were listed",
            base_path=ctx.base_path,
            path=ctx.layout.timeline_path(by),
        )


def shows_newer(paths: Iterable[str], timeline: Timeline) -> bool:
    """Whether listed files hold a base file of an instant that the timeline does not show
    completed."""
    visible = Visible(timeline, None, dict)
    # One of each instant is enough.
    one_of = {path.rpartition("_")[2]: path for path in paths}
    bases = (parse_base_file(path.rpartition("/")[2]) for path in one_of.values())
    return any(base is not None and not visible(base.instant) for base in bases)


def _unseen(timeline: Timeline, now: Timeline, last: Instant) -> frozenset[str]:
    """The instants of cleans that may have counted commits which the snapshot does not show."""
    shown, limit = {i.time for i in timeline.instants}, comparable_time(last.time)
    # Cleans that it shows counted no others, unless one came between the pages of its listing.
    missed = any(commit not in timeline.commits for commit in now.commits)
    return frozenset(
        i.time for i in now.instants if i.time not in shown or (missed and comparable_time(i.time) > limit)
    )


def _is_needed(
    visible: Visible, latest: Mapping[Group, str], hidden: Container[Group], partition: str, name: str
) -> bool:
    """Whether a file belongs to what the snapshot shows of its group: its instant counts, and
    nothing newer of the group is listed, the `latest` that are."""
    base, log = parse_base_file(name), parse_log_file(name)
    if base is not None:
        group, instant = (partition, base.file_id), base.instant
    elif log is not None:
        group, instant = (partition, log.file_id), log.base_instant
    else:
        return False
    counts = visible(instant) or instant in visible.pending_compactions
    return counts and group not in hidden and latest.get(group, "") <= comparable_time(instant)
