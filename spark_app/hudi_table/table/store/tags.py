"""Etags in one form, whichever reply they came with.

Facts: HTTP writes a tag in quotes (RFC 9110, 8.8.3), and so do replies to reads, writes and looks.
In listings S3 and Google Cloud Storage write it so, too; Azure leaves the quotes out.
"""

from __future__ import annotations

from typing import Final

UNQUOTED: Final = frozenset({"az", "azure", "adl", "abfs", "abfss"})
"""Stores whose tags are kept without quotes: their listings have named versions of files in
checkpoints of ingests by them."""


def kept_tag(tag: str | None, scheme: str) -> str | None:
    """The tag of an object as it is compared and kept, of a store of this scheme: as listings tell
    it."""
    return _bare(tag) if tag is not None and scheme in UNQUOTED else tag


def quoted(tag: str) -> str:
    """The tag as a condition names it."""
    return tag if tag.startswith("W/") else f'"{_bare(tag)}"'


def _bare(tag: str) -> str:
    return tag[1:-1] if len(tag) > 1 and tag[0] == tag[-1] == '"' else tag
