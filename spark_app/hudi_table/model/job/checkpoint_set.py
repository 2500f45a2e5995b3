"""What a commit says that sets a checkpoint: who did so, and what it was before."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from hudi_table.model.json_text import parse_json

SET_KEY = "lakeops.checkpoint.set"


@dataclass(frozen=True, slots=True)
class CheckpointSet:
    """Of an ingest: who has set its checkpoint, and the text in whose place, None of none."""

    ingest: str
    by: str
    before: str | None

    @classmethod
    def of(cls, extra: Mapping[str, str]) -> Self | None:
        """What stands in the extra metadata of a commit; None where nothing does that can be
        read."""
        try:
            found = parse_json(extra.get(SET_KEY, ""))
        except ValueError:
            return None
        if not isinstance(found, dict) or not {"ingest", "by"} <= found.keys():
            return None
        before = found.get("before")
        return cls(str(found["ingest"]), str(found["by"]), None if before is None else str(before))

    def to_extra(self) -> dict[str, str]:
        """What the commit says of it."""
        return {SET_KEY: json.dumps({"ingest": self.ingest, "by": self.by, "before": self.before})}
