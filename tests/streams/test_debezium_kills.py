"""Drivers, brokers and connectors are killed at random while a live database changes: in the end
the table is what the database is."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.streams.test_live_database import assert_same, end, shop_of, wait_for_last, work_of
from tests.support.connect import following
from tests.support.feeds import Feed
from tests.support.kafka import Broker, running_broker
from tests.support.scale import scaled

pytestmark = pytest.mark.at_scale(2)
KINDS = ["default", "mariadb"]
"""PostgreSQL, which tells no large value that a change leaves alone, and MariaDB."""


def seed_of(what: str) -> str:
    return f"{what} {os.environ.get('HUDI_STREAMS_PASS', '')}"


@pytest.mark.parametrize("kind", KINDS)
def test_a_driver_of_change_events_that_is_killed_at_random_loses_and_doubles_nothing(
    kind: str, broker: Broker, tmp_path: Path, figure: Callable[[int, str], None]
) -> None:
    draw, kills = random.Random(seed_of(f"driver {kind}")), scaled(4)
    with shop_of(kind, seed_of(f"driver {kind}")) as shop:
        shop.trade(20)
        prefix = f"kills-{kind}"
        feed = Feed(
            tmp_path, broker, f"{prefix}.{shop.SCHEMA}.orders", {"orderingFields": [shop.ORDER], "type": "MergeOnRead"}
        )
        work = work_of(shop, feed) | {"commitIntervalSeconds": 0.3}
        with following(broker, shop.database, f"{shop.SCHEMA}.orders", **{"topic.prefix": prefix}):
            for _ in range(kills):
                driver = feed.start(work)
                shop.trade(10)
                # From before its imports to amid a commit.
                time.sleep(draw.uniform(0.5, 2.5))
                end(driver)
            driver = feed.start(work)
            shop.last()
            wait_for_last(feed, driver)
            end(driver)
            assert_same(shop, feed)
    figure(kills, "kills of a continuous driver of change events")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("what", ["broker", "connector"])
def test_nothing_is_lost_or_doubled_where_what_fills_the_topic_is_killed_at_random(
    what: str, kind: str, tmp_path: Path, figure: Callable[[int, str], None]
) -> None:
    """A connector repeats what it had not noted: rows that were deleted come back, and go again."""
    draw, kills = random.Random(seed_of(f"{what} {kind}")), scaled(1)
    with running_broker() as broker, shop_of(kind, seed_of(f"{what} {kind}")) as shop:
        shop.trade(20)
        feed = Feed(tmp_path, broker, f"shop.{shop.SCHEMA}.orders", {"orderingFields": [shop.ORDER]})
        with following(broker, shop.database, f"{shop.SCHEMA}.orders") as connector:
            # A topic that is not there yet looks like one that is named wrongly.
            shop.trade(1)
            connector.settle()
            driver = feed.start(work_of(shop, feed))
            for _ in range(kills):
                shop.trade(10)
                time.sleep(draw.uniform(0.0, 2.0))
                killed = broker if what == "broker" else connector
                killed.kill()
                shop.trade(5)
                time.sleep(draw.uniform(0.0, 1.0))
                killed.start()
            shop.last()
            wait_for_last(feed, driver)
            end(driver)
            assert_same(shop, feed)
    figure(kills, f"kills of a {what} of change events")
