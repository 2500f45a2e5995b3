"""One broker for all tests of streams; each makes topics of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.kafka import Broker, running_broker


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker]:
    with running_broker() as found:
        yield found
