"""A table `orders` of a live database that somebody changes by chance: rows come, change, get other
keys and go, and the columns change with them."""

from __future__ import annotations

import random
from datetime import datetime
from decimal import Decimal
from typing import Any, ClassVar

from adbc_driver_postgresql import dbapi

from tests.support import mariadb, postgres
from tests.support.feeds import Feed

LAST = 1_000_000_000
"""The key of the row that is written last: where the table has it, it has all before it."""
STEPS = ["add", "widen", "rename", "drop"]


class Shop:
    """What changes the table, and remembers which keys there are."""

    SCHEMA: ClassVar[str]
    ORDER: ClassVar[str]
    COLUMNS: ClassVar[list[str]]
    LARGE: ClassVar[list[str]]
    database: Any
    TYPES: ClassVar[dict[str, str]] = {"amount": "decimal(20,2)", "pieces": "bigint"}
    """Those that the database widens."""

    def __init__(self, seed: str) -> None:
        self.draw = random.Random(seed)
        self.keys: list[int] = []
        self.next = 0
        self.columns = list(self.COLUMNS)

    def open(self) -> None:
        """Make the table."""
        raise NotImplementedError

    def execute(self, *statements: str) -> None:
        """Run statements, each a transaction of its own."""
        raise NotImplementedError

    def rows(self) -> dict[int, tuple[Any, ...]]:
        """What the database has, of `columns`."""
        raise NotImplementedError

    def block(self, statements: list[str]) -> str:
        """Statements as one transaction."""
        raise NotImplementedError

    def value(self, column: str) -> str:
        """Of a large column: small, none, or so large that it lies apart."""
        raise NotImplementedError

    def moment(self) -> str:
        """A time, or none."""
        raise NotImplementedError

    def widened(self) -> list[str]:
        """Statements that widen columns."""
        raise NotImplementedError

    def trade(self, count: int) -> None:
        """So many transactions."""
        self.execute(*(self.transaction() for _ in range(count)))

    def transaction(self) -> str:
        """Some statements, which happen together."""
        return self.block([self.statement() for _ in range(self.draw.randint(1, 4))])

    def statement(self) -> str:
        kind = self.draw.choices(["insert", "update", "large", "key", "delete"], [4, 5, 1, 1, 2])[0]
        if kind == "insert" or not self.keys:
            return self.insert()
        key = self.draw.choice(self.keys)
        if kind == "update":
            return f"update orders set amount = {self.amount()}, due = {self.moment()} where id = {key}"
        if kind == "large":
            column = self.draw.choice(self.LARGE)
            return f"update orders set {column} = {self.value(column)} where id = {key}"
        self.keys.remove(key)
        if kind == "delete":
            return f"delete from orders where id = {key}"
        return f"update orders set id = {self.new_key()} where id = {key}"

    def insert(self) -> str:
        # A key that was deleted may come again.
        key = self.draw.randrange(self.next) if self.next and self.draw.random() < 0.2 else -1
        if key < 0 or key in self.keys:
            key = self.new_key()
        else:
            self.keys.append(key)
        large = ", ".join(self.value(name) for name in self.LARGE)
        return (
            f"insert into orders (id, customer, amount, due, {', '.join(self.LARGE)}) values ({key}, "
            f"'c{self.draw.randrange(50)} – ü', {self.amount()}, {self.moment()}, {large})"
        )

    def new_key(self) -> int:
        self.next += 1
        self.keys.append(self.next - 1)
        return self.next - 1

    def amount(self) -> str:
        return self.draw.choice(["null", f"{self.draw.randrange(-(10**9), 10**9) / 100:.2f}"])

    def last(self) -> None:
        """Write the row behind which there is none."""
        self.execute(f"insert into orders (id, customer) values ({LAST}, 'last')")

    def change_columns(self, step: str, number: int) -> None:
        """Change the columns; where stored rows change with them, each row is told again."""
        if step == "add":
            self.columns.append(f"extra{number}")
            self.execute(
                f"alter table orders add column extra{number} bigint",
                f"update orders set extra{number} = id where mod(id, 2) = 0",
            )
            return
        if step == "widen":
            self.execute(*self.widened())
            return
        found = [name for name in self.columns if name.startswith("extra")]
        if not found:
            return
        self.columns.remove(found[0])
        if step == "drop":
            self.execute(f"alter table orders drop column {found[0]}")
            return
        self.columns.append(f"extra{number}")
        self.execute(
            f"alter table orders rename column {found[0]} to extra{number}",
            "update orders set pieces = coalesce(pieces, 0) + 1",
        )

    def stored(self, feed: Feed) -> dict[int, tuple[Any, ...]]:
        """What the table of the lake has, as `rows` tells it."""
        return {row["id"]: tuple(map(self.told, row.values())) for row in feed.rows(*self.columns)}

    def told(self, value: Any) -> Any:
        """A value as the database tells it."""
        return value


