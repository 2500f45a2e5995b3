"""The ways in which an attempt can run, for tests that ask the same of all: each launches, is
played to an end, and is looked at.

What an attempt is to `do` (succeed, fail, die, sleep) is said when it is launched; a way of a
cluster does it when it is told to.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from hudi_operator.api.fields.spark import PodSize, SparkSpec
from hudi_operator.api.names import API_VERSION
from hudi_operator.api.resources import Identity, identity_of
from hudi_operator.api.status import RunStatus
from hudi_operator.kube.rest import Rest
from hudi_operator.launchers.base import Launcher
from hudi_operator.launchers.local import LocalLauncher
from hudi_operator.launchers.objects import Kind, ObjectLauncher
from hudi_operator.manifests.pod_parts import ATTEMPT
from hudi_operator.manifests.pods import PodSettings
from hudi_operator.plan.effects import Launch
from hudi_table.model.job.jobspec import JobResult, JobSpec
from tests.support import kubelet, spark_operators
from tests.support.api_server import ApiServer
from tests.support.manifests import manifest, spec
from tests.support.volumes import POLICIES

SETTINGS = PodSettings("registry.example/hudi-spark@sha256:" + "0" * 64, service_account="hudi-job", policies=POLICIES)
SECRET = {"AWS_SECRET_ACCESS_KEY": "very-secret-7f3a"}
STUB = "tests.support.stub_job"
RESULTS = {
    "succeed": (0, JobResult("", "Succeeded", instants=("20260101000000000",), figures={"seconds": 1.5}).to_json()),
    "fail": (64, JobResult("", "Failed", error_class="InvalidData", message="column 'id' is null").to_json()),
    "die": (76, "something broke\n"),
}


def wanted(do: str, number: int = 1, engine: str = "Spark", executors: int = 2) -> Launch:
    """An attempt, named by its number."""
    name = f"flights-{number}"
    run = RunStatus(name, "Ingest/feed", "Running", 1, number, batch="b", started=f"2026-01-01T00:00:{number:02}Z")
    work = JobSpec(
        name,
        {"name": "flights"},
        {"type": "Ingest", "do": do},
        {"credentials": list(SECRET)},
        engine,
        {"conf": {"spark.sql.shuffle.partitions": "4"}} if engine == "Spark" else {},
    )
    return Launch(
        run, work, "s3", SparkSpec(executor=PodSize(executors, 1, "2Gi"), conf=dict(work.spark.get("conf", {})))
    )


class Way(Protocol):
    """A launcher, and the world around it."""

    owner: Identity
    stranger: Identity

    def launcher(self) -> Launcher:
        """A launcher that has just started."""
        ...

    def wanted(self, do: str, number: int = 1) -> Launch:
        """An attempt of this way."""
        ...

    def finish(self, launch: Launch) -> None:
        """Let the attempt do what it is to do."""
        ...


@dataclass
class ClusterWay:
    """Attempts as objects of one kind on a real API server; the test plays the kubelet, and the
    Spark operator."""

    server: ApiServer
    kind: Kind
    owner: Identity
    stranger: Identity
    engine: str = "Spark"
    executors: int = 2

    @classmethod
    def of(cls, server: ApiServer, namespace: str, kind: Kind, engine: str, executors: int) -> ClusterWay:
        for name in (SETTINGS.service_account, SETTINGS.driver_account):
            account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}}
            server.done("POST", f"/api/v1/namespaces/{namespace}/serviceaccounts", account)
        owners = [_created(server, namespace, name) for name in ("flights", "stranger")]
        return cls(server, kind, owners[0], owners[1], engine, executors)

    @property
    def namespace(self) -> str:
        return self.owner.key.namespace

    @property
    def is_operated(self) -> bool:
        """Whether a Spark operator makes the driver."""
        return "sparkapplications" in self.kind.plural

    def launcher(self) -> ObjectLauncher:
        return ObjectLauncher(Rest(self.server.client()), SETTINGS, self.kind)

    def wanted(self, do: str, number: int = 1) -> Launch:
        return wanted(do, number, self.engine, self.executors)

    def objects(self) -> list[dict[str, Any]]:
        return list(self.server.done("GET", self.kind.path(self.namespace))["items"])

    def driver(self, launch: Launch) -> dict[str, Any]:
        """The pod of the attempt, made if nobody has."""
        name = launch.run.name
        if self.is_operated:
            return spark_operators.drive(self.server, self.kind.version, self.namespace, name)

        def found() -> dict[str, Any] | None:
            return next((p for p in self.pods() if p["metadata"]["labels"].get(ATTEMPT) == name), None)

        return kubelet.eventually(found, "the Job makes no pod")

    def pods(self) -> list[dict[str, Any]]:
        return kubelet.pods(self.server, self.namespace)

    def finish(self, launch: Launch) -> None:
        do = str(launch.spec.work["do"])
        code, message = RESULTS[do]
        kubelet.end(self.server, self.driver(launch), code, message, "Error" if code else "Completed")
        if self.is_operated:
            state = (
                ("Failed" if code else "Succeeded")
                if "apache" in self.kind.version
                else ("FAILED" if code else "COMPLETED")
            )
            spark_operators.tell(self.server, self.kind.version, self.namespace, launch.run.name, state)


@dataclass
class LocalWay:
    """Attempts as processes of this machine, with a stub of a job."""

    folder: Path
    owner: Identity
    stranger: Identity
    launchers: list[LocalLauncher] = field(default_factory=list)

    def launcher(self) -> LocalLauncher:
        self.launchers.append(LocalLauncher(self.folder, STUB))
        return self.launchers[-1]

    def wanted(self, do: str, number: int = 1) -> Launch:
        return wanted(do, number)

    def finish(self, launch: Launch) -> None:
        """It does that by itself."""

    def stop(self) -> None:
        for launcher in self.launchers:
            launcher.stop()


def _created(server: ApiServer, namespace: str, name: str) -> Identity:
    path = f"/apis/{API_VERSION}/namespaces/{namespace}/huditables"
    return identity_of(server.done("POST", path, manifest(name, **spec())))
