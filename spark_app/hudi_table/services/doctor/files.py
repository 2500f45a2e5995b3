"""Checks of data files against the timeline: orphans, files that are gone, sizes, footers, buckets.

Facts (table version 6, measured on Hudi 0.15.0): readers list folders, so a file that no commit names is seen as soon as its instant
counts as completed, and it does once the timeline's start has passed it; a commit names every base file and log that it wrote.
"""

from __future__ import annotations

from collections.abc import Iterator

from hudi_table.codec.parquet import BaseFileFooter, read_footer
from hudi_table.errors import CorruptTableError, ObjectNotFoundError
from hudi_table.model.names import PARTITION_METADATA, join, parse_base_file, parse_log_file
from hudi_table.model.service.findings import Check, Finding, Severity
from hudi_table.model.timeline.instants import Action, Instant, State, comparable_time
from hudi_table.services.doctor.examined import Examined, Group
from hudi_table.services.doctor.places import Places, misplaced_keys
from hudi_table.table.commit.missing_files import counted_log
from hudi_table.table.store.ports import ObjectInfo
from hudi_table.table.timeline.archived import archived_paths
from hudi_table.table.timeline.layout import timeline_path
from hudi_table.table.view.clustering_plans import planned_clustering
from hudi_table.table.view.compaction_plans import planned_slices
from hudi_table.table.view.file_system_view import BaseFile
from hudi_table.table.view.savepoints import savepoints


def orphan_files(seen: Examined) -> Iterator[Finding]:
    """Files of instants that are neither on the timeline nor older than it, and files of completed ones that no commit names."""
    named = {path for metadata in seen.commits.values() for path in metadata.paths}
    # What completed since the files were listed may have deleted stray attempts of tasks after that.
    writers = {instant.time for instant in seen.commits} & {instant.time for instant in seen.before.commits}
    unknown: dict[str, set[str]] = {}
    for base in seen.bases():
        if not seen.known(base.instant):
            unknown[base.path] = {base.instant}
        elif base.instant in writers and base.path not in named:
            yield _unnamed(base.path, base.instant, "base file")
    for log in seen.logs():
        if log.path in named:
            continue
        instants = seen.instants_of(log)
        if not instants:
            continue
        if not any(seen.known(instant) for instant in instants):
            if not instants <= seen.taken_back(log):
                unknown[log.path] = instants
        elif instants <= writers:
            yield _unnamed(log.path, max(instants), "log")
    archived = archived_paths(seen.ctx, {time for times in unknown.values() for time in times})
    if archived.keys() & unknown.keys():
        yield _came_back(seen, sorted(archived[path] for path in archived.keys() & unknown.keys()))
    for path in unknown.keys() - archived.keys():
        yield _orphan(seen, path, max(unknown[path]))


def missing_files(seen: Examined) -> Iterator[Finding]:
    """Files that are gone and that readers of the newest snapshot, a savepoint, or a pending plan need."""
    floors = _newest_bases(seen)
    begun = {instant.time for instant in seen.before.commits}
    for instant, stat in seen.stats():
        group = (stat.partition_path, stat.file_id)
        if instant.time not in begun or group in seen.hidden or not stat.path or stat.path in seen.files:
            continue
        name = stat.path.rpartition("/")[2]
        base, log = parse_base_file(name), parse_log_file(name)
        made = base.instant if base else log.base_instant if log else None
        if made is not None and comparable_time(made) >= floors.get(group, ""):
            yield Finding(
                Check.MISSING_FILE,
                Severity.ERROR,
                stat.path,
                f"the newest slice of file group {stat.file_id} needs this file of {instant.time}, and it is gone",
                "bring it back from a copy or a version of the store, or restore a savepoint; reads fail or lose its rows",
            )
    for instant in seen.before.instants:
        for path in _held_by(seen, instant):
            if path not in seen.files and counted_log(seen.ctx, seen.before.until(instant.time), path):
                what = "savepoint" if instant.action is Action.SAVEPOINT else f"pending {instant.action.value}"
                yield Finding(
                    Check.MISSING_FILE,
                    Severity.ERROR,
                    path,
                    f"the {what} {instant.time} names this file, and it is gone",
                    f"bring it back from a copy or a version of the store; {_without(instant, path)}",
                )


def _without(instant: Instant, path: str) -> str:
    """What a savepoint or plan is worth without a file, and what gives the file up."""
    if instant.action is Action.SAVEPOINT:
        return "without it the savepoint cannot be restored"
    lost = f" --lost {path}" if instant.action is Action.COMPACTION else ""
    return f"if it is lost for good, hudictl rollback BASE {instant.time}{lost} --yes ends what waits for it"


