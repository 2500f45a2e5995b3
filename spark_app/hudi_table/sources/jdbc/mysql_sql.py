"""SQL of MySQL and MariaDB, where databases differ.

A time is written and compared in UTC, which `mysql.py` sets for the session. What lies below a
value is computed here: `- INTERVAL` gives null beyond the first year, and integers overflow.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from hudi_table.errors import InvalidDataError
from hudi_table.sources.jdbc.database import Column

INTEGERS = ("tinyint", "smallint", "mediumint", "int", "bigint")
TIMES = ("date", "datetime", "timestamp")
"""Types by which rows can be read in ranges; integers without a sign too."""
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 (of the session's zone, which is UTC)


class MysqlSql:
    """The dialect. No connection sees the state of another one."""

    integers, times, one_state = INTEGERS, TIMES, False

    def quoted(self, name: str) -> str:
        """A name, whatever is in it."""
        return quoted(name)

    def value(self, text: str, kind: str) -> str:
        """A value of a type. Raises InvalidDataError."""
        return str(int(text)) if kind in INTEGERS else f"TIMESTAMP'{_moment(text)}'"

    def behind(self, text: str, kind: str, lag: int) -> str:
        """The value that lies `lag` below this one, the first there is at the least."""
        if kind in INTEGERS:
            return str(int(text) - lag)
        moment = _moment(text)
        room = moment - datetime.min  # noqa: DTZ901 (as above)
        return f"TIMESTAMP'{moment - min(timedelta(seconds=lag), room)}'"

    def greatest(self, name: str, kind: str) -> str:
        """The greatest value that is no zero date, as a text."""
        column = quoted(name)
        if kind in TIMES:
            column = (
                f"CASE WHEN YEAR({column}) > 0 AND MONTH({column}) > 0 AND DAYOFMONTH({column}) > 0 THEN {column} END"
            )
        return f"CAST(MAX({column}) AS CHAR)"

    def digest(self, columns: Sequence[Column], query: str) -> str:
        """How many rows there are, and the sum of 60 bits of their hashes."""
        texts = ", ".join(f"COALESCE({hashed(each)}, 'N')" for each in columns)
        number = f"CAST(CONV(LEFT(SHA2(CONCAT_WS(',', {texts}), 256), 15), 16, 10) AS SIGNED)"
        return f"SELECT CAST(COUNT(*) AS CHAR) AS n, CAST(COALESCE(SUM({number}), 0) AS CHAR) AS digest FROM ({query}) AS hashed"

    def ends(self, name: str, kind: str, query: str) -> str:
        """The least and the greatest value, as whole numbers."""
        column = quoted(name)
        number = column if kind in INTEGERS else f"TIMESTAMPDIFF(SECOND, TIMESTAMP'{_EPOCH}', {column})"
        return (
            f"SELECT CAST(MIN({number}) AS CHAR) AS least, CAST(MAX({number}) AS CHAR) AS most FROM ({query}) AS bounds"
        )

    def cut(self, number: int, kind: str) -> str:
        """The value of such a number."""
        return str(number) if kind in INTEGERS else f"TIMESTAMP'{_EPOCH + timedelta(seconds=number)}'"


def quoted(name: str) -> str:
    """A name as SQL takes it, whatever is in it."""
    return "`" + name.replace("`", "``") + "`"


def literal(text: str) -> str:
    """A text as SQL takes it, whatever is in it and whatever a backslash means to the session."""
    if "\\" in text:
        return f"CONVERT(X'{text.encode().hex()}' USING utf8mb4)"
    return "'" + text.replace("'", "''") + "'"


def hashed(column: Column) -> str:
    """What of a value goes into the hash of its row: never the text that stands for null."""
    name = quoted(column.name)
    if column.kind in LONG:
        return f"SHA2({name}, 256)"
    if column.kind == "float":  # as a text it has six digits
        return f"CAST({name} + 0e0 AS CHAR)"
    return f"CAST({name} AS CHAR)"


LONG = ("text", "binary")
"""Kinds whose values can be of any length."""


def _moment(text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise InvalidDataError(
            f"the greatest value of jdbc.incremental.column is {text!r}, no day of the calendar: leave it out by jdbc.filter"
        ) from error
    # A literal of MariaDB takes no zone.
    return found.astimezone(UTC).replace(tzinfo=None) if found.tzinfo is not None else found
