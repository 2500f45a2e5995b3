"""The election on a real API server: one leads, another takes over when nothing is heard of it, and
whoever is cut off stops first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from hudi_operator.kube.lease import Election
from hudi_operator.kube.rest import JSON, Document, Rest
from hudi_table.errors import UnavailableError
from tests.support.api_server import ApiServer
from tests.support.tables import TestClock


class CutRest(Rest):
    """Reaches the server unless it is cut off."""

    cut = False

    def _called(
        self, method: str, path: str, query: Mapping[str, str], body: Mapping[str, Any] | None = None, kind: str = JSON
    ) -> Document:
        if self.cut:
            raise UnavailableError("cut off")
        return super()._called(method, path, query, body, kind)


@pytest.fixture
def clock() -> TestClock:
    return TestClock()


def candidate(server: ApiServer, namespace: str, clock: TestClock, name: str, lease: str = "hudi-operator") -> Election:
    return Election(CutRest(server.client()), clock, namespace, lease, name)


def test_of_two_leases_each_has_its_leader(server: ApiServer, namespace: str, clock: TestClock) -> None:
    assert candidate(server, namespace, clock, "first", "blue").attempt()
    assert candidate(server, namespace, clock, "second", "green").attempt()
    assert not candidate(server, namespace, clock, "third", "green").attempt()


def test_one_of_two_leads_and_goes_on_leading(server: ApiServer, namespace: str, clock: TestClock) -> None:
    first, second = (candidate(server, namespace, clock, name) for name in ("first", "second"))
    assert first.attempt()
    for _ in range(10):
        assert not second.attempt()
        clock.advance(first.pause_seconds)
        assert first.attempt()
    lease = server.get("lease", "hudi-operator", "-n", namespace)["spec"]
    assert (lease["holderIdentity"], lease["leaseTransitions"]) == ("first", 0)


def test_another_leads_when_the_first_is_not_heard_of_and_the_first_has_stopped_before(
    server: ApiServer, namespace: str, clock: TestClock
) -> None:
    first, second = (candidate(server, namespace, clock, name) for name in ("first", "second"))
    assert first.attempt()
    assert not second.attempt()
    assert isinstance(first.rest, CutRest)
    first.rest.cut = True
    stopped = led = 0.0
    for second_passed in range(1, 31):
        clock.advance(1)
        if not stopped and not first.attempt():
            stopped = second_passed
        if not led and second.attempt():
            led = second_passed
    assert 0 < stopped < led <= 20
    first.rest.cut = False
    assert not first.attempt(), "the old one leads beside the new one"
    assert server.get("lease", "hudi-operator", "-n", namespace)["spec"]["leaseTransitions"] == 1


def test_one_that_is_started_anew_under_its_name_leads_at_once(
    server: ApiServer, namespace: str, clock: TestClock
) -> None:
    dead, other, anew = (candidate(server, namespace, clock, name) for name in ("first", "second", "first"))
    assert dead.attempt()
    assert not other.attempt()
    assert anew.attempt()
    assert server.get("lease", "hudi-operator", "-n", namespace)["spec"]["leaseTransitions"] == 0


def test_one_that_ends_well_lets_another_begin_at_once(server: ApiServer, namespace: str, clock: TestClock) -> None:
    first, second = (candidate(server, namespace, clock, name) for name in ("first", "second"))
    assert first.attempt()
    assert not second.attempt()
    second.release()
    assert not second.attempt(), "only the holder can release"
    first.release()
    assert second.attempt()
    assert not first.attempt()
