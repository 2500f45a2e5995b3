"""Rows handed over before they are written: tasks stage them as files, one process commits all of
them.

They are Arrow streams in `.hoodie/.staged`, a folder that neither a reader nor Hudi looks at, so
nothing shows before the commit. Names begin with the token of the write, so the write finds its
own. What a killed one leaves is deleted once it is older than `STALE`, by the next write that
stages rows and by cleaning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from functools import partial

import pyarrow as pa

from hudi_table.codec.conform import conform
from hudi_table.errors import InvalidDataError, ObjectNotFoundError
from hudi_table.model.names import STAGED, join
from hudi_table.table.store import retry
from hudi_table.table.store.ports import Storage
from hudi_table.table.timeline.instants import store_time

STALE = timedelta(days=1)
"""Age at which staged rows are given up: their write has ended, or fails with a clear error when it
comes to commit."""
_OPTIONS = pa.ipc.IpcWriteOptions(compression="zstd")


def stage_rows(storage: Storage, name: str, batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> str | None:
    """Write the rows of one task, in `schema`, one batch at a time. Returns the path, None if there
    are no rows."""
    filled = (batch for batch in batches if batch.num_rows)
    first = next(filled, None)
    if first is None:
        return None
    path = join(STAGED, name)
    with (
        retry.confirmed(),
        storage.open_write(path) as sink,
        pa.ipc.new_stream(sink, schema, options=_OPTIONS) as writer,
    ):
        writer.write_batch(conform(first, schema))
        for batch in filled:
            writer.write_batch(conform(batch, schema))
    return path


def staged_rows(storage: Storage, paths: Sequence[str], schema: pa.Schema) -> pa.RecordBatchReader:
    """The rows of the files, one after the other, a batch at a time in memory. Raises
    InvalidDataError, when it is read, for one that is gone."""
    return pa.RecordBatchReader.from_batches(schema, _batches(storage, paths))


def _batches(storage: Storage, paths: Sequence[str]) -> Iterator[pa.RecordBatch]:
    for path in paths:
        try:
            source = storage.open_read(path)
        except ObjectNotFoundError:
            raise InvalidDataError(
                f"the staged rows {path} are gone: a write has {STALE.total_seconds() / 3600:.0f} hours between its first rows "
                "and its commit; write again",
                base_path=storage.base_path,
            ) from None
        with source, pa.ipc.open_stream(source) as rows:
            yield from rows


def discard_staged(storage: Storage, token: str) -> None:
    """Delete what the write of this token has staged."""
    for info in storage.list(STAGED):
        if info.path.removeprefix(f"{STAGED}/").startswith(token):
            retry.delete(storage, info.path)


def stale_staged(storage: Storage, present: Callable[[], datetime]) -> list[str]:
    """What writes left that were killed before they committed. `present` gives the moment that
    their ages are held against; it is asked if there are any."""
    found = storage.list(STAGED)
    if not found:
        return []
    now = present()
    return [info.path for info in found if now - info.modified >= STALE]


def sweep_staged(storage: Storage) -> int:
    """Delete them, by the store's present: this process's clock may be days ahead of that of who
    writes them. Returns the number of files."""
    old = stale_staged(storage, partial(store_time, storage))
    for path in old:
        retry.delete(storage, path)
    return len(old)
