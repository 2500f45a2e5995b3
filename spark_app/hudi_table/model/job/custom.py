"""How far an ingest from a source of another package is: the checkpoint that its commits hold under
`lakeops.ingest.<name>`. What it says only the package knows."""

from __future__ import annotations

import json
from dataclasses import dataclass

from hudi_table.model.json_text import parse_json

CUSTOM_FORMAT = "custom-1"


@dataclass(frozen=True, slots=True)
class CustomMark:
    """`source`: name of the entry point; `position`: the package's own text."""

    batch: str
    attempt: str
    source: str
    position: str

    def to_text(self) -> str:
        """The value in extra metadata: compact JSON."""
        document = {"format": CUSTOM_FORMAT, **{name: getattr(self, name) for name in self.__slots__}}
        return json.dumps(document, separators=(",", ":"), ensure_ascii=False)

    @classmethod
    def from_text(cls, text: str) -> CustomMark:
        """Parse. Raises ValueError for anything that `to_text` did not write."""
        if not is_custom(text):
            raise ValueError(f"is no checkpoint of a package's source: {text[:80]!r}")
        raw = parse_json(text)
        try:
            return cls(*(str(raw[name]) for name in cls.__slots__))
        except KeyError as error:
            raise ValueError(f"is no checkpoint of a package's source: {text[:80]!r}") from error


def is_custom(text: str) -> bool:
    """Whether a checkpoint is one of a package's source; false for what is none at all."""
    try:
        raw = parse_json(text)
    except ValueError:
        return False
    return isinstance(raw, dict) and raw.get("format") == CUSTOM_FORMAT
