"""How far an ingest from a database is: the checkpoint that its commits hold under
`lakeops.ingest.<name>`.

Beside the greatest value that was read stands what the database held of the rows that are read
again the next time: how many, and the sum of their hashes. While these are the same, nothing new is
there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hudi_table.model.job.checkpoint_text import parsed, texts, written

MARKS_FORMAT = "database-1"


@dataclass(frozen=True, slots=True)
class Mark:
    """`column`: by which rows are read, \"\" where all of them are; `value`: the greatest that was
    read, as the database writes it. `rows` and `digest`: of what is read again. `statement`: of
    each field that says which rows are meant a digest, nothing where that is not known."""

    batch: str
    attempt: str
    column: str = ""
    value: str = ""
    rows: int = 0
    digest: str = "0"
    statement: dict[str, str] = field(default_factory=dict)

    def to_text(self) -> str:
        """The value in extra metadata: compact JSON."""
        return written(MARKS_FORMAT, {name: getattr(self, name) for name in self.__slots__})

    @classmethod
    def from_text(cls, text: str) -> Mark:
        """Parse. Raises ValueError for anything that `to_text` did not write."""

        def read(raw: Mapping[str, Any]) -> Mark:
            batch, attempt, column, value, digest = texts(raw, "batch", "attempt", "column", "value", "digest")
            statement = {str(name): str(told) for name, told in raw.get("statement", {}).items()}
            return cls(batch, attempt, column, value, int(raw["rows"]), digest, statement)

        return parsed(text, MARKS_FORMAT, "a database", read)
