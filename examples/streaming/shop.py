"""A shop in PostgreSQL: orders come, are paid, sent and cancelled; customers spend."""

from __future__ import annotations

import random
import threading
import time
from dataclasses import dataclass, field

import pyarrow as pa
from adbc_driver_postgresql import dbapi

TABLES = {
    "customers": ["id", "name", "city", "spent", "updated_at"],
    "orders": ["id", "customer_id", "item", "amount", "status", "updated_at"],
}
CUSTOMERS = 200
PAUSE_SECONDS = 0.1
_MAKE = (
    "create table customers (id bigint primary key, name text not null, city text, spent bigint, updated_at timestamptz)",
    "create table orders (id bigint primary key, customer_id bigint, item text, amount bigint, status text, updated_at timestamptz)",
    f"""insert into customers select n, 'customer ' || n, (array['Amsterdam', 'Bogota', 'Chengdu', 'Dakar'])[1 + n % 4], 0,
        clock_timestamp() from generate_series(1, {CUSTOMERS}) n""",
)


@dataclass
class Shop:
    """What happens in the database at `uri`, by a thread of its own. Amounts are cents."""

    uri: str
    changes: int = 0
    _next: int = 1
    _draw: random.Random = field(default_factory=lambda: random.Random(2013))
    _closed: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def open(self) -> None:
        """Make the tables."""
        self._execute(*_MAKE)

    def trade(self) -> None:
        """Begin to change rows."""
        self._thread = threading.Thread(target=self._trade, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Change nothing any more."""
        self._closed.set()
        if self._thread is not None:
            self._thread.join()

    def rows(self, table: str) -> pa.Table:
        """What a table holds, by `id`."""
        with dbapi.connect(self.uri) as connection, connection.cursor() as cursor:
            cursor.execute(f"select {', '.join(TABLES[table])} from {table} order by id")
            return cursor.fetch_arrow_table()

    def count(self, table: str) -> int:
        """How many rows it holds."""
        with dbapi.connect(self.uri) as connection, connection.cursor() as cursor:
            cursor.execute(f"select count(*) from {table}")
            row = cursor.fetchone()
            return int(row[0]) if row else 0

    def _trade(self) -> None:
        while not self._closed.is_set():
            came, moved, gone = self._draw.randint(5, 15), self._draw.randint(10, 30), self._draw.randint(0, 3)
            first, self._next = self._next, self._next + came
            oldest = max(1, first - 2_000)
            draw = f"select {oldest} + (random() * {first - oldest})::bigint from generate_series(1, %d)"
            self._execute(
                f"""insert into orders select n, 1 + n * 7 % {CUSTOMERS}, (array['lamp', 'chair', 'desk', 'shelf'])[1 + n % 4],
                    n * 37 % 20000, 'new', clock_timestamp() from generate_series({first}, {first + came - 1}) n""",
                f"""update orders set status = (array['paid', 'sent', 'returned'])[1 + id % 3], updated_at = clock_timestamp()
                    where id in ({draw % moved})""",
                f"delete from orders where id in ({draw % gone})",
                f"""update customers set spent = spent + 100, updated_at = clock_timestamp()
                    where id = {1 + first % CUSTOMERS}""",
            )
            self.changes += came + moved + gone + 1
            time.sleep(PAUSE_SECONDS)

    def _execute(self, *statements: str) -> None:
        with dbapi.connect(self.uri, autocommit=True) as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
