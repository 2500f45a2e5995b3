"""Whatever somebody puts into a HudiTable, a HudiTableSet, a TableService or a Secret: every
resource that the API server takes says what becomes of it, no worker dies, nothing is a fault of
the operator, and the next one's table is looked after as ever.

The operator is the real process; its store is a server that answers, and so are its brokers.
Mutations are drawn from a seed that a failure names.
"""

from __future__ import annotations

import base64
import copy
import os
import random
import re
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest

from hudi_operator.api.names import API_VERSION
from hudi_operator.manifests.jobs import CREDENTIAL_VARIABLES
from tests.support.api_server import ApiServer
from tests.support.kafka import running_broker
from tests.support.kubelet import eventually
from tests.support.operator_process import started
from tests.support.s3 import S3Server, running_s3
from tests.support.scale import scaled

MUTATIONS, BATCH = 60, 60
SETS_EVERY, SERVICES_EVERY = 6, 3
TOPICS = ("orders", "shop.public.users")
PART = int(os.environ.get("HUDI_MUTATIONS_PART", "1"))
SERVED_SECONDS = 10.0
CONTROLS = "".join(map(chr, [*range(0x20), 0x7F, 0x85, 0x2028, 0x202E, 0xFEFF]))
TEXTS = [
    "",
    " ",
    "\n",
    "\x00",
    "a\x00b",
    CONTROLS,
    "trailing\n",
    "\r\nHost: evil",
    "ключ",
    "💥" * 50,
    "\u202egnp.exe",
    "ﬁ²",
    "²",
    "٣",
    "$(rm -rf /)",
    "`id`",
    "${HOME}",
    "%(x)s %s %n",
    "{{ .Values.x }}",
    "{0.__class__}",
    "'; drop table x; --",
    "../../etc/passwd",
    "..",
    "/",
    "file:///etc",
    "memory:",
    "s3://",
    "s3://bucket",
    "s3://bucket/%2e%2e/x",
    "http://[::1",
    "http://user:pass@127.0.0.1:1/",
    "x" * 300,
    "x" * 70_000,
    "1e999",
    "-1",
    "NaN",
    "null",
    "true",
    "9" * 400,
]
VALUES: list[Any] = [
    None, True, 0, -1, 2**31, 2**53, 10**18, 1.5, 1e300, [], {}, [[]], [None], {"": ""}, {"a": {"b": []}}, ["a"] * 300,
]  # fmt: skip
OPTIONS = [
    "hoodie.parquet.max.file.size",
    "hoodie.clean.commits.retained",
    "hoodie.keep.min.commits",
    "hoodie.index.type",
    "hoodie.nothing",
    "",
    "hoodie.x\n",
]


