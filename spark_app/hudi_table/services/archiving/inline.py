"""Archiving that a writer does itself after its commit, if its options give
`hoodie.archive.automatic` as true."""

from __future__ import annotations

from collections.abc import Mapping

from hudi_table.services.archiving.execute import archive
from hudi_table.services.archiving.policy import ArchivePolicy, wants_archiving
from hudi_table.table.timeline.context import TableContext


def check_archiving(options: Mapping[str, str]) -> None:
    """Refuse contradicting settings before anything is written, where they matter. Raises
    InvalidOptionError."""
    if wants_archiving(options):
        ArchivePolicy.parse(options)


def archive_inline(ctx: TableContext, options: Mapping[str, str]) -> None:
    """What the options ask after a write."""
    if wants_archiving(options):
        archive(ctx, options)
