"""The life of a table on a real API server with everything in it that an operator may have to do: a
Secret that comes late, a foreign Job in the way, files that become rows, a service that is stopped,
changes of others meanwhile, and the end under each deletion policy.

The store is a real S3 protocol on loopback; the kubelet is played, and runs the real job.
"""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_operator.api.names import API_VERSION, PLURALS
from hudi_operator.kube.rest import Rest
from hudi_operator.manifests.attempts import attempt_name
from tests.support import kubelet
from tests.support.api_server import ApiServer
from tests.support.chart_operator import run_pod
from tests.support.manifests import ingest, manifest, spec
from tests.support.others import change_meanwhile
from tests.support.s3 import S3Server

SECRET = "s3"
POLICIES = ("Retain", "Unregister", "Purge")
SECONDS_MAX = 120.0
T = TypeVar("T")


def eventually(found: Callable[[], T | None], what: str) -> T:
    """With patience: many processes of one machine take part in a life."""
    return kubelet.eventually(found, what, SECONDS_MAX)


@dataclass
class TableLife:
    """Table `flights` of a namespace. `said` is all that its jobs printed."""

    server: ApiServer
    namespace: str
    store: S3Server
    folder: Path
    credentials: dict[str, str]
    asked: Callable[[str, str, str], bool]
    """Whether the operator has asked the API server for a verb on a resource by name."""
    said: list[str] = field(default_factory=list)

    def begins_without_its_secret(self) -> None:
        """The table is stalled, since the Secret is not there. A Job of the name that its first
        attempt will have is somebody else's."""
        self.lands(1)
        self.applies(manifest("flights", **self.spec()))
        eventually(lambda: "InvalidSpec" in self.reasons(), "the missing Secret is not told of")
        metadata = self.table()["metadata"]
        name = attempt_name("flights", metadata["uid"], "Ingest/feed", metadata["generation"], 1)
        self.foreign_job(name)
        self.makes_secret()
        self.annotates()
        eventually(lambda: self.asked("create", "jobs", name), "the first attempt is not started")
        done = self.server.kubectl("delete", "job", name, "-n", self.namespace)
        assert done.returncode == 0, done.stderr

    def takes_files(self) -> None:
        """Two files, one after the other, become rows."""
        self.annotates()
        self.pod_runs()
        eventually(lambda: self.records() == 5, "the first file is not taken")
        self.lands(2)
        self.annotates()
        self.pod_runs()
        eventually(lambda: self.records() == 10, "the second file is not taken")

    def meets_a_bad_file(self) -> None:
        """A file that is none of Parquet fails its job, until it is taken away."""
        key = f"{self.namespace}/landing/3.parquet"
        self.store.client().put_object(Bucket=self.store.bucket, Key=key, Body=b"no Parquet")
        self.annotates()
        eventually(
            lambda: self.condition("Stalled") == "True" or kubelet.waiting(self.server, self.namespace), "no look"
        )
        if self.condition("Stalled") != "True":
            self.pod_runs()
        eventually(lambda: self.condition("Stalled") == "True", "the bad file is not told of")
        self.store.client().delete_object(Bucket=self.store.bucket, Key=key)
        self.annotates()
        eventually(lambda: self.condition("Ready") == "True", "the table does not recover")

    def loses_its_secret_for_a_while(self) -> None:
        """The same trouble again is the same event again."""
        self.server.kubectl("delete", "secret", SECRET, "-n", self.namespace)
        self.annotates()
        eventually(lambda: self.condition("Ready") == "False", "the Secret is not missed")
        self.makes_secret()
        self.annotates()
        eventually(lambda: self.condition("Ready") == "True", "the Secret is not found again")

    def stops_a_service(self) -> None:
        """A cleaning whose pod never runs is stopped at its deadline."""
        self.applies(
            manifest("clean", "TableService", tableRef={"name": "flights"}, type="Cleaning", activeDeadline="2s")
        )
        eventually(lambda: "DeadlineExceeded" in self.reasons("clean"), "the run is not stopped")

    def runs_as(self, launcher: str, group: str) -> None:
        """A table whose ingest needs Spark is given to a Spark operator, which takes up nothing
        here. With the table the attempt is stopped, before the files are purged."""
        name = f"as-{launcher.lower()}"
        transformed = self.ingest(transform=[{"sql": "select * from source where hash(1) is not null"}])
        here = {
            "location": self.store.new_uri(), "spark": {"launcher": launcher}, "ingest": [transformed], "deletionPolicy": "Purge",
        }  # fmt: skip
        self.applies(manifest(name, **self.spec(**here)))
        listed = ("get", f"sparkapplications.{group}", "-n", self.namespace, "-o", "name")
        eventually(lambda: name in self.server.kubectl(*listed).stdout, f"{name} is not started")
        attempt = self.server.kubectl(*listed).stdout.strip().partition("/")[2]
        done = self.server.kubectl("delete", "ht", name, "-n", self.namespace, "--wait=false")
        assert done.returncode == 0, done.stderr
        eventually(lambda: self.asked("delete", "sparkapplications", attempt), f"{attempt} is not stopped")
        self.pod_runs(name)
        eventually(lambda: not self.server.has("ht", name, "-n", self.namespace), f"{name} stays")

    def others_change_it(self, kind: str, name: str) -> None:
        """While the operator writes its status, so that what it goes by is no longer what is
        there."""
        path = f"/apis/{API_VERSION}/namespaces/{self.namespace}/{PLURALS[kind]}/{name}"
        change_meanwhile(self.server, kind, path, {"metadata": {"annotations": {"example/by": "others"}}}, self.folder)
        eventually(lambda: self.asked("get", PLURALS[kind], name), "what was changed is not asked for")
        Rest(self.server.client()).merge(path, {"spec": {"suspend": False}})

    def ends(self) -> None:
        """It is deleted, and so is a table of each deletion policy. The one whose files go with it
        is held back until a job has found none."""
        for policy in POLICIES:
            name = policy.lower()
            self.applies(
                manifest(name, **self.spec(deletionPolicy=policy, ingest=None, location=f"{self.store.new_uri()}"))
            )
            eventually(lambda name=name: self.table(name).get("status", {}).get("conditions"), f"{name} is not seen")  # type: ignore[misc]
        for kind in ("tsvc", "ht"):
            done = self.server.kubectl("delete", kind, "--all", "-n", self.namespace, "--wait=false")
            assert done.returncode == 0, done.stderr
        self.pod_runs("purge")
        eventually(lambda: not self.server.get("ht", "-n", self.namespace)["items"], "a table is not let go of")
        eventually(lambda: not kubelet.pods(self.server, self.namespace), "pods stay behind")

    def spec(self, **changes: Any) -> dict[str, Any]:
        """What all of its tables are."""
        here: dict[str, Any] = {
            "location": f"s3://{self.store.bucket}/{self.namespace}/lake",
            "storage": {
                "endpoint": self.store.endpoint, "region": "us-east-1", "credentialsSecretRef": {"name": SECRET},
            },
            "spark": {"launcher": "Job"},
            "ingest": [self.ingest()],
        }  # fmt: skip
        return spec(**here | changes)

    def ingest(self, **changes: Any) -> dict[str, Any]:
        return ingest(source={"type": "Files", "path": self.landing, "format": "parquet"}, **changes)

    @property
    def landing(self) -> str:
        return f"s3://{self.store.bucket}/{self.namespace}/landing/"

    def lands(self, number: int) -> None:
        rows = pa.table({"id": [f"k{number}-{i}" for i in range(5)], "ts": pa.array([number] * 5, pa.int64())})
        written = io.BytesIO()
        pq.write_table(rows, written)
        key = f"{self.namespace}/landing/{number}.parquet"
        self.store.client().put_object(Bucket=self.store.bucket, Key=key, Body=written.getvalue())

    def applies(self, document: dict[str, Any]) -> None:
        metadata = {**document["metadata"], "namespace": self.namespace}
        self.server.apply({**document, "metadata": metadata})

    def makes_secret(self) -> None:
        metadata = {"name": SECRET, "namespace": self.namespace}
        self.server.apply({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": self.credentials})

    def foreign_job(self, name: str) -> None:
        pod = {"restartPolicy": "Never", "containers": [{"name": "one", "image": "registry.example/other:1"}]}
        body = {
            "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "namespace": self.namespace},
            "spec": {"suspend": True, "template": {"spec": pod}},
        }  # fmt: skip
        self.server.apply(body)

    def annotates(self) -> None:
        """A change that nobody reads, so that it is looked at now."""
        path = f"/apis/{API_VERSION}/namespaces/{self.namespace}/{PLURALS['HudiTable']}/flights"
        body = {"metadata": {"annotations": {"example/touched": str(time.monotonic())}}}
        self.server.done("PATCH", path, body, kubelet.MERGE)

    def pod_runs(self, table: str = "flights") -> None:
        """A pod of this table, whatever else waits."""

        def waiting() -> list[dict[str, Any]]:
            found = kubelet.waiting(self.server, self.namespace)
            return [pod for pod in found if pod["metadata"]["name"].startswith(f"{table}-")]

        pods = eventually(waiting, f"no pod of {table} is started")
        self.said.append(run_pod(self.server, pods[0], self.folder / pods[0]["metadata"]["name"]))

    def table(self, name: str = "flights") -> dict[str, Any]:
        return self.server.get("ht", name, "-n", self.namespace)

    def records(self) -> int | None:
        found: int | None = (self.table().get("status", {}).get("data") or {}).get("records")
        return found

    def condition(self, kind: str) -> str:
        found = self.table().get("status", {}).get("conditions", ())
        return next((each["status"] for each in found if each["type"] == kind), "")

    def reasons(self, name: str | None = None) -> set[str]:
        """Of all events, or of those of one resource."""
        found = self.server.get("events.events.k8s.io", "-n", self.namespace)["items"]
        return {each["reason"] for each in found if name in (None, each["regarding"]["name"])}
