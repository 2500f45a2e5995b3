"""One broker for all tests of streams, and one MariaDB; each makes topics and tables of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support import mariadb
from tests.support.feeds import end_drivers
from tests.support.kafka import Broker, running_broker


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker]:
    with running_broker() as found:
        yield found


@pytest.fixture(scope="session")
def guarded_broker() -> Iterator[Broker]:
    """One that asks who may do what."""
    with running_broker(guarded=True) as found:
        yield found


@pytest.fixture(scope="session")
def mariadb_server() -> Iterator[mariadb.Server]:
    """A server that thinks three hours behind UTC, and takes every value."""
    with mariadb.running_mariadb("--default-time-zone=-03:00", "--sql-mode=", "--max-allowed-packet=64M") as found:
        yield found


@pytest.fixture(autouse=True)
def no_driver_is_left() -> Iterator[None]:
    yield
    end_drivers()
