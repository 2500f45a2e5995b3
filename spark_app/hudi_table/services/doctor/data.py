"""The check that reads what the others do not: every page of the newest base files, and the content
of every block of their logs.

Pages carry a CRC-32 if their writer made one, as this project does; blocks of logs carry a check
sum of their content if this project wrote them. Of others a page must still decompress and decode,
and a block must be as long as it says.
"""

from __future__ import annotations

from collections.abc import Iterator

from hudi_table.codec.log.blocks import BlockType, read_content, scan_blocks
from hudi_table.codec.parquet import read_batches
from hudi_table.errors import CorruptTableError, ObjectNotFoundError
from hudi_table.model.progress import ProgressFunction
from hudi_table.model.service.findings import Check, Finding, Severity
from hudi_table.services.doctor.examined import Examined
from hudi_table.table.engine.local_engine import LocalEngine
from hudi_table.table.engine.progress import TaskReport
from hudi_table.table.view.file_system_view import FileSystemView

FILES_AT_ONCE = 4


def damaged_data(seen: Examined, max_memory: int, progress: ProgressFunction | None = None) -> Iterator[Finding]:
    """Files of the newest slices whose rows cannot be read to their end. `progress` is called for
    each file that was read."""
    slices = FileSystemView(seen.ctx, seen.timeline).latest_slices()
    bases = [item.base.path for item in slices if item.base is not None]
    paths = [*bases, *(log.path for item in slices for log in item.logs)]
    is_base = frozenset(bases).__contains__
    budget = max(1, max_memory // (2 * FILES_AT_ONCE))

    def damage(path: str) -> str | None:
        try:
            return _read_base(seen, path, budget) if is_base(path) else _read_log(seen, path)
        except ObjectNotFoundError:
            return None  # gone since it was listed, or another check's finding

    one = TaskReport("doctor --data", progress).begin(len(paths))
    for path, fault in zip(paths, LocalEngine(FILES_AT_ONCE).imap(damage, paths), strict=True):
        one()
        if fault is not None:
            yield damaged(path, fault)


def damaged(path: str, fault: str) -> Finding:
    """The finding of a file whose rows cannot be read."""
    return Finding(
        Check.DAMAGED_DATA,
        Severity.ERROR,
        path,
        f"its rows cannot be read: {' '.join(fault.split())}",
        "bring it back from a copy or a version of the store, or roll back or restore to before its instant: readers fail on it",
    )


def _read_base(seen: Examined, path: str, budget: int) -> str | None:
    try:
        with seen.ctx.storage.open_read(path) as source:
            for _ in read_batches(source, path=path, batch_bytes=budget):
                pass
    except CorruptTableError as error:
        return error.message
    return None


def _read_log(seen: Examined, path: str) -> str | None:
    """Damage in the content of blocks that completed writes made. Torn frames are the finding of
    another check."""
    try:
        with seen.ctx.storage.open_read(path) as source:
            for block in scan_blocks(source, path=path):
                if block.type is not BlockType.CORRUPT and seen.visible(block.instant):
                    read_content(source, block)
    except CorruptTableError as error:
        return error.message
    return None
