"""All checks of a table, one after the other."""

from __future__ import annotations

from hudi_table.errors import InvalidOptionError
from hudi_table.model.findings import Finding, Severity
from hudi_table.services.doctor import files, timeline
from hudi_table.services.doctor.examined import Examined
from hudi_table.services.doctor.keys import duplicate_keys
from hudi_table.services.doctor.metadata import metadata_table
from hudi_table.table.context import TableContext

_ORDER = {Severity.ERROR: 0, Severity.WARNING: 1, Severity.INFO: 2}


def examine(ctx: TableContext, *, keys: bool = False, max_memory: int) -> tuple[Finding, ...]:
    """What is wrong with a table, the worst first; nothing is changed. `keys`: every key is read too, to find those that come
    twice, in about `max_memory` bytes.

    Writers may go on meanwhile. Raises InvalidOptionError, CorruptTableError where keys cannot be read, and what storage raises.
    """
    if max_memory < 1:
        raise InvalidOptionError(f"max_memory is {max_memory}; give bytes, at least 1")
    seen = Examined.of(ctx)
    found = [*timeline.properties(ctx.storage)]
    for check in (
        timeline.unreadable_instants,
        files.missing_files,
        files.wrong_sizes,
        files.invalid_footers,
        files.orphan_files,
        files.duplicate_buckets,
        files.partition_metadata,
        timeline.pending_instants,
        timeline.leftovers,
        metadata_table,
    ):
        found += check(seen)
    if keys:
        found += duplicate_keys(seen, max_memory)
    return tuple(sorted(found, key=lambda finding: _ORDER[finding.severity]))
