"""Unfinished files on local disk that killed writers left behind.

Where the file system has files without a name there are next to none: a file is staged under a name
only where it has none, and where it replaces another.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial

from hudi_table.table.store.local import LocalStorage
from hudi_table.table.store.ports import ObjectInfo, plain
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.instants import store_now


def abandoned(ctx: TableContext, present: Callable[[], datetime]) -> list[ObjectInfo]:
    """Those that nobody has written to for four quarantines: whoever staged them has lost its right
    to write long ago.

    `present` gives the moment that their ages are held against; it is asked if there are any.
    """
    storage = plain(ctx.storage)
    found = storage.staging_files() if isinstance(storage, LocalStorage) else []
    if not found:
        return []
    least, now = 4 * ctx.settings.quarantine_seconds, present()
    return sorted((i for i in found if (now - i.modified).total_seconds() >= least), key=lambda info: info.path)


def sweep(ctx: TableContext) -> int:
    """Delete them, by the store's present: this process's clock may be hours ahead of that of who
    writes them. Returns how many went."""
    found = abandoned(ctx, partial(store_now, ctx))
    for info in found:
        storage = plain(ctx.storage)
        assert isinstance(storage, LocalStorage)
        storage.discard_staging(info.path)
    return len(found)
