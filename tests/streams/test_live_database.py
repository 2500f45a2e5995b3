"""A table that follows a live database through Debezium: after random transactions, changes of
columns among them, it is what the database is.

Drivers are killed meanwhile. The recorded events of the other tests tell single cases; here nobody
chose them.
"""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hudi_table.errors import HudiError
from tests.support.connect import BINLOG, following
from tests.support.feeds import Feed
from tests.support.kafka import Broker
from tests.support.mariadb import running_mariadb
from tests.support.postgres import running_postgres
from tests.support.scale import scaled
from tests.support.shops import LAST, STEPS, MariaShop, PostgresShop, Shop

SECONDS_MAX = 240.0
KINDS = ["default", "full", "mariadb"]
SHORT = [("default", "CopyOnWrite"), ("mariadb", "MergeOnRead")]
"""What runs of all tests have of these, too."""
CASES = [
    pytest.param(kind, table, marks=() if (kind, table) in SHORT else pytest.mark.at_scale(2))
    for kind in KINDS
    for table in ("CopyOnWrite", "MergeOnRead")
]


@contextlib.contextmanager
def shop_of(kind: str, seed: str) -> Iterator[Shop]:
    """A shop in a database of its own."""
    shop: Shop
    if kind == "mariadb":
        with running_mariadb(*BINLOG) as maria:
            shop = MariaShop(seed, maria)
            shop.open()
            yield shop
        return
    with running_postgres("wal_level=logical") as server:
        shop = PostgresShop(seed, server)
        shop.open()
        shop.execute(f"alter table orders replica identity {kind}")
        yield shop


def work_of(shop: Shop, feed: Feed) -> dict[str, Any]:
    """Of a driver that follows it."""
    kafka = {"brokers": feed.broker.address, "topics": [feed.topic]}
    source = {"type": "Debezium", "format": "json", "kafka": kafka, "columns": shop.TYPES}
    return {"mode": "Continuous", "commitIntervalSeconds": 0.5, "source": source}


def has_last(feed: Feed) -> bool:
    try:
        return feed.open().scan(filter=f"id = {LAST}").to_arrow().num_rows == 1
    except (HudiError, FileNotFoundError):
        return False


def end(driver: subprocess.Popen[bytes]) -> None:
    driver.kill()
    driver.wait()


def wait_for_last(feed: Feed, driver: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + SECONDS_MAX
    while not has_last(feed):
        assert driver.poll() is None, feed.log()
        assert time.monotonic() < until, feed.log()
        time.sleep(0.5)


def assert_same(shop: Shop, feed: Feed) -> None:
    """The table is what the database is."""
    expected, found = shop.rows(), shop.stored(feed)
    left, missing = sorted(found.keys() - expected.keys()), sorted(expected.keys() - found.keys())
    assert (left, missing) == ([], []), "rows are left that the database has not, and others are missing"
    assert {key: row for key, row in found.items() if row != expected[key]} == {}


@pytest.mark.parametrize(("kind", "table"), CASES)
def test_after_random_transactions_the_table_is_what_the_database_is(
    kind: str, table: str, broker: Broker, tmp_path: Path, figure: Callable[[int, str], None]
) -> None:
    """`kind`: what PostgreSQL tells of rows before a change, or another database."""
    prefix = f"{kind}-{table.lower()}"
    with shop_of(kind, f"live database {prefix}") as shop:
        shop.trade(20)
        topic = f"{prefix}.{shop.SCHEMA}.orders"
        feed = Feed(tmp_path, broker, topic, {"orderingFields": [shop.ORDER], "type": table})
        work, total, rounds = work_of(shop, feed), scaled(200), scaled(8, quick=len(STEPS))
        with following(broker, shop.database, f"{shop.SCHEMA}.orders", **{"topic.prefix": prefix}):
            drivers: list[subprocess.Popen[bytes]] = []
            for number in range(rounds):
                shop.change_columns(STEPS[number % 4], number)
                shop.trade(total // rounds)
                for driver in drivers[-1:]:
                    assert driver.poll() is None, feed.log()
                    end(driver)
                drivers.append(feed.start(work))
                time.sleep(shop.draw.uniform(1, 4))
            shop.last()
            wait_for_last(feed, drivers[-1])
            end(drivers[-1])
            assert_same(shop, feed)
    figure(total, "random transactions of a live database")