class PostgresShop(Shop):
    """Its large values lie apart, and are not told by changes of other columns."""

    SCHEMA = "public"
    ORDER = "_event_lsn"
    COLUMNS: ClassVar[list[str]] = ["id", "customer", "amount", "pieces", "big", "due", "raw", "tags", "marks", "doc"]
    LARGE: ClassVar[list[str]] = ["big", "raw", "tags", "marks", "doc"]
    _VALUES: ClassVar[dict[str, tuple[str, str]]] = {
        "big": ("'{0}'", "repeat('{0}', 9000)"),
        "raw": ("'{0}'::bytea", "convert_to(repeat('{0}', 9000), 'UTF8')"),
        "tags": ("array['{0}', null]", "array[repeat('{0}', 9000), 'x']"),
        "marks": ("array[1, null]::bigint[]", "(select array_agg(i * ascii('{0}')) from generate_series(1, 2000) i)::bigint[]"),
        "doc": ("""'{{"a": "{0}"}}'::jsonb""", "jsonb_build_object('a', repeat('{0}', 9000))"),
    }  # fmt: skip

    def __init__(self, seed: str, database: postgres.Server) -> None:
        super().__init__(seed)
        self.database = database

    def open(self) -> None:
        self.execute(
            "create table orders (id bigint primary key, customer text not null, amount numeric(12,2), pieces int, big text, due timestamptz, "
            "raw bytea, tags text[], marks bigint[], doc jsonb)",
            *(f"alter table orders alter column {name} set storage external" for name in self.LARGE),
        )

    def execute(self, *statements: str) -> None:
        self.database.execute(*statements)

    def rows(self) -> dict[int, tuple[Any, ...]]:
        names = ", ".join(f"{name}::text" if name in ("amount", "doc") else name for name in self.columns)
        with dbapi.connect(self.database.uri) as connection, connection.cursor() as cursor:
            cursor.execute(f"select {names} from orders")
            return {row[0]: tuple(row) for row in cursor.fetchall()}

    def block(self, statements: list[str]) -> str:
        return f"do $$ begin {'; '.join(statements)}; end $$"

    def value(self, column: str) -> str:
        small, large = self._VALUES[column]
        return self.draw.choice(["null", small, large]).format(self.draw.choice("abc"))

    def moment(self) -> str:
        moment = f"timestamptz '2026-01-01 00:00:00+00' + interval '{self.draw.randrange(10**9)} milliseconds'"
        return self.draw.choice(["null", moment])

    def widened(self) -> list[str]:
        return [
            "alter table orders alter column amount type numeric(14,2)",
            "alter table orders alter column pieces type bigint",
        ]

    def told(self, value: Any) -> Any:
        return f"{value:.2f}" if isinstance(value, Decimal) else value


class MariaShop(Shop):
    """Its log holds rows whole."""

    SCHEMA = mariadb.DATABASE
    ORDER = "_event_seq"
    COLUMNS: ClassVar[list[str]] = ["id", "customer", "amount", "pieces", "big", "due"]
    LARGE: ClassVar[list[str]] = ["big"]

    def __init__(self, seed: str, database: mariadb.Server) -> None:
        super().__init__(seed)
        self.database = database

    def open(self) -> None:
        self.execute(
            "create table orders (id bigint primary key, customer varchar(50) not null, amount decimal(12,2), pieces int, big mediumtext, due datetime(6))"
        )

    def execute(self, *statements: str) -> None:
        self.database.execute(*statements)

    def rows(self) -> dict[int, tuple[Any, ...]]:
        texts = ", ".join(f"cast({name} as char)" if name in ("amount", "due") else name for name in self.columns)
        return {row[0]: tuple(row) for row in self.database.query(f"select json_array({texts}) from orders")}

    def block(self, statements: list[str]) -> str:
        return f"start transaction; {'; '.join(statements)}; commit"

    def value(self, column: str) -> str:
        letter = self.draw.choice("abc")
        return self.draw.choice(["null", f"'{letter}'", f"repeat('{letter}', 9000)"])

    def moment(self) -> str:
        moment = f"timestamp'2026-01-01 00:00:00' + interval {self.draw.randrange(10**9)} microsecond"
        return self.draw.choice(["null", moment])

    def widened(self) -> list[str]:
        return ["alter table orders modify column amount decimal(14,2), modify column pieces bigint"]

    def told(self, value: Any) -> Any:
        if isinstance(value, datetime):
            return value.strftime("%Y-%m-%d %H:%M:%S.%f")
        return f"{value:.2f}" if isinstance(value, Decimal) else value
