"""SQL of PostgreSQL, where databases differ."""

from __future__ import annotations

from collections.abc import Sequence

from hudi_table.sources.jdbc.database import Column

INTEGERS, TIMES = ("int2", "int4", "int8"), ("date", "timestamp", "timestamptz")
"""Types by which rows can be read in ranges."""


class PostgresSql:
    """The dialect. Transactions export the state that they see."""

    integers, times, one_state = INTEGERS, TIMES, True

    def quoted(self, name: str) -> str:
        """A name, whatever is in it."""
        return quoted(name)

    def value(self, text: str, kind: str) -> str:
        """A value of a type."""
        return f"{literal(text)}::{kind}"

    def behind(self, text: str, kind: str, lag: int) -> str:
        """The value that lies `lag` below this one."""
        if kind in INTEGERS:
            return f"({self.value(text, kind)}::numeric - {lag})"
        return f"({self.value(text, kind)} - interval '{lag} seconds')"

    def greatest(self, name: str, kind: str) -> str:
        """The greatest value that is finite, as a text."""
        finite = "true" if kind in INTEGERS else f"isfinite({quoted(name)})"
        return f"(max({quoted(name)}) FILTER (WHERE {finite}))::text"

    def digest(self, columns: Sequence[Column], query: str) -> str:  # noqa: ARG002 (a row is a text)
        """How many rows there are, and the sum of their hashes: the same in whatever order. The
        name of a row must be that of no column, which would be meant instead."""
        row = "_lakeops_row"
        return f"SELECT count(*), coalesce(sum(hashtextextended({row}::text, 0)), 0)::text FROM ({query}) AS {row}"

    def ends(self, name: str, kind: str, query: str) -> str:
        """The least and the greatest value, as whole numbers."""
        number = f"{quoted(name)}::numeric"
        if kind in TIMES:
            number = f"CASE WHEN isfinite({quoted(name)}) THEN extract(epoch FROM {quoted(name)})::numeric END"
        return f"SELECT floor(min({number}))::text, ceil(max({number}))::text FROM ({query}) AS bounds"

    def cut(self, number: int, kind: str) -> str:
        """The value of such a number."""
        if kind in INTEGERS:
            return str(number)
        moment = f"to_timestamp({number})"
        return {"timestamptz": moment, "timestamp": f"({moment} AT TIME ZONE 'UTC')"}.get(
            kind, f"({moment} AT TIME ZONE 'UTC')::date"
        )


def quoted(name: str) -> str:
    """A name as SQL takes it, whatever is in it."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A text as SQL takes it, whatever is in it."""
    doubled = text.replace("'", "''").replace("\\", "\\\\")
    return f"E'{doubled}'"
