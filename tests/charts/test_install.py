"""The charts on a real API server, as Helm and kubectl bring them: every object is taken, pods are
admitted as `restricted`, and what people made outlives every release. No node is there, so that no
container runs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from hudi_operator.api.names import PLURALS
from tests.charts.conftest import namespace_of
from tests.support.api_server import ROOT, ApiServer
from tests.support.chart_values import MATRIX
from tests.support.helm import CHART, CRDS, NAMESPACE, RELEASE, Helm
from tests.support.kubelet import eventually
from tests.support.manifests import manifest, spec

OURS = "app.kubernetes.io/instance=hudi-operator"


@pytest.fixture(scope="module", autouse=True)
def lakes(server: ApiServer, resources: None) -> None:
    server.apply(namespace_of("lake-a"), namespace_of("lake-b"))


@contextmanager
def installed(helm: Helm, values: dict[str, Any]) -> Iterator[None]:
    ended = helm("install", RELEASE, CHART, "--namespace", NAMESPACE, "--values", "-", given=yaml.safe_dump(values))
    assert ended.returncode == 0, ended.stderr
    assert "would violate PodSecurity" not in ended.stderr
    try:
        yield
    finally:
        helm.done("uninstall", RELEASE, "--namespace", NAMESPACE, "--wait")


def pods(server: ApiServer) -> list[dict[str, Any]]:
    return list(server.get("pods", "-n", NAMESPACE, "-l", OURS)["items"])


def makes_table(server: ApiServer, namespace: str, name: str = "kept") -> str:
    """The uid of a new HudiTable."""
    document = {**manifest(name, **spec()), "metadata": {"name": name, "namespace": namespace}}
    done = server.kubectl("create", "-f", "-", "-o", "json", given=json.dumps(document))
    assert done.returncode == 0, done.stderr
    return str(json.loads(done.stdout)["metadata"]["uid"])


def uid(server: ApiServer, namespace: str, name: str = "kept") -> str:
    return str(server.get("ht", name, "-n", namespace)["metadata"]["uid"])


@pytest.mark.parametrize("case", MATRIX)
def test_the_server_takes_every_object_and_the_pods_are_restricted(server: ApiServer, helm: Helm, case: str) -> None:
    values = MATRIX[case]
    count = values.get("replicaCount", 1)
    with installed(helm, values):
        eventually(lambda: len(pods(server)) == count, f"{count} pods are not admitted")
        notes = helm.done("get", "notes", RELEASE, "--namespace", NAMESPACE)
        assert "helm test hudi-operator --namespace hudi-operator" in notes
        knows_namespaces = values.get("watchNamespaces") or values.get("jobs", {}).get("namespaces")
        assert ("They start no executors" in notes) == (not knows_namespaces)
    eventually(lambda: not pods(server), "the pods stay")


def test_an_upgrade_and_a_rollback_change_what_is_there(server: ApiServer, helm: Helm) -> None:
    with installed(helm, {}):
        helm.done(
            "upgrade", RELEASE, CHART, "--namespace", NAMESPACE, "--set", "watchNamespaces={lake-a},replicaCount=2"
        )
        assert server.kubectl("get", "clusterrole", "hudi-operator").returncode != 0
        assert server.kubectl("get", "role,sa,rolebinding", "-n", "lake-a", "-l", OURS, "-o", "name").stdout.split() == [
            "role.rbac.authorization.k8s.io/hudi-driver", "role.rbac.authorization.k8s.io/hudi-operator",
            "serviceaccount/hudi-driver", "serviceaccount/hudi-job",
            "rolebinding.rbac.authorization.k8s.io/hudi-driver", "rolebinding.rbac.authorization.k8s.io/hudi-operator",
        ]  # fmt: skip
        helm.done("rollback", RELEASE, "--namespace", NAMESPACE)
        assert server.kubectl("get", "clusterrole", "hudi-operator").returncode == 0
        assert not server.kubectl("get", "role", "-n", "lake-a", "-o", "name").stdout


def test_tables_outlive_the_operator(server: ApiServer, helm: Helm, namespace: str) -> None:
    with installed(helm, {"watchNamespaces": [namespace]}):
        before = makes_table(server, namespace)
    assert uid(server, namespace) == before


def test_tables_outlive_their_definitions_release_and_its_upgrades(
    server: ApiServer, helm: Helm, namespace: str
) -> None:
    before = makes_table(server, namespace)
    helm.done("upgrade", "hudi-operator-crds", CRDS, "--namespace", NAMESPACE, "--set", "aggregateRoles=false")
    assert uid(server, namespace) == before
    said = helm.done("uninstall", "hudi-operator-crds", "--namespace", NAMESPACE)
    assert "kept due to the resource policy" in said
    assert uid(server, namespace) == before
    helm.done("install", "hudi-operator-crds", CRDS, "--namespace", NAMESPACE)
    assert uid(server, namespace) == before


def test_definitions_that_kubectl_brought_can_be_taken_over(server: ApiServer, helm: Helm, namespace: str) -> None:
    before = makes_table(server, namespace)
    helm.done("uninstall", "hudi-operator-crds", "--namespace", NAMESPACE)
    for name in PLURALS.values():
        server.kubectl("annotate", "crd", f"{name}.hudi.lakeops.dev", "meta.helm.sh/release-name-")
    refused = helm("install", "hudi-operator-crds", CRDS, "--namespace", NAMESPACE)
    assert "invalid ownership metadata" in refused.stderr
    helm.done("install", "hudi-operator-crds", CRDS, "--namespace", NAMESPACE, "--take-ownership")
    assert uid(server, namespace) == before


@pytest.mark.parametrize(
    ("role", "may", "may_not"),
    [("view", ["get", "list", "watch"], ["create", "delete"]), ("edit", ["create", "patch", "delete", "list"], [])],
)
def test_people_with_kubernetes_own_roles_may_what_these_say(
    server: ApiServer, namespace: str, role: str, may: list[str], may_not: list[str]
) -> None:
    server.kubectl("create", "rolebinding", role, f"--clusterrole={role}", "--user=ann", "-n", namespace)
    for verbs, answer in ((may, "yes"), (may_not, "no")):
        for verb in verbs:
            for kind in PLURALS.values():
                asked = ("auth", "can-i", verb, f"{kind}.hudi.lakeops.dev", "--as=ann", "-n", namespace)
                eventually(partial(is_answered, server, asked, answer), f"{' '.join(asked)} is not answered {answer}")


def is_answered(server: ApiServer, asked: tuple[str, ...], answer: str) -> bool:
    return server.kubectl(*asked).stdout.strip() == answer


def test_kustomize_brings_what_the_chart_does(server: ApiServer) -> None:
    done = server.kubectl("apply", "--server-side", "--force-conflicts", "-k", str(ROOT / "config" / "crds"))
    assert done.returncode == 0, done.stderr
    done = server.kubectl("apply", "-k", str(ROOT / "config" / "default"))
    assert done.returncode == 0, done.stderr
    assert "would violate" not in done.stderr
    eventually(lambda: len(pods(server)) == 1, "no pod is admitted")
    # The namespace is everybody's here.
    listed = [
        path for path in (ROOT / "config" / "default").glob("*.yaml") if path.stem not in ("namespace", "kustomization")
    ]
    for path in listed:
        assert server.kubectl("delete", "-f", str(path)).returncode == 0


def test_an_overlay_puts_all_of_it_into_one_namespace(server: ApiServer, namespace: str, tmp_path: Path) -> None:
    """The page's overlay: nothing is asked of the cluster, and the jobs' image is another."""
    patch = {
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "hudi-operator"},
        "spec": {"template": {"spec": {"containers": [
            {"name": "operator", "env": [{"name": "SPARK_IMAGE", "value": "registry.example/hudi-spark:1"}]}]}}},
    }  # fmt: skip
    overlay = {
        "namespace": namespace,
        "resources": ["namespaced"],
        "images": [{"name": "hudi-operator", "newName": "registry.example/hudi-operator", "newTag": "1"}],
        "patches": [{"target": {"kind": "Deployment"}, "patch": yaml.safe_dump(patch)}],
    }
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(overlay))
    (tmp_path / "namespaced").symlink_to(ROOT / "config" / "namespaced")
    done = server.kubectl("apply", "-k", str(tmp_path))
    assert done.returncode == 0, done.stderr
    found = server.get("deploy,sa,role,rolebinding,networkpolicy", "-n", namespace, "-l", OURS)["items"]
    assert len(found) == 12
    (bound,) = [each for each in found if each["kind"] == "RoleBinding" and each["metadata"]["name"] == "hudi-operator"]
    assert bound["subjects"][0]["namespace"] == namespace
    (pod,) = eventually(lambda: server.get("pods", "-n", namespace)["items"], "no pod is admitted")
    (container,) = pod["spec"]["containers"]
    assert container["image"] == "registry.example/hudi-operator:1"
    assert {"name": "SPARK_IMAGE", "value": "registry.example/hudi-spark:1"} in container["env"]
    assert "--namespace=$(NAMESPACE)" in container["args"]
