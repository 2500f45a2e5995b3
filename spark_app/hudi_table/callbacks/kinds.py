"""What a commit may have done to the rows. Nothing is read here: manifests name it, too."""

from __future__ import annotations

from enum import StrEnum


class CommitKind(StrEnum):
    """What a commit did to the rows: wrote some, or moved all as they were into other files."""

    WRITE = "Write"
    REWRITE = "Rewrite"