def wrong_sizes(seen: Examined) -> Iterator[Finding]:
    """Files whose size is not the one that their commit recorded. (A log may have grown: Hudi can append to one.)"""
    for instant, stat in seen.stats():
        info, stated = seen.files.get(stat.path), stat.file_size_in_bytes
        if info is None or not stated:
            continue
        appended = parse_log_file(stat.path.rpartition("/")[2]) is not None and info.size > stated
        if info.size != stated and not appended:
            yield Finding(
                Check.WRONG_SIZE,
                Severity.ERROR,
                stat.path,
                f"has {info.size:,} bytes, and {instant.time} wrote {stated:,}",
                "the file was cut or replaced: bring it back from a copy or a version of the store",
            )


def partition_metadata(seen: Examined) -> Iterator[Finding]:
    """Folders with visible files and without the file by which Hudi finds partitions."""
    folders = {base.partition for base in seen.bases() if seen.visible(base.instant)}
    for folder in sorted(folders):
        if not any(
            path in seen.files
            for path in (join(folder, PARTITION_METADATA), f"{join(folder, PARTITION_METADATA)}.parquet")
        ):
            yield Finding(
                Check.PARTITION_METADATA,
                Severity.WARNING,
                folder,
                f"holds files of the table and no {PARTITION_METADATA}: readers that look for partitions by it miss these rows",
                "run Hudi's repair addpartitionmeta, or write rows into the partition",
            )


def invalid_footers(seen: Examined) -> Iterator[Finding]:
    """Base files that are no Parquet, and those of a bucket table whose keys belong to another bucket."""
    places = Places.of_table(seen)
    bases = list(seen.bases())

    def footer(base: BaseFile) -> BaseFileFooter | str | None:
        if base.size == 0:
            return "has no bytes"
        try:
            with seen.ctx.storage.open_read(base.path) as source:
                return read_footer(source, path=base.path)
        except ObjectNotFoundError:
            return None
        except CorruptTableError as error:
            return " ".join(error.message.split())

    for base, result in zip(bases, seen.engine.imap(footer, bases), strict=True):
        used = seen.visible(base.instant) and (base.partition, base.file_id) not in seen.hidden
        if isinstance(result, str):
            yield Finding(
                Check.INVALID_PARQUET,
                Severity.ERROR if used else Severity.WARNING,
                base.path,
                f"cannot be read as Parquet: {result}",
                "bring it back from a copy, or roll back or restore to before its instant: readers fail on it"
                if used
                else "put it aside (--quarantine): no reader uses it",
            )
        elif result is not None and places is not None and used:
            # What a resize replaced lies in the buckets of before.
            yield from misplaced_keys(places, base, result)


def _orphan(seen: Examined, path: str, instant: str) -> Finding:
    info: ObjectInfo = seen.files[path]
    return Finding(
        Check.ORPHAN_FILE,
        Severity.ERROR,
        path,
        f"{info.size:,} bytes of instant {instant}, which is not on the timeline: its rows appear once the timeline starts later",
        "put it aside (--quarantine)",
    )


def _came_back(seen: Examined, times: list[str]) -> Finding:
    """`times`: the archived instants of files that count and that no reader sees."""
    start = seen.timeline.commits[0]
    return Finding(
        Check.ARCHIVED_INSTANT,
        Severity.ERROR,
        timeline_path(start.file_name),
        f"{start.action.value} {start.time} is on the timeline although instants that follow it are archived: readers see no row of their "
        f"{len(times):,} files, of {times[0]} to {times[-1]}",
        "hudictl archive --now --yes takes it off the timeline; let nothing write before",
    )


def _unnamed(path: str, instant: str, what: str) -> Finding:
    return Finding(
        Check.UNNAMED_FILE,
        Severity.ERROR if what == "base file" else Severity.WARNING,
        path,
        f"a {what} of {instant}, which completed and does not name it: readers see its rows beside those of the commit",
        "look for rows that come twice (--keys); a stray attempt of a task wrote it after its commit",
    )


def _newest_bases(seen: Examined) -> dict[Group, str]:
    """The newest base instant of each group: a stat's, or a visible file's where the commit is archived."""
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
    """Files that a savepoint or a pending plan names. What cannot be read is another check's finding."""
    try:
        if instant.action is Action.SAVEPOINT and instant.completed:
            kept = next(found for found in savepoints(seen.ctx, seen.before) if found.instant == instant.time)
            return [join(partition, name) for partition, names in kept.files.items() for name in names]
        if instant.action in (Action.COMPACTION, Action.LOG_COMPACTION) and not instant.completed:
            slices = planned_slices(seen.ctx, instant)
        elif instant.action is Action.REPLACE_COMMIT and not instant.completed:
            plan = planned_clustering(seen.ctx, instant) if _requested(seen, instant) else None
            slices = [] if plan is None else list(plan.slices)
        else:
            return []
        return [p for item in slices for p in (item.base_path, *item.log_paths) if p is not None]
    except (CorruptTableError, KeyError, TypeError):
        return []


def _requested(seen: Examined, instant: Instant) -> bool:
    return instant.with_state(State.REQUESTED).file_name in seen.before.files
