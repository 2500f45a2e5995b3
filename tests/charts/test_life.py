"""The operator under the account of its chart, through the life of a table: its rights are enough
and none is too many, and the credentials of the table stand in their Secret and nowhere else.

The audit log of the API server says what the operator was refused and what it made use of; what
etcd holds is read byte by byte.
"""

from __future__ import annotations

import base64
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest

from hudi_operator.manifests.spark_applications import APACHE, KUBEFLOW
from tests.charts.conftest import namespace_of
from tests.support import chart_operator, etcd, spark_operators
from tests.support.api_server import ApiServer
from tests.support.audit import AuditLog, Right, granted
from tests.support.helm import NAMESPACE, Helm
from tests.support.kafka import Broker, running_broker
from tests.support.s3 import running_s3
from tests.support.scale import scale
from tests.support.set_life import NAME as SET_NAME
from tests.support.set_life import SetLife
from tests.support.table_life import SECRET, TableLife, eventually

ROLE_ONLY, EVERYWHERE = "role-only", "everywhere"
SPARK_OPERATORS = {
    "SparkOperator": KUBEFLOW.partition("/")[0],
    "ApacheSparkOperator": APACHE.partition("/")[0],
}
pytestmark = pytest.mark.timeout(1800)


@dataclass
class Lived:
    """What is left to judge after a life. `seen`: key → value of etcd, of all moments that were
    looked at."""

    objects: list[dict[str, Any]]
    namespace: str
    user: str
    canaries: dict[str, str]
    seen: list[dict[str, bytes]] = field(default_factory=list)
    words: dict[str, str] = field(default_factory=dict)
    stored: dict[str, bytes] = field(default_factory=dict)

    def rights(self) -> dict[str | None, set[Right]]:
        """Namespace (None: all) → what the operator is granted there, by the bindings that name
        it."""
        roles = {
            (each["kind"], each["metadata"].get("namespace"), each["metadata"]["name"]): each for each in self.objects
        }
        found: dict[str | None, set[Right]] = {}
        for each in self.objects:
            if each["kind"] not in ("RoleBinding", "ClusterRoleBinding"):
                continue
            namespace = each["metadata"].get("namespace")
            if self.user in {f"system:serviceaccount:{s['namespace']}:{s['name']}" for s in each["subjects"]}:
                role = roles[each["roleRef"]["kind"], namespace, each["roleRef"]["name"]]
                found.setdefault(namespace, set()).update(granted(role["rules"]))
        return found

    def spellings(self) -> set[bytes]:
        """The credentials, in clear and as a Secret's document writes them."""
        clear = {value.encode() for value in self.canaries.values()}
        return clear | {base64.b64encode(value) for value in clear}


