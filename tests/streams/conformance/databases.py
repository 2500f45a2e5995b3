"""Rows of a table of a database, read by a number that grows, with what came late within its
lag."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any, ClassVar

import pytest

from hudi_table.sources.jdbc import mysql, postgres, source
from tests.streams.conformance.part import Part, Row
from tests.support.databases import MARIADB, POSTGRES, Server, Vendor

OLD_PASSWORD, NEW_PASSWORD = "se-cret-of-a-reader", "an-other-se-cret"
BLOCK = 1000
"""So many numbers has a partition."""


class Jdbc(Part):
    """A partitioned table. A row that comes twice is read twice, so it is upserted."""

    vendor: ClassVar[Vendor]
    fixture: ClassVar[str]
    inserts = False
    no_day: ClassVar[str]
    """A date that no table holds, and what is said of it."""

    def __init__(self, request: pytest.FixtureRequest, folder: Path) -> None:
        self.server: Server = request.getfixturevalue(self.fixture)
        self.name, self.seq, self.away = f"t{uuid.uuid4().hex[:10]}", 0, False
        self.reader = f"reader_{self.name}"
        url = f"{self.vendor.scheme}://127.0.0.1:{self.server.port}/{self.vendor.database}"
        asked = {"url": url, "table": self.name, "incremental": {"column": "seq", "lag": 5}}
        super().__init__(request, folder, {"type": "Jdbc", "jdbc": asked})
        self.environment.setenv("DATABASE_USERNAME", self.reader)
        self.environment.setenv("DATABASE_PASSWORD", OLD_PASSWORD)
        self.do(f"create table $t (id $text, v bigint, seq bigint, day date) partition by range {self.first_part()}")
        self.do(*self.allowed())

    def do(self, *statements: str) -> None:
        """Run statements, in which `$t` is the table and `$reader` who reads it."""
        named = (each.replace("$t ", f"{self.name} ").replace("$reader", self.reader) for each in statements)
        self.server.execute(*map(self.vendor.sql, named))

    def first_part(self) -> str:
        """How the table is partitioned."""
        raise NotImplementedError

    def allowed(self) -> tuple[str, ...]:
        """What lets the reader read, and what comes behind the table."""
        raise NotImplementedError

    def put(self, *rows: Row, **more: str) -> None:
        self.seq += 1
        self._insert(self.seq, rows, more)

    def late(self, *rows: Row) -> None:
        self._insert(self.seq - 1, rows, {})

    def _insert(self, seq: int, rows: tuple[Row, ...], more: dict[str, str]) -> None:
        names = "".join(f", {name}" for name in more)
        values = "".join(f", '{value}'" for value in more.values())
        listed = ", ".join(f"('{key}', {version}, {seq}{values})" for key, version in rows)
        self.do(f"insert into $t (id, v, seq{names}) values {listed}")

    def leave(self) -> None:
        self.away = True
        self.server.kill()

    def come_back(self) -> None:
        self.server.start()
        self.away = False

    def renew(self) -> None:
        self.environment.setenv("DATABASE_PASSWORD", NEW_PASSWORD)

    def secrets(self) -> list[str]:
        return [OLD_PASSWORD, NEW_PASSWORD]

    def widen(self) -> None:
        self.do("alter table $t add column more $text")

    def poison(self) -> str:
        day, said = self.no_day.split(": ")
        self.do(f"insert into $t (id, v, seq, day) values ('p', 1, {self.seq}, '{day}')")
        return said

    def cure(self) -> tuple[list[Row], dict[str, Any]]:
        self.do("update $t set day = null where id = 'p'")
        return [("p", 1)], {}

    def mend(self) -> None:
        if self.away:
            self.come_back()


class Postgres(Jdbc):
    """PostgreSQL."""

    label = "Jdbc, PostgreSQL"
    part = "a PostgreSQL"
    vendor = POSTGRES
    fixture = "postgres_server"
    no_day = "infinity: column day holds a date that is infinite"

    def calls(self) -> list[tuple[Any, str]]:
        return [(postgres.State, "one"), (postgres.State, "schema"), (source, "read")]

    def first_part(self) -> str:
        return "(seq)"

    def allowed(self) -> tuple[str, ...]:
        return (
            f"create table {self.name}_1 partition of $t for values from (0) to ({BLOCK})",
            f"create user $reader password '{OLD_PASSWORD}'", "grant select on $t to $reader",
        )  # fmt: skip

    def grow(self) -> None:
        self.do(f"create table {self.name}_2 partition of $t for values from ({BLOCK}) to ({2 * BLOCK})")
        self.seq = BLOCK

    def rotate(self) -> None:
        self.do(f"alter user $reader password '{NEW_PASSWORD}'")


class MariaDB(Jdbc):
    """MariaDB."""

    label = "Jdbc, MariaDB"
    part = "a MariaDB"
    vendor = MARIADB
    fixture = "mariadb_server"
    no_day = "2026-00-01: column day holds a date whose year, month or day is zero"

    def calls(self) -> list[tuple[Any, str]]:
        return [(mysql.MysqlState, "one"), (mysql.MysqlState, "columns"), (source, "read")]

    def first_part(self) -> str:
        return f"(seq) (partition p1 values less than ({BLOCK}))"

    def allowed(self) -> tuple[str, ...]:
        return f"create user $reader@'%' identified by '{OLD_PASSWORD}'", "grant select on $t to $reader@'%'"

    def grow(self) -> None:
        self.do(f"alter table $t add partition (partition p2 values less than ({2 * BLOCK}))")
        self.seq = BLOCK

    def rotate(self) -> None:
        self.do(f"alter user $reader@'%' identified by '{NEW_PASSWORD}'")
