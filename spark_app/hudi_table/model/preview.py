"""What is built and not yet released: switched on for one process by `HUDI_TABLE_PREVIEW`."""

from __future__ import annotations

import os

VARIABLE = "HUDI_TABLE_PREVIEW"


def merge_on_read() -> bool:
    """Whether merge-on-read tables are read and written. Until compaction is there, a table would only grow logs."""
    return "merge-on-read" in os.environ.get(VARIABLE, "").split(",")