@pytest.fixture(scope="module", params=[ROLE_ONLY, EVERYWHERE] if scale() > 1 else [ROLE_ONLY])
def lived(
    request: pytest.FixtureRequest, server: ApiServer, audit: AuditLog, helm: Helm, resources: None,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Lived]:  # fmt: skip
    """A life with an account of its own, so that the log tells one from the other."""
    case, folder = request.param, tmp_path_factory.mktemp("life")
    namespace = f"life-{case}"
    spark = {"sparkOperator": {"enabled": True}, "apacheSparkOperator": {"enabled": True}}
    values = {"serviceAccount": {"name": f"operator-{case}"}, "launchers": spark}
    rendered = helm.template(
        values | ({"watchNamespaces": [namespace], "rbac": {"purge": True}} if case == ROLE_ONLY else {})
    )
    objects = [each for each in rendered if "helm.sh/hook" not in each["metadata"].get("annotations", {})]
    deployment = next(each for each in objects if each["kind"] == "Deployment")
    server.apply(*map(spark_operators.definition, (KUBEFLOW, APACHE)))
    for version in (KUBEFLOW, APACHE):
        eventually(lambda version=version: spark_operators.is_served(server, version), f"{version} is not served")  # type: ignore[misc]
    server.apply(
        namespace_of(NAMESPACE), namespace_of(namespace), *(each for each in objects if each is not deployment)
    )
    # Whoever led there before left its Lease.
    server.kubectl("delete", "lease", "--all", "-n", NAMESPACE)
    canaries = {name: f"canary-{secrets.token_hex(12)}" for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")}
    found = Lived(objects, namespace, chart_operator.user(deployment), canaries)
    try:
        with (
            running_s3() as store,
            running_broker() as broker,
            chart_operator.operator(server, deployment, folder / "operator") as running,
        ):
            life = TableLife(server, namespace, store, folder, canaries, asked_of(audit, found))
            lives(life, broker, found, running)
            keys = store.keys()
            found.stored = {key: store.client().get_object(Bucket=store.bucket, Key=key)["Body"].read() for key in keys}
        found.words |= {"the operator's log": running.log.read_text(), "a job's output": "\n".join(life.said)}
        yield found
    finally:
        for each in objects:
            where = each["metadata"].get("namespace", NAMESPACE)
            server.kubectl("delete", each["kind"], each["metadata"]["name"], "-n", where, "--ignore-not-found")
        # Where the life broke off nobody is left who would let go of them.
        server.kubectl("delete", "hts,ht,tsvc", "--all", "-n", namespace, "--wait=false")


def lives(life: TableLife, broker: Broker, found: Lived, running: chart_operator.Running) -> None:
    """The whole life; after each part, what etcd holds."""
    eventually(lambda: life.asked("get", "leases", "hudi-operator"), "the operator asks for no lead")
    found.words["the operator's arguments"] = running.command_line()
    of_set = SetLife(life, broker)
    parts: list[Callable[[], None]] = [
        life.begins_without_its_secret,
        life.takes_files,
        life.meets_a_bad_file,
        life.loses_its_secret_for_a_while,
        life.stops_a_service,
        *(partial(life.runs_as, *each) for each in SPARK_OPERATORS.items()),
        partial(life.others_change_it, "HudiTable", "flights"),
        partial(life.others_change_it, "TableService", "clean"),
        of_set.follows_topics,
        partial(life.others_change_it, "HudiTableSet", SET_NAME),
        of_set.ends,
        life.ends,
    ]
    for part in parts:
        part()
        found.seen.append(etcd.dump(life.server.etcd_url))
    found.words["what it tells Prometheus"] = running.metrics()


def asked_of(audit: AuditLog, found: Lived) -> Any:
    """Whether the operator has asked for a verb on an object of its namespaces by name."""

    def asked(verb: str, resource: str, name: str) -> bool:
        for event in audit.of(found.user):
            to = event.get("objectRef", {})
            if (event["verb"], to.get("resource"), to.get("name"), to.get("subresource")) == (
                verb,
                resource,
                name,
                None,
            ):
                return to.get("namespace") in (found.namespace, NAMESPACE)
        return False

    return asked


def test_the_operator_is_refused_nothing(lived: Lived, audit: AuditLog) -> None:
    assert audit.of(lived.user)
    assert audit.refused(lived.user) == []


def test_every_right_is_used(lived: Lived, audit: AuditLog) -> None:
    rights = lived.rights()
    assert sum(map(len, rights.values())) > 20
    for where, wanted in rights.items():
        assert wanted - audit.used(lived.user, where) == set(), (
            f"granted in {where or 'all namespaces'}, and never used"
        )


def test_with_chosen_namespaces_it_has_rights_in_them_on_its_lease_and_to_let_go_of_tables_alone(lived: Lived) -> None:
    if lived.user.endswith(EVERYWHERE):
        assert lived.rights().keys() == {None, NAMESPACE}
        return
    assert lived.rights().keys() == {None, lived.namespace, NAMESPACE}
    assert {right.resource for right in lived.rights()[None]} == {"huditables"}
    assert {right.resource for right in lived.rights()[NAMESPACE]} == {"leases"}
    whole = [each["metadata"]["name"] for each in lived.objects if each["kind"].startswith("Cluster")]
    assert all(name.endswith("-purge") for name in whole)


def test_the_credentials_are_in_no_object_but_their_secret(lived: Lived) -> None:
    own = f"/registry/secrets/{lived.namespace}/{SECRET}"
    assert any(own in moment for moment in lived.seen), "the Secret itself was not seen: this looks at nothing"
    for moment in lived.seen:
        hits = {key for key, value in moment.items() for spelling in lived.spellings() if spelling in value}
        assert hits <= {own}
    assert any(hit.encode() in moment[own] for moment in lived.seen if own in moment for hit in lived.canaries.values())


def test_the_credentials_are_in_no_log_argument_or_metric(lived: Lived, audit: AuditLog) -> None:
    words = lived.words | {"the audit log": audit.path.read_text()}
    assert all(words.values()), [name for name, text in words.items() if not text]
    found = [name for name, text in words.items() for spelling in lived.spellings() if spelling.decode() in text]
    assert not found


def test_the_credentials_are_in_no_file_of_the_table(lived: Lived) -> None:
    assert any("/.hoodie/" in name for name in lived.stored)
    assert not [name for name, data in lived.stored.items() for spelling in lived.spellings() if spelling in data]
