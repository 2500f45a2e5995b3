"""Merging small files of the archive, so that their number stays bounded: blocks are copied as they
are.

Unlike Hudi's merge it needs no plan: the merged file is whole before any of the others goes, and an
instant that is in two files counts once.
"""

from __future__ import annotations

from itertools import takewhile

from hudi_table.errors import ObjectExistsError, ObjectNotFoundError, OutcomeUnknownError
from hudi_table.services.archiving.policy import ArchivePolicy
from hudi_table.table.store import retry
from hudi_table.table.timeline.archived import ArchiveFile, archive_files, archive_path, merge_target
from hudi_table.table.timeline.context import TableContext


def merge_archive(ctx: TableContext, policy: ArchivePolicy) -> int:
    """Merge the newest files, all small ones in a row, if they are `policy.merge_files`; returns
    how many went.

    The newest, so that a higher number keeps meaning later instants: Hudi stops reading at the
    first file before the time it asks for. Nothing happens beside a merge of Hudi's that is not
    done.
    """
    files = archive_files(ctx)
    chosen = _chosen(files, policy)
    if not chosen or merge_target(ctx) is not None:
        return 0
    try:
        data = b"".join(ctx.storage.get(file.info.path) for file in chosen)
    except ObjectNotFoundError:
        return 0
    path = archive_path(ctx, files[-1].number + 1)
    try:
        ctx.storage.put_if_absent(path, data)
        if ctx.storage.get(path) != data:
            return 0
    except (ObjectExistsError, OutcomeUnknownError, ObjectNotFoundError):
        # Another archiver's file, or perhaps ours: then what it holds is there twice, which harms nobody.
        return 0
    for file in chosen:
        retry.delete(ctx.storage, file.info.path)
    return len(chosen)


def _chosen(files: list[ArchiveFile], policy: ArchivePolicy) -> list[ArchiveFile]:
    """Small is what, so many times, stays below the limit."""
    if not policy.merge_files:
        return []
    small = takewhile(lambda file: file.info.size * policy.merge_files <= policy.merge_bytes, reversed(files))
    row = list(small)[::-1]
    return row if len(row) >= policy.merge_files else []
