"""Bytes that work may take where the caller does not say."""

from __future__ import annotations

SLICES_AT_ONCE = 4
"""File slices that a scan reads at the same time."""
MERGE_BYTES = 256 << 20
"""For merging the logs of one slice."""
DEFAULT_MEMORY = SLICES_AT_ONCE * MERGE_BYTES
"""For one call that reads, writes or rewrites rows."""
