"""The check of the metadata table against the table's folders, and switching off one that is
wrong."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hudi_table.errors import HudiError
from hudi_table.metadata.validate import differences
from hudi_table.model.counts import counted
from hudi_table.model.names import METADATA_TABLE
from hudi_table.model.service.findings import Check, Finding, Severity
from hudi_table.services.doctor.examined import Examined
from hudi_table.table.metadata_dropping import drop_metadata_table
from hudi_table.table.timeline.context import TableContext

FINDINGS_MAX = 20
"""One is reason enough to switch it off."""
_ADVICE = (
    "switch it off (hudictl metadata BASE --drop --yes); readers list the folders then, and --build makes a new one"
)


def metadata_table(seen: Examined) -> Iterator[Finding]:
    """Where a ready metadata table does not list what the folders hold: readers that trust it lose
    rows, or fail."""
    if not seen.before.has_metadata:
        return
    try:
        found = differences(seen.ctx)
    except HudiError as error:
        yield _finding(METADATA_TABLE, f"it cannot be read: {error.message}")
        return
    for item in found[:FINDINGS_MAX]:
        yield _finding(item.path, f"{item.path or 'the table'} {item.what}")
    if len(found) > FINDINGS_MAX:
        yield _finding(METADATA_TABLE, f"{counted(len(found) - FINDINGS_MAX, 'more difference')}")


def switch_off(ctx: TableContext, findings: Iterable[Finding]) -> bool:
    """Drop the metadata table if a finding says that it is wrong. Whether there was one to drop."""
    wrong = next((item.message for item in findings if item.check is Check.METADATA_TABLE), None)
    return wrong is not None and drop_metadata_table(ctx, wrong)


def _finding(path: str, message: str) -> Finding:
    return Finding(Check.METADATA_TABLE, Severity.ERROR, path, f"the metadata table is wrong: {message}", _ADVICE)
