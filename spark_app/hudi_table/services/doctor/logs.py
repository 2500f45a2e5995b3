"""The check of logs whose blocks are damaged where a completed commit wrote."""

from __future__ import annotations

from collections.abc import Iterator

from hudi_table.codec.log.blocks import scan_blocks
from hudi_table.errors import CorruptTableError, ObjectNotFoundError
from hudi_table.model.service.findings import Check, Finding, Severity
from hudi_table.services.doctor.examined import Examined
from hudi_table.table.rows.log_damage import is_suspect, refuse_damage
from hudi_table.table.view.file_system_view import LogFile


def damaged_logs(seen: Examined) -> Iterator[Finding]:
    """Logs of completed commits whose frames are damaged. Contents are not read."""
    named = {stat.path for _, stat in seen.stats()}
    logs = [log for log in seen.logs() if log.path in named and not log.name.cdc]
    paths = {instant.time: seen.ctx.layout.timeline_path(instant.file_name) for instant in seen.commits}

    def damage(log: LogFile) -> str | None:
        try:
            with seen.ctx.storage.open_read(log.path) as source:
                blocks = scan_blocks(source, path=log.path)
                if is_suspect(blocks):
                    refuse_damage(seen.ctx.storage, log, blocks, source, paths.keys(), paths)
        except ObjectNotFoundError:
            return None
        except CorruptTableError as error:
            return error.message
        return None

    for log, fault in zip(logs, seen.engine.imap(damage, logs), strict=True):
        if fault is not None:
            yield Finding(
                Check.DAMAGED_LOG,
                Severity.ERROR,
                log.path,
                fault,
                "bring it back from a copy or a version of the store, or roll back or restore to before its instant: readers fail on it",
            )
