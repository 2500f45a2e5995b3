"""How far an ingest from a statement over tables is: the checkpoint that its commits hold under
`lakeops.ingest.<name>`.

While each table holds the commits that it held then, the statement has the same answer, and is not
asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hudi_table.model.job.checkpoint_text import parsed, texts, written

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
        return written(QUERY_FORMAT, {name: getattr(self, name) for name in self.__slots__})

    @classmethod
    def from_text(cls, text: str) -> QueryMark:
        """Parse. Raises ValueError for anything that `to_text` did not write."""

        def read(raw: Mapping[str, Any]) -> QueryMark:
            tables = {str(name): str(told) for name, told in raw["tables"].items()}
            batch, attempt, statement, column, value = texts(raw, "batch", "attempt", "statement", "column", "value")
            return cls(batch, attempt, statement, tables, column, value)

        return parsed(text, QUERY_FORMAT, "a statement", read)
