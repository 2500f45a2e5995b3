"""A Kafka broker in the cluster. Its clients run in its own pod: what a broker says of itself is an
address that pods alone can reach."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from e2e.cluster import by_hand, kind
from e2e.support.kube import Kube
from e2e.support.operator import ROOT, SPARK_IMAGE
from scripts.build_images import find_tool

IMAGE: Final = "localhost/hudi-e2e-broker:dev"
ADDRESS: Final = "broker.storage.svc:9092"
FOLDER: Final = ROOT / "e2e" / "broker"
_CLIENT = """
import json, sys
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
asked = json.load(sys.stdin)
where = {"bootstrap.servers": "localhost:9092"}
admin = AdminClient(where)
for name in asked.get("make", ()):
    admin.create_topics([NewTopic(name, 2, 1)])[name].result(60)
producer = Producer(where)
for topic, values in asked.get("send", {}).items():
    for value in values:
        producer.produce(topic, json.dumps(value), str(value["id"]))
sys.exit(producer.flush(60))
"""


def provide() -> None:
    """Fetch its jars, build its image of that of the jobs, with docker, podman or buildah, and give
    it to the cluster. One of E2E_KUBECONFIG has to find the image by itself."""
    if os.environ.get("E2E_KUBECONFIG"):
        return
    subprocess.run(["make", "setup-kafka"], cwd=ROOT, check=True)
    tool = find_tool()
    command = {
        "docker": ["docker", "build"],
        "podman": ["podman", "build"],
        "buildah": ["buildah", "bud", "--quiet", "--layers", "--isolation", "chroot"],
    }[tool]
    arguments = ["--build-arg", f"SPARK={SPARK_IMAGE}", "--file", str(FOLDER / "Dockerfile"), "--tag", IMAGE]
    subprocess.run([*command, *arguments, str(ROOT / ".cache" / "kafka")], check=True)
    (kind if kind.is_chosen() else by_hand).load([IMAGE])


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

    def _done(self, **asked: Any) -> None:
        command = ("exec", "-i", "-n", "storage", "deployment/broker", "--", "/opt/hudi/bin/python", "-c", _CLIENT)
        self.kube.need(*command, given=json.dumps(asked))
