"""`source.jdbc` of an ingest: rows of a database."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from hudi_operator.api.fields.patterns import COLUMN_LENGTH_MAX, DURATION
from hudi_operator.api.schema import Rule, prop

EVERY = "5m"
SPLIT_MAX = 16


class Infinite(StrEnum):
    """What becomes of dates without an end, and of those without a day."""

    REFUSE = "Refuse"
    AS_NULL = "AsNull"


class DatabaseTls(StrEnum):
    """Whether the connection is encrypted, and the server's certificate checked."""

    PREFER = "Prefer"
    REQUIRE = "Require"
    VERIFY_FULL = "VerifyFull"


@dataclass(frozen=True, slots=True)
class IncrementalSpec:
    """Rows by a column that grows: those from `lag` below the greatest value that was read on."""

    column: str = prop(
        "of a type of integers, dates or times with a day: smallint, integer, bigint, date, timestamp, timestamptz; of MySQL and MariaDB tinyint, "
        "mediumint and datetime too. Rows in which it is null are not read",
        min_length=1,
        max_length=COLUMN_LENGTH_MAX,
    )
    lag: str = prop(
        "how far below the greatest value the next run begins: of a time a duration, such as 10m, else a plain number; what is committed late is "
        "taken then",
        "0",
        pattern="^([0-9]{1,18}|[0-9]+(\\.[0-9]+)?[smhd])$",
        max_length=18,
    )


@dataclass(frozen=True, slots=True)
class SplitSpec:
    """Ranges of a column that are read at once. Connections of PostgreSQL see one state of the
    database; those of MySQL and MariaDB do not, so that these need `incremental` beside it."""

    column: str = prop("of a type as that of incremental", min_length=1, max_length=COLUMN_LENGTH_MAX)
    parts: int = prop("how many connections", 4, minimum=2, maximum=SPLIT_MAX)


@dataclass(frozen=True, slots=True)
class JdbcSpec:
    """A table or a query of PostgreSQL, MySQL or MariaDB. User and password are
    DATABASE_USERNAME and DATABASE_PASSWORD in the Secret of storage.credentialsSecretRef, PEM texts
    of trusted certificates DATABASE_CA."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "has(self.table) != has(self.query)",
            "give table or query, one of them",
            "table",
            lambda j: (j.table is None) != (j.query is None),
        ),
        Rule(
            "self.url.startsWith('postgresql://') || self.url.startsWith('mysql://') || self.url.startsWith('mariadb://')",
            "type Jdbc reads postgresql://, mysql:// or mariadb://host[:port]/database",
            "url",
            lambda j: j.url.startswith(("postgresql://", "mysql://", "mariadb://")),
        ),
        Rule(
            "!has(self.split) || has(self.incremental) || self.url.startsWith('postgresql://')",
            "split of MySQL and MariaDB needs incremental: their connections see no common state",
            "split",
            lambda j: j.split is None or j.incremental is not None or j.url.startswith("postgresql://"),
        ),
    )

    url: str = prop(
        "where the database is: postgresql://, mysql:// or mariadb://host[:port]/database, without user",
        pattern="^[a-z]+://[A-Za-z0-9.-]+(:[0-9]{1,5})?/[A-Za-z0-9_.-]+$",
        max_length=512,
    )
    table: str | None = prop(
        "name of the table, with its schema if it has one; that of MySQL and MariaDB is a database",
        None,
        min_length=1,
        max_length=256,
    )
    query: str | None = prop("one SELECT, in the database's own SQL", None, min_length=1, max_length=16384)
    filter: str | None = prop(
        "condition on the rows, in the database's own SQL, which judges it", None, min_length=1, max_length=4096
    )
    incremental: IncrementalSpec | None = prop(
        "rows by a column that grows; absent: all rows, if any has changed", None
    )
    split: SplitSpec | None = prop("parts that are read at once; absent: one connection", None)
    every: str = prop("how often the database is asked", EVERY, pattern=DURATION, max_length=32)
    infinite: Infinite = prop(
        "a date or timestamp that is infinite, of MySQL and MariaDB one whose year, month or day is zero, cannot be read, or is null",
        Infinite.REFUSE,
    )
    tls: DatabaseTls = prop(
        "encrypt if the server can, only if it can, or only if its certificate is trusted and names the host",
        DatabaseTls.PREFER,
    )
