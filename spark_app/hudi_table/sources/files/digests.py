"""Files of digests below `.hoodie/.ingest`: what a checkpoint of files holds beyond what a commit
has room for."""

from __future__ import annotations

from datetime import timedelta

from hudi_table.errors import ObjectExistsError
from hudi_table.model.job.checkpoint import Checkpoint, digest_file_of, key_of, with_digest_file
from hudi_table.model.names import INGEST
from hudi_table.table.store import retry
from hudi_table.table.timeline.active import commit_metadata, load_timeline
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.instants import store_now

ORPHAN_AGE = timedelta(days=1)
"""A file of digests that no commit names may belong to an attempt that is at work."""


def store_digests(ctx: TableContext, ingest: str, before: Checkpoint | None, checkpoint: Checkpoint) -> Checkpoint:
    """The checkpoint as the next commit is to hold it: small, what is too much for a commit in a
    file that is there already.

    Files of digests that no commit of the timeline names any more, nor `before`, are swept then.
    """
    found = with_digest_file(checkpoint, ingest)
    if found is None:
        return checkpoint
    wanted, data = found
    assert wanted.digest_file is not None
    path = wanted.digest_file.path
    try:
        retry.until_confirmed(lambda: ctx.storage.put_if_absent(path, data))
    except ObjectExistsError:
        # Its name says what it holds.
        retry.put(ctx.storage, path, data)
    _sweep(
        ctx, ingest, {s.path for each in (before, wanted) if each is not None and (s := each.digest_file) is not None}
    )
    return wanted


def _sweep(ctx: TableContext, ingest: str, kept: set[str]) -> None:
    """A commit that a restore may go back to stands on the timeline, so what it names stays."""
    others = [info for info in ctx.storage.list(f"{INGEST}/{ingest}") if info.path not in kept]
    # The store's present: this process's clock may be ahead of that of who made them.
    limit = store_now(ctx) - ORPHAN_AGE if others else None
    old = {info.path for info in others if limit is not None and info.modified < limit}
    if not old:
        return
    for instant in load_timeline(ctx).commits:
        text = commit_metadata(ctx, instant).extra_metadata.get(key_of(ingest))
        old.discard((digest_file_of(text) if text is not None else None) or "")
    for path in sorted(old):
        retry.delete(ctx.storage, path)
