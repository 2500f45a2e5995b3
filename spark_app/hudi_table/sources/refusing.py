"""Rows that are not taken of sources that are no messages, as rows of an error table: where they
stand, why, and what they hold.

A row of a file is found again by the file and its number there. What a database, a statement,
another table or a package gives has no order that lasts, so its rows are known by what they hold:
one that is refused again, by a later attempt or as it is read again, is there once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

ERROR_SCHEMA = pa.schema(
    [
        pa.field("ingest", pa.string(), nullable=False),
        pa.field("id", pa.string(), nullable=False),
        pa.field("place", pa.string()),
        pa.field("version", pa.string()),
        pa.field("row", pa.int64()),
        pa.field("batch", pa.string()),
        pa.field("rule", pa.string()),
        pa.field("reason", pa.string()),
        pa.field("value", pa.string()),
        pa.field("attempt", pa.string()),
    ]
)
"""Of an error table. `id`: of files path, version and number of the row, else the SHA-256 of
`value`, which is the row as JSON."""
ERROR_KEY = ("ingest", "id")


@dataclass(frozen=True, slots=True)
class Place:
    """Where rows stand that were read together: `text` is the file, or a part of the source in
    words. `first`: number of the first of them in the file `version`, from 1, 0 where rows have no
    numbers."""

    text: str
    version: str = ""
    first: int = 0

    def words(self, row: int) -> str:
        """A row of them, by its place among them, in words."""
        if not self.first:
            return f"a row of {self.text}"
        return f"row {self.first + row:,} of file {self.text}"


@dataclass(frozen=True, slots=True)
class Refusing:
    """Of one commit of an ingest. `batch`: its name."""

    ingest: str
    attempt: str
    batch: str

    def table(
        self, place: Place, rows: Sequence[int], held: pa.Table, reasons: Sequence[str], rules: Sequence[str]
    ) -> pa.Table:
        """Rows of an error table: of those at `rows` in `place`, `held` are the texts of what they
        hold (`value`), with their digests (`id`)."""
        numbers = [place.first + row for row in rows] if place.first else None
        ids = [f"{place.text}@{place.version}#{number}" for number in numbers] if numbers is not None else held["id"]
        count = len(rows)
        columns = {
            "ingest": pa.repeat(self.ingest, count),
            "id": ids,
            "place": pa.repeat(place.text, count),
            "version": pa.repeat(place.version, count) if place.first else pa.nulls(count),
            "row": numbers if numbers is not None else pa.nulls(count),
            "batch": pa.repeat(self.batch, count),
            "rule": list(rules),
            "reason": list(reasons),
            "value": held["value"],
            "attempt": pa.repeat(self.attempt, count),
        }
        return pa.table(columns).cast(ERROR_SCHEMA)
