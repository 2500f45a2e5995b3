"""`hudictl doctor BASE`: what is wrong with a table, and putting aside what no reader uses."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import Any

from hudi_table.api import HudiTable
from hudi_table.cli import exits
from hudi_table.cli.bar import bar
from hudi_table.cli.opened import belongs_to, opened
from hudi_table.cli.output import Column, Document, emit, note
from hudi_table.cli.program import storage_options
from hudi_table.errors import CorruptTableError
from hudi_table.model.counts import counted
from hudi_table.model.service.findings import Finding, Severity
from hudi_table.read.output.human import size
from hudi_table.services.doctor.metadata import switch_off
from hudi_table.services.doctor.quarantine import movable, put_back, quarantine
from hudi_table.services.doctor.run import checked
from hudi_table.services.doctor.timeline import properties
from hudi_table.table.commit import leftovers
from hudi_table.table.store.opening import open_storage

_COLUMNS = (
    Column("path", "Path"),
    Column("check", "Check"),
    Column("severity", "Severity"),
    Column("message", "Found"),
    Column("advice", "What to do"),
)
_FILES = (
    Column("path", "Path"),
    Column("size", "Size", size, right=True),
    Column("check", "Check"),
    Column("message", "Found", wide=True),
)


def run(args: argparse.Namespace) -> int:
    """Print the findings, the worst first; with `--quarantine`, the files that can be put aside,
    and with `--yes` move them."""
    belongs_to("--quarantine", args.quarantine, yes=args.yes)
    belongs_to(
        "an examination, not to --put-back",
        not args.put_back,
        keys=args.keys,
        data=args.data,
        mend=args.mend,
        quarantine=args.quarantine,
    )
    if args.put_back:
        made = put_back(opened(args).context, args.put_back)
        emit(Document("FileList", _FILES, [asdict(item) for item in made.files]), args.output)
        return exits.GOOD
    try:
        table = opened(args)
    except CorruptTableError:
        # Properties that cannot be read are a finding; everything else needs them.
        return _report(tuple(properties(open_storage(args.base, storage_options(args.storage)))), args)
    if args.mend:
        keys = table.mend()
        note(
            f"put back: {', '.join(keys)}" if keys else "hoodie.properties lacks nothing that the table has kept of it"
        )
        if swept := leftovers.sweep(table.context):
            note(f"deleted: {counted(swept, 'unfinished file')} of writers that were killed")
    with bar() as progress:
        findings = table.doctor(keys=args.keys, data=args.data, progress=progress)
    note(checked(table.context, keys=args.keys, data=args.data))
    return _put_aside(table, findings, args) if args.quarantine else _report(findings, args)


def _report(findings: tuple[Finding, ...], args: argparse.Namespace) -> int:
    rows: list[dict[str, Any]] = [asdict(finding) for finding in findings]
    emit(Document("FindingList", _COLUMNS, rows), args.output)
    return exits.FINDINGS if any(finding.severity is not Severity.INFO for finding in findings) else exits.GOOD


def _put_aside(table: HudiTable, findings: tuple[Finding, ...], args: argparse.Namespace) -> int:
    made = quarantine(table.context, findings) if args.yes else None
    if args.yes and switch_off(table.context, findings):
        note(f"the metadata table was dropped; hudictl metadata {args.base} --build --yes makes a new one")
    files = made.files if made else () if args.yes else movable(table.context, findings)
    emit(Document("FileList", _FILES, [asdict(item) for item in files]), args.output)
    if made:
        note(
            f"moved to .hoodie/.quarantine/{made.time}; hudictl doctor {args.base} --put-back {made.time} moves them back"
        )
    elif files:
        note("nothing was moved; --yes moves these files to .hoodie/.quarantine")
    return exits.FINDINGS if files and not made else exits.GOOD
