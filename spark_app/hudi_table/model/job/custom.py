"""How far an ingest from a source of another package is: the checkpoint that its commits hold under
`lakeops.ingest.<name>`. What it says only the package knows."""

from __future__ import annotations

from dataclasses import dataclass

from hudi_table.model.job.checkpoint_text import parsed, texts, written

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
        return written(CUSTOM_FORMAT, {name: getattr(self, name) for name in self.__slots__})

    @classmethod
    def from_text(cls, text: str) -> CustomMark:
        """Parse. Raises ValueError for anything that `to_text` did not write."""
        return parsed(text, CUSTOM_FORMAT, "a package's source", lambda raw: cls(*texts(raw, *cls.__slots__)))
