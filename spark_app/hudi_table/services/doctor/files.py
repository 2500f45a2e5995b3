"""Checks of data files against the timeline: orphans, sizes, footers, buckets.

Facts (table version 6, measured on Hudi 0.15.0): readers list folders, so a file that no commit
names is seen as soon as its instant counts as completed, and it does once the timeline's start has
passed it; a commit names every base file and log that it wrote.
"""

from __future__ import annotations

from collections.abc import Iterator

from hudi_table.codec.parquet import BaseFileFooter, read_footer
from hudi_table.errors import CorruptTableError, ObjectNotFoundError
from hudi_table.model.counts import counted
from hudi_table.model.names import PARTITION_METADATA, join, parse_log_file
from hudi_table.model.service.findings import Check, Finding, Severity
from hudi_table.services.doctor.examined import Examined
from hudi_table.services.doctor.places import Places, misplaced_keys
from hudi_table.table.store.ports import ObjectInfo
from hudi_table.table.timeline.archived import archived_paths
from hudi_table.table.view.file_system_view import BaseFile


def orphan_files(seen: Examined) -> Iterator[Finding]:
    """Files of instants that are neither on the timeline nor older than it, and files of completed
    ones that no commit names."""
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


def wrong_sizes(seen: Examined) -> Iterator[Finding]:
    """Files whose size is not the one that their commit recorded. (A log may have grown: Hudi can
    append to one.)"""
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
    """Base files that are no Parquet, and those of a bucket table whose keys belong to another
    bucket."""
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
        seen.ctx.layout.timeline_path(start.file_name),
        f"{start.action.value} {start.time} is on the timeline although instants that follow it are archived: readers see no row of their "
        f"{counted(len(times), 'file')}, of {times[0]} to {times[-1]}",
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
