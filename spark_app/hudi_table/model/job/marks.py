"""How far an ingest from a database is: the checkpoint that its commits hold under
`lakeops.ingest.<name>`.

Beside the greatest value that was read stands what the database held of the rows that are read
again the next time: how many, and the sum of their hashes. While these are the same, nothing new is
there.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from hudi_table.model.json_text import parse_json

MARKS_FORMAT = "database-1"


@dataclass(frozen=True, slots=True)
class Mark:
    """`column`: by which rows are read, \"\" where all of them are; `value`: the greatest that was
    read, as the database writes it. `rows` and `digest`: of what is read again."""

    batch: str
    attempt: str
    column: str = ""
    value: str = ""
    rows: int = 0
    digest: str = "0"

    def to_text(self) -> str:
        """The value in extra metadata: compact JSON."""
        document = {"format": MARKS_FORMAT, **{name: getattr(self, name) for name in self.__slots__}}
        return json.dumps(document, separators=(",", ":"), ensure_ascii=False)

    @classmethod
    def from_text(cls, text: str) -> Mark:
        """Parse. Raises ValueError for anything that `to_text` did not write."""
        if not is_mark(text):
            raise ValueError(f"is no checkpoint of a database: {text[:80]!r}")
        raw = parse_json(text)
        try:
            batch, attempt, column, value = (str(raw[name]) for name in ("batch", "attempt", "column", "value"))
            return cls(batch, attempt, column, value, int(raw["rows"]), str(raw["digest"]))
        except (KeyError, TypeError) as error:
            raise ValueError(f"is no checkpoint of a database: {text[:80]!r}") from error


def is_mark(text: str) -> bool:
    """Whether a checkpoint is one of a database; false for what is none at all."""
    try:
        raw = parse_json(text)
    except ValueError:
        return False
    return isinstance(raw, dict) and raw.get("format") == MARKS_FORMAT
