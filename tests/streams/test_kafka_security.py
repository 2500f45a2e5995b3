"""Each way in which brokers ask who is there: an ingest reads what they hold, the operator sees how
far it goes, and who is refused is told so without a secret."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hudi_operator.api.resources import desired_table
from hudi_operator.runtime.observe import Observer
from hudi_table.table.store.clock import SystemClock
from tests.support.feeds import Feed, row
from tests.support.kafka import PASSWORD, USER, Broker
from tests.support.manifests import stored
from tests.support.operated import Place

WRONG = "wrong-and-secret"
Secret = dict[str, str]
Listener = Callable[[Broker], str]


def password(_: Broker, text: str = PASSWORD) -> Secret:
    return {"KAFKA_SASL_USERNAME": USER, "KAFKA_SASL_PASSWORD": text}


def trusting(broker: Broker) -> Secret:
    return {"KAFKA_CA": broker.certificate.decode()}


def certified(broker: Broker) -> Secret:
    own = {"KAFKA_CLIENT_CERTIFICATE": broker.client_certificate, "KAFKA_CLIENT_KEY": broker.client_key}
    return {**trusting(broker), **{name: pem.decode() for name, pem in own.items()}}


def another(broker: Broker) -> Secret:
    """A certificate that the broker does not trust of a client: its own."""
    pair = (broker.folder / "keystore.pem").read_text()
    key, _, certificate = pair.partition("-----BEGIN CERTIFICATE-----")
    own = {"KAFKA_CLIENT_CERTIFICATE": f"-----BEGIN CERTIFICATE-----{certificate}", "KAFKA_CLIENT_KEY": key}
    return {**trusting(broker), **own}


SCRAM: tuple[str, Listener] = ("SaslPlaintext", lambda broker: broker.scram_address)
SCRAM_TLS: tuple[str, Listener] = ("SaslTls", lambda broker: broker.secure_address)
MUTUAL: tuple[str, Listener] = ("Tls", lambda broker: broker.mutual_address)
TAKEN: list[tuple[tuple[str, Listener], Callable[[Broker], Secret]]] = [
    (SCRAM, password),
    (SCRAM_TLS, lambda broker: {**password(broker), **trusting(broker)}),
    (MUTUAL, certified),
]
REFUSED: list[tuple[tuple[str, Listener], Callable[[Broker], Secret], str, str]] = [
    (SCRAM, lambda broker: password(broker, WRONG), "AccessDenied", "refuse"),
    (SCRAM_TLS, lambda broker: {**password(broker, WRONG), **trusting(broker)}, "AccessDenied", "refuse"),
    (SCRAM_TLS, password, "AccessDenied", "refuse"),
    (SCRAM, trusting, "InvalidRequest", "needs KAFKA_SASL_USERNAME and KAFKA_SASL_PASSWORD in the Secret"),
    (
        MUTUAL,
        trusting,
        "AccessDenied",
        "give them one that they trust, as KAFKA_CLIENT_CERTIFICATE and KAFKA_CLIENT_KEY",
    ),
    (MUTUAL, another, "AccessDenied", "refuse the client's certificate"),
]


@pytest.fixture(scope="module", autouse=True)
def scram(broker: Broker) -> None:
    broker.allow_scram()


def asked(how: tuple[str, Listener], broker: Broker) -> dict[str, Any]:
    """Without a mechanism: the one that is taken by default."""
    return {"brokers": how[1](broker), "security": {"protocol": how[0]}}


@pytest.mark.parametrize(("how", "secret"), TAKEN, ids=["SaslPlaintext", "SaslTls", "Tls"])
def test_messages_are_read_however_the_brokers_ask_who_is_there(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: tuple[str, Listener], secret: Any
) -> None:
    feed = Feed(tmp_path, broker, broker.topic())
    broker.produce(feed.topic, [row(i) for i in range(5)])
    for name, value in secret(broker).items():
        monkeypatch.setenv(name, value)
    done = feed.run(**asked(how, broker))
    assert (done.outcome, done.figures.get("recordsInserted")) == ("Succeeded", 5), done.message
    document = Place(tmp_path, broker, feed.topic).document(**asked(how, broker))
    spec = desired_table(stored(document)).spec
    assert spec is not None
    seen = Observer(SystemClock()).source(spec, spec.ingest[0], secret(broker))
    assert seen.extent is not None, seen.problem


@pytest.mark.parametrize(
    ("how", "secret", "error", "words"),
    REFUSED,
    ids=[
        "password",
        "password within TLS",
        "who is not trusted",
        "no password",
        "no certificate",
        "another certificate",
    ],
)
def test_who_is_refused_is_told_so_without_a_secret(
    broker: Broker,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    how: tuple[str, Listener],
    secret: Any,
    error: str,
    words: str,
) -> None:
    given = secret(broker)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    failed = Feed(tmp_path, broker, broker.topic()).run(**asked(how, broker))
    assert (failed.error_class, words in failed.message) == (error, True), failed.message
    assert not [name for name, value in given.items() if value in failed.message and name != "KAFKA_SASL_USERNAME"]
