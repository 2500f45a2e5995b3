"""What a run leaves behind holds no secret: not the passwords of a registry and of the brokers, and
not the key of the store; whether they are refused or taken."""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hudi_table.api import open_table
from tests.support.kafka import PASSWORD, USER, Broker
from tests.support.operated import Place, condition
from tests.support.registry import guarded_registry
from tests.support.s3 import S3Server, running_s3

pytestmark = pytest.mark.s3
REGISTRY_PASSWORD, WRONG = "registry-canary-51b7", "wrong-canary-9e02"
STORE = {"AWS_ACCESS_KEY_ID": "test-access", "AWS_SECRET_ACCESS_KEY": "store-canary-77aa"}
SECRETS = [each.encode() for each in (PASSWORD, REGISTRY_PASSWORD, WRONG, STORE["AWS_SECRET_ACCESS_KEY"])]
SCHEMA = {"type": "object", "properties": {"id": {"type": "string"}, "n": {"type": "integer"}}}


@pytest.fixture(scope="module")
def store() -> Iterator[S3Server]:
    with running_s3() as found:
        yield found


def message(text: str) -> bytes:
    return b"\0\0\0\0\x07" + text.encode()


def children(of: int) -> set[int]:
    """The processes below one."""
    parents: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            parents[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
    found, more = set[int](), {of}
    while more:
        more = {pid for pid, parent in parents.items() if parent in more} - found
        found |= more
    return found


@contextlib.contextmanager
def watched_arguments() -> Iterator[set[bytes]]:
    """What stands in the arguments of the processes that this one starts meanwhile."""
    seen: set[bytes] = set()
    over = threading.Event()

    def look() -> None:
        while not over.is_set():
            for pid in children(os.getpid()):
                with contextlib.suppress(OSError):
                    seen.add(Path(f"/proc/{pid}/cmdline").read_bytes())
            time.sleep(0.05)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield seen
    finally:
        over.set()
        thread.join()


def left_by(place: Place, store: S3Server) -> Iterator[tuple[str, bytes]]:
    """(where, what) of all that the runs have left: state with the status, events, specs, results
    and logs of attempts; every object of the table, the commits among them."""
    for path in place.folder.rglob("*"):
        if path.is_file() and path.name != "manifest.yaml":
            yield str(path), path.read_bytes()
    yield "events", "\n".join(place.lines).encode()
    client = store.client()
    names: list[str] = store.keys()
    for key in names:
        yield key, client.get_object(Bucket=store.bucket, Key=key)["Body"].read()


@pytest.mark.parametrize("engine", ["Local", pytest.param("Spark", marks=[pytest.mark.spark, pytest.mark.at_scale(2)])])
def test_nothing_that_runs_leave_behind_and_no_argument_holds_a_secret(
    broker: Broker, store: S3Server, tmp_path: Path, capfd: pytest.CaptureFixture[str], engine: str
) -> None:
    place = Place(tmp_path, broker, broker.topic(partitions=1))
    location = f"{store.new_uri()}/orders"
    secret: dict[str, Any] = {
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys"},
        "stringData": {
            **STORE, "KAFKA_SASL_USERNAME": USER, "KAFKA_SASL_PASSWORD": WRONG, "KAFKA_CA": broker.certificate.decode(),
            "SCHEMA_REGISTRY_USERNAME": "reader", "SCHEMA_REGISTRY_PASSWORD": WRONG,
        },
    }  # fmt: skip
    schemas = {7: {"schemaType": "JSON", "schema": json.dumps(SCHEMA)}}
    with guarded_registry(schemas, "reader", REGISTRY_PASSWORD) as url, watched_arguments() as arguments:
        kafka: dict[str, Any] = {
            "brokers": broker.secure_address,
            "security": {"protocol": "SaslTls", "mechanism": "PLAIN"},
            "json": {"registry": url},
        }
        of = {
            "location": location,
            "storage": {
                "endpoint": store.endpoint,
                "region": "us-east-1",
                "credentialsSecretRef": {"name": "keys"},
            },
        }
        table = place.document({"engine": engine}, of, **kafka)
        broker.produce(place.topic, [message('{"id": "a", "n": 1}')])
        denied = condition(place.apply(table, secret), "Stalled")
        assert (denied["reason"], "brokers" in denied["message"]) == ("AccessDenied", True), place.lines
        secret["stringData"]["KAFKA_SASL_PASSWORD"] = PASSWORD
        denied = condition(place.apply(table, secret), "Stalled")
        assert (denied["reason"], "the schema registry at" in denied["message"]) == ("AccessDenied", True), place.lines
        secret["stringData"]["SCHEMA_REGISTRY_PASSWORD"] = REGISTRY_PASSWORD
        # A manifest that has changed is tried at once, a Secret when its turn comes.
        table = place.document({"engine": engine}, of, maxRows=1000, **kafka)
        assert condition(place.apply(table, secret), "Stalled") == {}, place.lines
        options = {"endpoint": store.endpoint, "region": "us-east-1", **{k.lower(): v for k, v in STORE.items()}}
        assert open_table(location, storage_options=options).scan(columns=["id", "n"]).to_arrow().to_pylist() == [{"id": "a", "n": 1}]  # fmt: skip
        broker.produce(place.topic, [message('{"id": "b", "n": "x"}')])
        assert condition(place.apply(table, secret), "Stalled")["reason"] == "InvalidData", place.lines
    left = dict(left_by(place, store))
    assert [name for name, text in left.items() if any(each in text for each in SECRETS)] == []
    # What is looked at is what there is: status, logs, specs, results, commits, and the arguments of jobs.
    for name in ("HudiTable.default.orders.json", "log.txt", "spec.json", "result.json", "commit"):
        assert any(each.endswith(name) for each in left), name
    assert any(b"hudi_spark.jobs" in each for each in arguments)
    assert [each for each in arguments if any(one in each for one in SECRETS)] == []
    said = "".join(capfd.readouterr()).encode()
    assert not any(each in said for each in SECRETS)
