"""The check of files that are gone although nothing took them: what a commit, a savepoint or a
pending plan names must be there.

Facts (table version 6): readers without a metadata table list folders, in Hudi as here, so of a
file that is gone they read the slice before it and say nothing; writers do too. A write stat's
`prevCommit` is the base instant of the slice that the file was made of; a compaction or clustering
plan names every file that it reads. Only cleans delete files of completed commits that stay on the
timeline: rollbacks and restores take the commits off it too.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from hudi_table.errors import CorruptTableError
from hudi_table.model.names import join, parse_base_file, parse_log_file
from hudi_table.model.service.findings import Check, Finding, Severity
from hudi_table.model.timeline.commits import WriteStat
from hudi_table.model.timeline.instants import Action, Instant, State, comparable_time
from hudi_table.services.doctor.examined import Examined, Group
from hudi_table.table.commit.missing_files import counted_log
from hudi_table.table.commit.rollback import open_rollbacks
from hudi_table.table.view.clean_plans import archived_cleans, taken_files
from hudi_table.table.view.clustering_plans import planned_clustering
from hudi_table.table.view.compaction_plans import PlannedSlice, planned_slices
from hudi_table.table.view.file_system_view import replaced_at
from hudi_table.table.view.savepoints import savepoints

_BRING_BACK = "bring it back from a copy or a version of the store"


def missing_files(seen: Examined) -> Iterator[Finding]:
    """Files that are gone: of the newest slices, of savepoints and pending plans (but those that
    are being rolled back), then those of earlier slices that no clean took."""
    gone = _gone(seen)
    floors = _newest_bases(seen)
    earlier = []
    for file in gone:
        if file.group not in seen.hidden and file.made >= floors.get(file.group, ""):
            yield Finding(
                Check.MISSING_FILE,
                Severity.ERROR,
                file.stat.path,
                f"the newest slice of file group {file.stat.file_id} needs this file of {file.commit.time}, and it is gone: "
                "who lists folders reads the file before it, or none, and gets no error",
                f"{_BRING_BACK}, or restore a savepoint; until then its rows are lost, and a write builds upon older ones",
            )
        else:
            earlier.append(file)
    given_up = open_rollbacks(seen.ctx, seen.before)
    for instant in seen.before.instants:
        for path in _held_by(seen, instant) if instant.time not in given_up else ():
            if path not in seen.files and counted_log(seen.ctx, seen.before.until(instant.time), path):
                what = "savepoint" if instant.action is Action.SAVEPOINT else f"pending {instant.action.value}"
                yield Finding(
                    Check.MISSING_FILE,
                    Severity.ERROR,
                    path,
                    f"the {what} {instant.time} names this file, and it is gone",
                    f"{_BRING_BACK}; {_without(instant, path)}",
                )
    yield from _of_earlier_slices(seen, earlier)


@dataclass(frozen=True, slots=True)
class _Gone:
    """A file that a commit names and that is gone; `made`: the base instant of its slice,
    comparable."""

    commit: Instant
    stat: WriteStat
    made: str

    @property
    def group(self) -> Group:
        return self.stat.partition_path, self.stat.file_id

    @property
    def name(self) -> str:
        return self.stat.path.rpartition("/")[2]


def _gone(seen: Examined) -> list[_Gone]:
    """In the order of their commits. What completed while files were listed is left to the next
    examination."""
    begun = {instant.time for instant in seen.before.commits}
    found = []
    for instant, stat in seen.stats():
        if instant.time not in begun or not stat.path or stat.path in seen.files:
            continue
        name = stat.path.rpartition("/")[2]
        base, log = parse_base_file(name), parse_log_file(name)
        made = base.instant if base else log.base_instant if log else None
        if made is not None:
            found.append(_Gone(instant, stat, comparable_time(made)))
    return found


def _of_earlier_slices(seen: Examined, gone: list[_Gone]) -> Iterator[Finding]:
    """Of files behind the newest slices those that no clean took, and what was made without
    them."""
    left = _not_cleaned(seen, gone)
    if not left:
        return
    after = _Successors(seen, {file.group for file in left})
    for file in left:
        then = after.of(file)
        if then is not None and after.built_without(file, then):
            yield Finding(
                Check.MISSING_FILE,
                Severity.ERROR,
                file.stat.path,
                f"no clean took this file of {file.commit.time}, and it was gone when {then.commit.time} wrote its file group anew: "
                f"{then.commit.time} built upon older rows, and those of {file.commit.time} are lost",
                f"{_BRING_BACK}: its rows are then read as of {file.commit.time}, and can be written again",
            )
            continue
        until = f" until {then.commit.time}" if then is not None else ""
        yield Finding(
            Check.MISSING_FILE,
            Severity.WARNING,
            file.stat.path,
            f"no clean took this file of {file.commit.time}, and it is gone: who reads the table as of {file.commit.time}{until} "
            "misses its rows",
            f"{_BRING_BACK}; the table as it is now does not need it",
        )


def _not_cleaned(seen: Examined, gone: list[_Gone]) -> list[_Gone]:
    """Without those that a clean deleted, or may be deleting. The archive is read only if something
    is left without it."""
    if not gone:
        return []
    taken = {
        (partition, name)
        for files in taken_files(seen.ctx, seen.timeline).values()
        for partition, names in files.items()
        for name in names
    }
    left = [file for file in gone if (file.stat.partition_path, file.name) not in taken]
    for record in archived_cleans(seen.ctx) if left else ():
        left = [file for file in left if file.name not in record.deleted.get(file.stat.partition_path, ())]
        if not left:
            break
    return left


@dataclass(frozen=True, slots=True)
class _Successor:
    """The commit that wrote a file group anew; `prev` is the base instant that it says it built
    upon, '' if it says none."""

    commit: Instant
    prev: str


class _Successors:
    """Who wrote file groups anew: the later base files of each, and the replacecommits that hid
    it."""

    def __init__(self, seen: Examined, groups: set[Group]) -> None:
        self._seen = seen
        self._bases: dict[Group, list[tuple[str, _Successor]]] = {}
        for instant, stat in seen.stats():
            group = (stat.partition_path, stat.file_id)
            base = parse_base_file(stat.path.rpartition("/")[2]) if group in groups else None
            if base is not None:
                prev = "" if stat.prev_commit == "null" else comparable_time(stat.prev_commit)
                self._bases.setdefault(group, []).append((comparable_time(base.instant), _Successor(instant, prev)))
        for found in self._bases.values():
            found.sort(key=lambda item: item[0])
        self._plans: dict[str, dict[Group, PlannedSlice]] = {}

    @cached_property
    def _replaced(self) -> dict[Group, str]:
        return replaced_at(self._seen.ctx, self._seen.timeline)

    def of(self, file: _Gone) -> _Successor | None:
        """The commit of the base file after the slice of `file`, or else the one that replaced the
        group."""
        found = self._bases.get(file.group, [])
        place = bisect_right([made for made, _ in found], file.made)
        if place < len(found):
            return found[place][1]
        hidden = self._replaced.get(file.group)
        commit = next((instant for instant in self._seen.commits if instant.time == hidden), None)
        return None if commit is None else _Successor(commit, "")

    def built_without(self, file: _Gone, then: _Successor) -> bool:
        """Whether its successor can be seen to have read another file than this one, or none."""
        planned = self._planned(then.commit).get(file.group)
        if planned is not None:
            return file.name not in planned.files
        return bool(then.prev) and then.prev < file.made

    def _planned(self, commit: Instant) -> dict[Group, PlannedSlice]:
        """The slices that a compaction or a clustering read; of another write, or where the plan
        cannot be read, none."""
        if commit.time not in self._plans:
            self._plans[commit.time] = {(s.partition, s.file_id): s for s in _slices_of(self._seen, commit)}
        return self._plans[commit.time]


def _slices_of(seen: Examined, commit: Instant) -> list[PlannedSlice]:
    plan = Instant(commit.time, Action.COMPACTION, State.REQUESTED)
    try:
        if plan.file_name in seen.timeline.files:
            return planned_slices(seen.ctx, plan)
        if commit.action is Action.REPLACE_COMMIT:
            clustering = planned_clustering(seen.ctx, commit)
            return [] if clustering is None else list(clustering.slices)
    except (CorruptTableError, KeyError, TypeError):
        return []
    return []


def _without(instant: Instant, path: str) -> str:
    """What a savepoint or plan is worth without a file, and what gives the file up."""
    if instant.action is Action.SAVEPOINT:
        return "without it the savepoint cannot be restored"
    lost = f" --lost {path}" if instant.action is Action.COMPACTION else ""
    return f"if it is lost for good, hudictl rollback BASE {instant.time}{lost} --yes ends what waits for it"


def _newest_bases(seen: Examined) -> dict[Group, str]:
    """The newest base instant of each group: a stat's, or a visible file's where the commit is
    archived."""
    floors: dict[Group, str] = {}
    known = [((b.partition, b.file_id), b.instant) for b in seen.bases() if seen.visible(b.instant)]
    for _, stat in seen.stats():
        found = parse_base_file(stat.path.rpartition("/")[2])
        if found is not None:
            known.append(((stat.partition_path, stat.file_id), found.instant))
    for group, instant in known:
        floors[group] = max(floors.get(group, ""), comparable_time(instant))
    return floors


def _held_by(seen: Examined, instant: Instant) -> list[str]:
    """Files that a savepoint or a pending plan names. What cannot be read is another check's
    finding."""
    try:
        if instant.action is Action.SAVEPOINT and instant.completed:
            kept = next(found for found in savepoints(seen.ctx, seen.before) if found.instant == instant.time)
            return [join(partition, name) for partition, names in kept.files.items() for name in names]
        if instant.action in (Action.COMPACTION, Action.LOG_COMPACTION) and not instant.completed:
            slices = planned_slices(seen.ctx, instant)
        elif instant.grouped_action is Action.REPLACE_COMMIT and not instant.completed:
            plan = planned_clustering(seen.ctx, instant) if _requested(seen, instant) else None
            slices = [] if plan is None else list(plan.slices)
        else:
            return []
        return [p for item in slices for p in (item.base_path, *item.log_paths) if p is not None]
    except (CorruptTableError, KeyError, TypeError):
        return []


def _requested(seen: Examined, instant: Instant) -> bool:
    return instant.with_state(State.REQUESTED).file_name in seen.before.files
