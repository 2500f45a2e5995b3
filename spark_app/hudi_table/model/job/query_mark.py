"""How far an ingest from a statement over tables is: the checkpoint that its commits hold under
`lakeops.ingest.<name>`.

While each table holds the commits that it held then, the statement has the same answer, and is not
asked.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from hudi_table.model.json_text import parse_json

QUERY_FORMAT = "query-1"


@dataclass(frozen=True, slots=True)
class QueryMark:
    """`statement`: digest of what was asked. `tables`: of each table a digest of its commits.
    `column`: by which rows are read, \"\" where all of them are; `value`: the greatest that was
    read, as DuckDB writes it."""

    batch: str
    attempt: str
    statement: str
    tables: dict[str, str] = field(default_factory=dict)
    column: str = ""
    value: str = ""

    def to_text(self) -> str:
        """The value in extra metadata: compact JSON."""
        document = {"format": QUERY_FORMAT, **{name: getattr(self, name) for name in self.__slots__}}
        return json.dumps(document, separators=(",", ":"), ensure_ascii=False)

    @classmethod
    def from_text(cls, text: str) -> QueryMark:
        """Parse. Raises ValueError for anything that `to_text` did not write."""
        if not is_query(text):
            raise ValueError(f"is no checkpoint of a statement: {text[:80]!r}")
        raw = parse_json(text)
        try:
            batch, attempt, statement, column, value = (
                str(raw[name]) for name in ("batch", "attempt", "statement", "column", "value")
            )
            tables = {str(name): str(told) for name, told in raw["tables"].items()}
            return cls(batch, attempt, statement, tables, column, value)
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"is no checkpoint of a statement: {text[:80]!r}") from error


def is_query(text: str) -> bool:
    """Whether a checkpoint is one of a statement; false for what is none at all."""
    try:
        raw = parse_json(text)
    except ValueError:
        return False
    return isinstance(raw, dict) and raw.get("format") == QUERY_FORMAT