def service(name: str, table: str) -> dict[str, Any]:
    spec = {"tableRef": {"name": table}, "type": "Cleaning", "schedule": "0 3 * * *", "timeZone": "Europe/Berlin"}
    return {"apiVersion": API_VERSION, "kind": "TableService", "metadata": {"name": name}, "spec": spec}


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all that a document holds."""
    for key, below in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield (*path, key)
        yield from places(below, (*path, key))


@dataclass
class Mutator:
    """Draws resources that are wrong in one to three places."""

    draw: random.Random
    store: S3Server
    brokers: str

    def table(self, name: str) -> dict[str, Any]:
        spec: dict[str, Any] = {
            "location": self.store.new_uri(),
            "recordKey": ["id"],
            "orderingFields": ["ts"],
            "mergeMode": "EventTime",
            "partitionBy": [{"field": "day"}],
            "index": {"type": "Bucket", "buckets": 4},
            "storage": {
                "endpoint": self.store.endpoint,
                "region": "us-east-1",
                "credentialsSecretRef": {"name": f"{name}-secret"},
            },
            "ingest": [
                {
                    "name": "feed",
                    "operation": "Upsert",
                    "source": {"type": "Files", "path": f"s3://{self.store.bucket}/landing/", "format": "csv"},
                    "transform": [{"sql": "select * from source"}],
                }
            ],
            "options": {self.draw.choice(OPTIONS): self.text()} if self.draw.random() < 0.3 else {},
            "maintenance": {"cleaning": {"mode": "Auto", "keepCommits": 10}, "archiving": {"minCommits": 20}},
            "spark": {"driver": {"memory": "1Gi"}, "executor": {"instances": 0}, "conf": {"spark.ui.enabled": "false"}},
        }
        document = {"apiVersion": API_VERSION, "kind": "HudiTable", "metadata": {"name": name}, "spec": spec}
        return self.mutated(document) if self.draw.random() < 0.8 else document

    def set(self, name: str) -> dict[str, Any]:
        source = {
            "type": "Kafka",
            "format": "json",
            "kafka": {"brokers": self.brokers, "topics": ["{topic}"], "keyFormat": "json"},
        }
        template = {
            "name": "{set}-{table}",
            "labels": {"example/of": "{table}"},
            "spec": {
                "location": f"{self.store.new_uri()}/{{topic}}",
                "recordKey": [self.draw.choice(["id", "{key}"])],
                "storage": {"endpoint": self.store.endpoint, "region": "us-east-1"},
                "ingest": [{"name": "feed", "source": source}],
            },
        }
        overrides = [{"topic": "orders", "name": "{topic}-of-{set}", "spec": {"files": {"targetSize": "60Mi"}}}]
        spec = {"selector": {"topicPattern": ".*"}, "template": template, "overrides": overrides, "pruneAfter": "1h"}
        document = {"apiVersion": API_VERSION, "kind": "HudiTableSet", "metadata": {"name": name}, "spec": spec}
        return self.mutated(document) if self.draw.random() < 0.9 else document

    def service(self, name: str) -> dict[str, Any]:
        return self.mutated(service(name, self.draw.choice([f"{name}-table", "none", "good"])))

    def mutated(self, document: dict[str, Any]) -> dict[str, Any]:
        found = copy.deepcopy(document)
        for _ in range(self.draw.randint(1, 3)):
            *above, last = self.draw.choice(list(places(found["spec"])))
            holder = found["spec"]
            for key in above:
                holder = holder[key]
            if self.draw.random() < 0.1:
                del holder[last]
            elif self.draw.random() < 0.1 and isinstance(holder, dict):
                holder[self.text()[:200]] = holder.pop(last)
            else:
                holder[last] = self.text() if self.draw.random() < 0.8 else copy.deepcopy(self.draw.choice(VALUES))
        if self.draw.random() < 0.1:
            found["metadata"]["annotations"] = {"example/a": self.text()[:1000]}
        return found

    def text(self) -> str:
        text = self.draw.choice(TEXTS)
        return text if self.draw.random() < 0.8 else f"a{text}{self.draw.choice(TEXTS)}"[:70_000]

    def secret(self, name: str) -> dict[str, Any] | None:
        if self.draw.random() < 0.1:
            return None
        data = {}
        for variable in self.draw.sample(CREDENTIAL_VARIABLES, k=self.draw.randint(1, 3)):
            raw = (
                self.text().encode()
                if self.draw.random() < 0.7
                else self.draw.randbytes(self.draw.choice((0, 9, 4096)))
            )
            data[variable] = base64.b64encode(raw).decode()
        return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": data}


@dataclass
class Running:
    """The operator, and what its probes and its log say."""

    log: Path
    port: int

    def get(self, path: str) -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=30) as answer:
            return str(answer.read().decode())

    def said(self) -> str:
        return self.log.read_text()


@contextmanager
def operating(server: ApiServer, namespace: str, log: Path) -> Iterator[Running]:
    process = started(server, namespace, log)
    try:
        found = eventually(
            lambda: re.search(r"probes and metrics on port (\d+)", log.read_text() if log.exists() else ""),
            "it does not start",
        )
        yield Running(log, int(found[1]))
        assert process.poll() is None, "the operator has ended"
    finally:
        process.kill()
        process.wait()


def unsettled(server: ApiServer, namespace: str, plural: str, names: set[str]) -> dict[str, Any]:
    """Resources that have not said what becomes of them as they are now."""
    items = server.done("GET", f"/apis/{API_VERSION}/namespaces/{namespace}/{plural}")["items"]
    found = {}
    for item in items:
        if item["metadata"]["name"] not in names:
            continue
        conditions = {each["type"]: each for each in item.get("status", {}).get("conditions", ())}
        ready = conditions.get("Ready")
        if ready is None or ready.get("observedGeneration") != item["metadata"]["generation"] or not ready["message"]:
            found[item["metadata"]["name"]] = item["spec"]
    return found


@pytest.mark.timeout(900)
def test_no_resource_and_no_secret_is_a_fault_of_the_operator_or_costs_another_one_its_looks(
    server: ApiServer, namespace: str, tmp_path: Path
) -> None:
    seed = PART
    with (
        running_s3() as store,
        running_broker() as broker,
        operating(server, namespace, tmp_path / "log") as running,
    ):
        for topic in TOPICS:
            broker.topic(topic, 1)
        broker.produce("orders", [(b'{"id": 1}', b"{}")])
        mutator = Mutator(random.Random(seed), store, broker.address)
        where = f"/apis/{API_VERSION}/namespaces/{namespace}"
        refused = stored = 0
        left = scaled(MUTATIONS)
        while left > 0:
            names: dict[str, set[str]] = {"huditablesets": set(), "huditables": set(), "tableservices": set()}
            for number in range(min(BATCH, left)):
                name = f"t{left}-{number}"
                secret = mutator.secret(f"{name}-secret")
                if secret is not None:
                    server.call("POST", f"/api/v1/namespaces/{namespace}/secrets", secret)
                for plural, document in (
                    ("huditables", mutator.table(name)),
                    *((("tableservices", mutator.service(name)),) if number % SERVICES_EVERY == 0 else ()),
                    *((("huditablesets", mutator.set(name)),) if number % SETS_EVERY == 0 else ()),
                ):
                    code, _ = server.call("POST", f"{where}/{plural}", document)
                    names[plural] |= {name} if code == HTTPStatus.CREATED else set()
                    refused += code != HTTPStatus.CREATED
                    stored += code == HTTPStatus.CREATED
            began = time.monotonic()
            server.apply(good(namespace, store, f"good-{left}"))
            eventually(lambda: not unsettled(server, namespace, "huditables", {f"good-{left}"}), "a good one waits")  # noqa: B023
            waited = time.monotonic() - began
            assert waited < SERVED_SECONDS, f"a good one waited for {waited:.1f} s (seed {seed})"
            for plural, them in names.items():
                eventually(
                    lambda: not unsettled(server, namespace, plural, them),  # noqa: B023
                    f"no condition (seed {seed}): {plural}",
                    120,
                )
            assert "Traceback" not in running.said(), f"seed {seed}:\n{running.said()[-20_000:]}"
            assert "[+] workers: 4 of 4" in running.get("/healthz")
            for plural in names:  # sets first: they make their tables again
                server.done("DELETE", f"{where}/{plural}")
            server.done("DELETE", f"/api/v1/namespaces/{namespace}/secrets")
            left -= BATCH
        assert stored > refused / 5 > 0, (stored, refused)
        assert 'error="Invariant"' not in running.get("/metrics")


def good(namespace: str, store: S3Server, name: str) -> dict[str, Any]:
    spec = {
        "location": store.new_uri(),
        "recordKey": ["id"],
        "storage": {"endpoint": store.endpoint, "region": "us-east-1"},
    }
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": API_VERSION, "kind": "HudiTable", "metadata": metadata, "spec": spec}
