"""A password that is changed under an ingest, at the source first and in the Secret later: it goes
on by itself, tries little while the Secret is wrong, and says what is to be done."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hudi_operator.runtime.local import loop
from tests.support import postgres
from tests.support.feeds import row
from tests.support.kafka import PASSWORD, USER, Broker, running_broker
from tests.support.manifests import manifest
from tests.support.operated import Kept, Place

FOLLOWING: dict[str, Any] = {"mode": "Continuous", "commitInterval": "300ms"}
NEW_PASSWORD = "an-other-se-cret"


@pytest.fixture
def broker() -> Iterator[Broker]:
    with running_broker() as found:
        yield found


@pytest.fixture
def place(broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    # A driver that goes on keeps its table from being looked at for as long; the other one is to be seen sooner.
    monkeypatch.setattr(loop, "RUN_RECHECK_SECONDS", 1.0)
    return Place(tmp_path, broker, broker.topic())


def values(place: Place, password: str) -> dict[str, str]:
    return {
        "KAFKA_SASL_USERNAME": USER, "KAFKA_SASL_PASSWORD": password, "KAFKA_CA": place.broker.certificate.decode(),
    }  # fmt: skip


def secret(name: str, values: dict[str, str]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": values}


def secure(place: Place, mode: dict[str, Any]) -> dict[str, Any]:
    security = {"protocol": "SaslTls", "mechanism": "PLAIN"}
    with_secret = {"storage": {"credentialsSecretRef": {"name": "kafka"}}}
    return place.document(mode, with_secret, brokers=place.broker.secure_address, security=security)


@pytest.mark.parametrize("quiet", [False, True], ids=["that has committed", "that has not"])
def test_a_driver_goes_on_with_the_password_that_its_secret_has_later(place: Place, *, quiet: bool) -> None:
    beside = place.broker.topic()
    document = secure(place, FOLLOWING)
    plain = place.document(FOLLOWING)["spec"]["ingest"][0]
    plain |= {"name": "beside"}
    plain["source"]["kafka"]["topics"] = [beside]
    document["spec"]["ingest"].append(plain)
    place.broker.produce(place.topic, [row(i) for i in range(10)])
    if quiet:
        place.apply(secure(place, {"mode": "Once"}), secret("kafka", values(place, PASSWORD)))
        assert place.count() == 10
    before = len(place.attempts())

    def life() -> None:
        place.wait_for(lambda: len(place.attempts()) > before and len(place.attempts("beside")) == 1)
        place.wait_for(lambda: sum("it follows" in line for line in place.lines) == 2)
        place.wait_for(lambda: place.count() == 10)
        place.broker.rotate(NEW_PASSWORD)
        place.wait_for(
            lambda: place.runs()[0]["phase"] == "Failed" and "Secret kafka" in place.stalled().get("message", "")
        )
        place.broker.produce(beside, [row(i) for i in range(10, 20)])
        place.wait_for(lambda: place.count() == 20)
        said, tried = place.stalled(), len(place.attempts())
        assert (said["reason"], place.runs()[0]["reason"]) == ("AccessDenied", "AccessDenied")
        place.broker.produce(place.topic, [row(i) for i in range(20, 30)])
        place.change_secret("kafka", **values(place, NEW_PASSWORD))
        place.wait_for(lambda: place.count() == 30 and not place.stalled())
        assert len(place.attempts()) == tried + 1
        assert tried <= before + 2

    place.keep(life, document, secret("kafka", values(place, PASSWORD)))
    kept = [path.read_bytes() for path in (place.folder / "state").rglob("*") if path.is_file()]
    assert not [data for data in kept if PASSWORD.encode() in data or NEW_PASSWORD.encode() in data]


@pytest.fixture
def server() -> Iterator[postgres.Server]:
    with postgres.running_postgres() as found:
        yield found


def asked(kept: Kept, server: postgres.Server) -> tuple[dict[str, Any], dict[str, str]]:
    """A table that asks a database each second, and the values of its Secret."""
    url = f"postgresql://127.0.0.1:{server.port}/postgres"
    source = {"type": "Jdbc", "jdbc": {"url": url, "table": "orders", "every": "1s"}}
    table = manifest(
        "orders", location=f"file://{kept.location}", recordKey=["id"], index={"type": "Bucket", "buckets": 2},
        ingest=[{"name": "feed", "source": source}], storage={"credentialsSecretRef": {"name": "database"}},
    )  # fmt: skip
    return table, {"DATABASE_USERNAME": "reader", "DATABASE_PASSWORD": PASSWORD}


def test_an_ingest_from_a_database_whose_password_is_rotated_goes_on_with_the_new_one(
    server: postgres.Server, tmp_path: Path
) -> None:
    kept = Kept(tmp_path)
    table, known = asked(kept, server)
    server.execute(
        f"create user reader password '{PASSWORD}'", "create table orders (id int)", "insert into orders values (1)",
        "grant select on orders to reader",
    )  # fmt: skip

    def life() -> None:
        kept.wait_for(lambda: kept.count() == 1)
        server.execute(f"alter user reader password '{NEW_PASSWORD}'", "insert into orders values (2)")
        kept.wait_for(lambda: "it is tried again by itself at" in kept.stalled().get("message", ""))
        kept.change_secret("database", **{**known, "DATABASE_PASSWORD": NEW_PASSWORD})
        kept.wait_for(lambda: kept.count() == 2 and not kept.stalled())

    kept.keep(life, table, secret("database", known))


def test_a_password_that_stays_wrong_is_tried_ever_more_slowly(server: postgres.Server, tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    table, known = asked(kept, server)

    def life() -> None:
        kept.wait_for(lambda: len(kept.attempts()) == 3)
        time.sleep(5)
        assert len(kept.attempts()) == 3
        assert kept.stalled()["reason"] == "AccessDenied"

    kept.keep(life, table, secret("database", known))
    assert PASSWORD not in json.dumps(kept.stored()) + "".join(kept.lines)
