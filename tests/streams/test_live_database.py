"""A table that follows a live PostgreSQL through Debezium: after random transactions, changes of
columns among them, it is what the database is.

Drivers are killed meanwhile. The recorded events of the other tests tell single cases; here nobody
chose them.
"""

from __future__ import annotations

import random
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from adbc_driver_postgresql import dbapi

from hudi_table.errors import HudiError
from tests.support.connect import following
from tests.support.feeds import Feed
from tests.support.kafka import Broker
from tests.support.postgres import Server, running_postgres
from tests.support.scale import scaled

pytestmark = pytest.mark.at_scale(2)
SECONDS_MAX = 240.0
LAST = 1_000_000_000
"""The key of the row that is written last: where the table has it, it has all before it."""
STEPS = ["add", "widen", "rename", "drop"]


@pytest.fixture
def database() -> Iterator[Server]:
    with running_postgres("wal_level=logical") as server:
        server.execute(
            "create table orders (id bigint primary key, customer text not null, amount numeric(12,2), pieces int, big text, due timestamptz)",
            "alter table orders alter column big set storage external",
        )
        yield server


class Shop:
    """What changes the table `orders`, by chance, and remembers which keys there are."""

    def __init__(self, seed: str, *, tells_whole_rows: bool) -> None:
        self.tells_whole_rows = tells_whole_rows
        self.draw = random.Random(seed)
        self.keys: list[int] = []
        self.next = 0
        self.columns = ["id", "customer", "amount", "pieces", "big", "due"]

    def transaction(self) -> str:
        """One block of some statements, which happen together."""
        statements = [self.statement() for _ in range(self.draw.randint(1, 4))]
        return f"do $$ begin {' '.join(statements)} end $$"

    def statement(self) -> str:
        kind = self.draw.choices(["insert", "update", "large", "key", "delete"], [4, 5, 1, 1, 2])[0]
        if kind == "insert" or not self.keys:
            return self.insert()
        key = self.draw.choice(self.keys)
        if kind == "update":
            return f"update orders set amount = {self.amount()}, due = {self.moment()} where id = {key};"
        if kind == "large":
            return f"update orders set big = {self.large()} where id = {key};"
        self.keys.remove(key)
        if kind == "delete":
            return f"delete from orders where id = {key};"
        moved = self.new_key()
        # Of a row whose key changes the connector tells a large value only if that changes, too, or if it tells whole rows.
        more = "" if self.tells_whole_rows else f", big = {self.large()}"
        return f"update orders set id = {moved}{more} where id = {key};"

    def insert(self) -> str:
        # A key that was deleted may come again.
        key = self.new_key() if self.draw.random() < 0.8 or self.next == 0 else self.draw.randrange(self.next)
        if key in self.keys:
            key = self.new_key()
        if key not in self.keys:
            self.keys.append(key)
        return (
            f"insert into orders (id, customer, amount, big, due) values ({key}, 'c{self.draw.randrange(50)} – ü', "
            f"{self.amount()}, {self.large()}, {self.moment()});"
        )

    def new_key(self) -> int:
        self.next += 1
        self.keys.append(self.next - 1)
        return self.next - 1

    def amount(self) -> str:
        return self.draw.choice(["null", f"{self.draw.randrange(-(10**9), 10**9) / 100:.2f}"])

    def large(self) -> str:
        """Small, none, or so large that it lies apart, and is not told by a change of another
        column."""
        letter = self.draw.choice("abc")
        return self.draw.choice(["null", f"'{letter}'", f"repeat('{letter}', 9000)"])

    def moment(self) -> str:
        return self.draw.choice(
            ["null", f"timestamptz '2026-01-01 00:00:00+00' + interval '{self.draw.randrange(10**9)} milliseconds'"]
        )

    def change_columns(self, step: str, number: int) -> list[str]:
        """Statements that change the columns; where stored rows change with them, each row is told
        again."""
        if step == "add":
            self.columns.append(f"extra{number}")
            return [
                f"alter table orders add column extra{number} bigint",
                f"update orders set extra{number} = id where id % 2 = 0",
            ]
        if step == "widen":
            return [
                "alter table orders alter column amount type numeric(14,2)",
                "alter table orders alter column pieces type bigint",
            ]
        found = [name for name in self.columns if name.startswith("extra")]
        if not found:
            return []
        self.columns.remove(found[0])
        if step == "drop":
            return [f"alter table orders drop column {found[0]}"]
        self.columns.append(f"extra{number}")
        return [
            f"alter table orders rename column {found[0]} to extra{number}",
            "update orders set pieces = coalesce(pieces, 0) + 1",
        ]


def in_database(database: Server, columns: list[str]) -> dict[int, tuple[Any, ...]]:
    names = ", ".join("amount::text" if name == "amount" else name for name in columns)
    with dbapi.connect(database.uri) as connection, connection.cursor() as cursor:
        cursor.execute(f"select {names} from orders")
        return {row[0]: tuple(row) for row in cursor.fetchall()}


def in_table(feed: Feed, columns: list[str]) -> dict[int, tuple[Any, ...]]:
    rows = feed.rows(*columns)
    return {row["id"]: tuple(_text(row[name]) if name == "amount" else row[name] for name in columns) for row in rows}


def _text(amount: Any) -> str | None:
    return None if amount is None else f"{amount:.2f}"


def has_last(feed: Feed) -> bool:
    try:
        return feed.open().scan(filter=f"id = {LAST}").to_arrow().num_rows == 1
    except (HudiError, FileNotFoundError):
        return False


def end(driver: subprocess.Popen[bytes]) -> None:
    driver.kill()
    driver.wait()


@pytest.mark.parametrize("identity", ["default", "full"])
def test_after_random_transactions_the_table_is_what_the_database_is(
    identity: str, broker: Broker, database: Server, tmp_path: Path, figure: Callable[[int, str], None]
) -> None:
    shop = Shop(f"live database {identity}", tells_whole_rows=identity == "full")
    database.execute(f"alter table orders replica identity {identity}")
    database.execute(*(shop.transaction() for _ in range(20)))
    feed = Feed(tmp_path, broker, f"{identity}.public.orders", {"orderingFields": ["_event_lsn"]})
    kafka = {"brokers": broker.address, "topics": [feed.topic]}
    source = {
        "type": "Debezium",
        "format": "json",
        "kafka": kafka,
        "columns": {"amount": "decimal(20,2)", "pieces": "bigint"},
    }
    work = {"mode": "Continuous", "commitIntervalSeconds": 0.5, "source": source}
    total = scaled(200)
    with following(broker, database, "public.orders", **{"topic.prefix": identity}):
        drivers: list[subprocess.Popen[bytes]] = []
        for number in range(8):
            database.execute(
                *shop.change_columns(STEPS[number % 4], number), *(shop.transaction() for _ in range(total // 8))
            )
            for driver in drivers[-1:]:
                assert driver.poll() is None, feed.log()
                end(driver)
            drivers.append(feed.start(work))
            time.sleep(shop.draw.uniform(1, 4))
        database.execute(f"insert into orders (id, customer) values ({LAST}, 'last')")
        until = time.monotonic() + SECONDS_MAX
        while not has_last(feed):
            assert drivers[-1].poll() is None, feed.log()
            assert time.monotonic() < until, feed.log()
            time.sleep(0.5)
        end(drivers[-1])
        expected, found = in_database(database, shop.columns), in_table(feed, shop.columns)
    assert found.keys() == expected.keys()
    assert {key: row for key, row in found.items() if row != expected[key]} == {}
    figure(total, "random transactions of a live database")
