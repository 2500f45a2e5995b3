"""The markers of an instant: which files its attempts began, and which of them none of its write stats names."""

from __future__ import annotations

from hudi_table.errors import InvariantError, ObjectNotFoundError
from hudi_table.model.names import TEMP, join, parse_marker
from hudi_table.table.store import retry
from hudi_table.table.timeline.context import TableContext


def reconcile_attempts(ctx: TableContext, time: str, keep: set[str]) -> None:
    """Delete the marked files that no write stat names: what retried or speculative tasks left behind.

    Raises InvariantError if a deleted file is still there, or a named one never had a marker.
    """
    marked = set(marked_files(ctx, time))
    unmarked = sorted(keep - marked)
    if unmarked:
        raise InvariantError(f"{unmarked[0]} was written without a marker", base_path=ctx.base_path, instant=time)
    for path in sorted(marked - keep):
        retry.delete(ctx.storage, path)
        try:
            ctx.storage.head(path)
        except ObjectNotFoundError:
            continue
        raise InvariantError(f"{path} is still there after its deletion", base_path=ctx.base_path, instant=time)


def delete_all(ctx: TableContext, folder: str) -> None:
    """Delete every object below a folder."""
    for info in ctx.storage.list(folder):
        ctx.storage.delete(info.path)


def marked_files(ctx: TableContext, time: str) -> list[str]:
    """Paths of the files that have a marker, whether they are there or not."""
    folder = join(TEMP, time)
    found = (parse_marker(info.path[len(folder) + 1 :]) for info in ctx.storage.list(folder))
    return sorted({marker[0] for marker in found if marker is not None})
