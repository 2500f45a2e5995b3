"""What cleaning would free now."""

from __future__ import annotations

from collections.abc import Mapping

from hudi_table.services.cleaning.plan import clean_choice
from hudi_table.table.view.file_system_view import FileSystemView


def bytes_to_clean(view: FileSystemView, options: Mapping[str, str]) -> int:
    """Bytes of the files that a clean with these options would delete. Raises as `clean_choice`."""
    draft = clean_choice(view.ctx, options, force=True)(view)
    return draft.plan.bytes_freed if draft is not None else 0
