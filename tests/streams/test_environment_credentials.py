"""Credentials in the environment of the operator: of use on its user's own machine, and in a
cluster sent to nobody's brokers."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from hudi_operator.api.resources import desired_set, desired_table
from hudi_operator.runtime.observe import Observer
from hudi_operator.runtime.sets.keys import read_keys
from hudi_operator.runtime.sets.reconciler import list_topics
from hudi_table.errors import HudiError, InvalidRequestError
from hudi_table.table.store.clock import SystemClock
from tests.support.feeds import row
from tests.support.kafka import PASSWORD, USER, Broker
from tests.support.manifests import stored
from tests.support.operated import Place
from tests.support.set_manifests import SOURCE, set_spec

NEEDS = "needs KAFKA_SASL_USERNAME and KAFKA_SASL_PASSWORD in the Secret"


@pytest.fixture
def place(broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A topic that holds a row, and a process whose environment has what its brokers ask for."""
    found = Place(tmp_path, broker, broker.topic())
    broker.produce(found.topic, [row(1)])
    monkeypatch.setenv("KAFKA_SASL_USERNAME", USER)
    monkeypatch.setenv("KAFKA_SASL_PASSWORD", PASSWORD)
    monkeypatch.setenv("KAFKA_CA", broker.certificate.decode())
    return found


def guarded(place: Place) -> dict[str, Any]:
    return {"brokers": place.broker.secure_address, "security": {"protocol": "SaslTls", "mechanism": "PLAIN"}}


def test_an_ingest_without_a_secret_is_not_given_the_operators_own_in_a_cluster(place: Place) -> None:
    spec = desired_table(stored(place.document(**guarded(place)))).spec
    assert spec is not None
    found = Observer(SystemClock()).source(spec, spec.ingest[0], {})
    assert found.extent is None
    assert found.problem is not None
    assert NEEDS in found.problem.message
    own = Observer(SystemClock(), environment=os.environ).source(spec, spec.ingest[0], {})
    assert own.extent is not None


def test_a_set_without_a_secret_is_not_given_the_operators_own(place: Place) -> None:
    kafka = {**guarded(place), "topics": ["{topic}"], "keyFormat": "json"}
    feed = {"name": "feed", "source": {**SOURCE, "kafka": kafka}}
    document = {
        "apiVersion": "hudi.lakeops.dev/v1alpha1", "kind": "HudiTableSet", "metadata": {"name": "shop"},
        "spec": set_spec({"ingest": [feed], "recordKey": ["{key}"]}, selector={"topicPattern": "t-.*"}),
    }  # fmt: skip
    spec = desired_set(stored(document)).spec
    assert spec is not None
    with pytest.raises(InvalidRequestError, match=NEEDS):
        list_topics(spec, {})
    (refused,) = read_keys(spec, {}, [place.topic]).values()
    assert isinstance(refused, HudiError)
    assert NEEDS in refused.message
    secret = {name: os.environ[name] for name in ("KAFKA_SASL_USERNAME", "KAFKA_SASL_PASSWORD", "KAFKA_CA")}
    assert place.topic in list_topics(spec, secret)


def test_on_its_users_own_machine_the_operator_takes_the_credentials_of_its_environment(place: Place) -> None:
    place.apply(place.document(**guarded(place)))
    assert place.count() == 1, place.lines
