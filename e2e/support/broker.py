"""A Kafka broker in the cluster. Its clients run in its own pod: what a broker says of itself is an
address that pods alone can reach."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from e2e.cluster import by_hand, kind
from e2e.support.kube import Kube, kubectl
from e2e.support.operator import ROOT, SPARK_IMAGE
from scripts.build_images import find_tool

IMAGE: Final = "localhost/hudi-e2e-broker:dev"
ADDRESS: Final = "broker.storage.svc:9092"
FOLDER: Final = ROOT / "e2e" / "broker"
AT_ONCE, PAUSE_SECONDS = 10, 0.25
"""Rows of a topic that is kept busy, and the pause behind them."""
_CLIENT = """
import json, sys
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
where = {"bootstrap.servers": "localhost:9092"}
admin = AdminClient(where)
producer = Producer({**where, "enable.idempotence": True})
for line in sys.stdin:
    asked = json.loads(line)
    for name in asked.get("make", ()):
        admin.create_topics([NewTopic(name, 2, 1)])[name].result(60)
    for topic, values in asked.get("send", {}).items():
        for value in values:
            producer.produce(topic, json.dumps(value), str(value["id"]))
    if producer.flush(120):
        sys.exit("not all messages were sent")
    print("done", flush=True)
"""
_RUN = ("exec", "-i", "-n", "storage", "deployment/broker", "--", "/opt/hudi/bin/python", "-c", _CLIENT)


def running_broker(kube: Kube) -> Broker:
    """It runs, from an image with the jars of `make setup-kafka`."""
    provide(IMAGE, "setup-kafka", ROOT / ".cache" / "kafka")
    kube.apply_file(FOLDER / "broker.yaml")
    kube.rollout("deployment/broker", "storage")
    return Broker(kube)


def provide(image: str, setup: str, jars: Path) -> None:
    """Fetch jars, build an image of that of the jobs with them, by docker, podman or buildah, and
    give it to the cluster. One of E2E_KUBECONFIG has to find the image by itself."""
    if os.environ.get("E2E_KUBECONFIG"):
        return
    subprocess.run(["make", setup], cwd=ROOT, check=True)
    build(image, FOLDER / "Dockerfile", jars, f"SPARK={SPARK_IMAGE}")


def build(image: str, file: Path, context: Path, *arguments: str) -> None:
    """Build an image of a Dockerfile and give it to the cluster."""
    tool = find_tool()
    command = {
        "docker": ["docker", "build"],
        "podman": ["podman", "build"],
        "buildah": ["buildah", "bud", "--quiet", "--layers", "--isolation", "chroot"],
    }[tool]
    told = [part for argument in arguments for part in ("--build-arg", argument)]
    subprocess.run([*command, *told, "--file", str(file), "--tag", image, str(context)], check=True)
    (kind if kind.is_chosen() else by_hand).load([image])


@dataclass(frozen=True, slots=True)
class Broker:
    """The broker that runs."""

    kube: Kube

    def make(self, *topics: str) -> None:
        """New topics of two partitions."""
        self._done(make=topics)

    def send(self, topic: str, rows: Iterable[dict[str, Any]]) -> None:
        """JSON messages, whose key is their `id`."""
        self._done(send={topic: list(rows)})

    @contextmanager
    def kept_busy(self, topic: str, row: Callable[[int], dict[str, Any]]) -> Iterator[Callable[[], int]]:
        """Send `row(0)`, `row(1)` and so on until the context ends, some a second; gives how many
        have arrived."""
        over, sent = threading.Event(), 0

        def work() -> None:
            nonlocal sent
            command = [kubectl(), f"--kubeconfig={self.kube.kubeconfig}", *_RUN]
            with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as client:
                assert client.stdin is not None
                assert client.stdout is not None
                while not over.wait(PAUSE_SECONDS):
                    asked = {"send": {topic: [row(number) for number in range(sent, sent + AT_ONCE)]}}
                    client.stdin.write(json.dumps(asked) + "\n")
                    client.stdin.flush()
                    assert client.stdout.readline() == "done\n"
                    sent += AT_ONCE

        with ThreadPoolExecutor(1) as pool:
            working = pool.submit(work)
            try:
                yield lambda: sent
            finally:
                over.set()
            working.result()

    def _done(self, **asked: Any) -> None:
        self.kube.need(*_RUN, given=json.dumps(asked))
