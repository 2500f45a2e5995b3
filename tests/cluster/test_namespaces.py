"""Several namespaces, by the rights that a Role in each gives: one that goes, or whose rights go,
is nobody else's affair, and is never held up by a table whose files go with it."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest

from hudi_operator.api.names import GROUP
from hudi_operator.api.resources import FINALIZER
from tests.support.api_server import ApiServer
from tests.support.kubelet import eventually
from tests.support.manifests import manifest, spec
from tests.support.operator_process import started
from tests.support.probes import answered, port_told
from tests.support.scale import scaled

OPERATOR = "operator"
RULES = [
    {"apiGroups": [GROUP], "resources": ["*"], "verbs": ["get", "list", "watch", "patch"]},
    {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["get", "list", "watch", "create", "patch"]},
    {"apiGroups": [""], "resources": ["pods", "secrets"], "verbs": ["get", "list", "watch"]},
    {"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["get", "create", "patch"]},
    {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get", "create", "update"]},
]
LETS_GO = [{"apiGroups": [GROUP], "resources": ["huditables"], "verbs": ["get", "list", "patch"]}]
RBAC = "rbac.authorization.k8s.io"
SERVED_SECONDS = 10.0


@dataclass
class Account:
    """An account in a namespace that no test deletes, with the rights that a test gives it."""

    server: ApiServer
    home: str
    kubeconfig: Path

    def may(self, namespace: str) -> None:
        """Its Role in a namespace."""
        where = f"/apis/{RBAC}/v1/namespaces/{namespace}"
        meta = {"name": OPERATOR, "namespace": namespace}
        role = {"apiVersion": f"{RBAC}/v1", "kind": "Role", "metadata": meta, "rules": RULES}
        if self.server.call("GET", f"{where}/roles/{OPERATOR}")[0] == HTTPStatus.NOT_FOUND:
            self.server.done("POST", f"{where}/roles", role)
        self.server.done("POST", f"{where}/rolebindings", self._binding("RoleBinding", "Role", meta))

    def may_not(self, namespace: str) -> None:
        """Its binding goes, as the first of what goes with a namespace."""
        self.server.done("DELETE", f"/apis/{RBAC}/v1/namespaces/{namespace}/rolebindings/{OPERATOR}")

    def may_let_go(self) -> None:
        """What the chart's `rbac.purge` gives."""
        meta = {"name": f"{self.home}-purge"}
        role = {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", "metadata": meta, "rules": LETS_GO}
        self.server.done("POST", f"/apis/{RBAC}/v1/clusterroles", role)
        body = self._binding("ClusterRoleBinding", "ClusterRole", meta)
        self.server.done("POST", f"/apis/{RBAC}/v1/clusterrolebindings", body)

    def _binding(self, kind: str, of: str, meta: dict[str, str]) -> dict[str, Any]:
        return {
            "apiVersion": f"{RBAC}/v1",
            "kind": kind,
            "metadata": meta,
            "roleRef": {"apiGroup": RBAC, "kind": of, "name": meta["name"]},
            "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": self.home}],
        }


@pytest.fixture
def account(server: ApiServer, namespace: str, tmp_path: Path) -> Account:
    found = Account(server, namespace, tmp_path / "account")
    server.write_kubeconfig(found.kubeconfig, server.account_token(namespace, "default"))
    found.may(namespace)
    return found


@pytest.fixture
def places(server: ApiServer, namespace: str, account: Account) -> tuple[str, str]:
    names = (f"{namespace}-stays", f"{namespace}-goes")
    for name in names:
        made_namespace(server, name)
        account.may(name)
    return names


def made_namespace(server: ApiServer, name: str) -> None:
    server.done("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})


@contextmanager
def operating(account: Account, log: Path, *places: str) -> Iterator[Callable[[str], tuple[int, str]]]:
    """An operator of these namespaces with the account's rights, and what its probes answer."""
    watched = [part for place in places for part in ("--namespace", place)]
    process = started(account.server, account.home, log, *watched, "--kubeconfig", str(account.kubeconfig))
    try:
        port = eventually(lambda: port_told(log), "it does not start")
        yield lambda path: answered(port, path)
        assert process.poll() is None, log.read_text()
    finally:
        process.kill()
        process.wait()


def table(server: ApiServer, namespace: str, name: str, **changes: Any) -> None:
    document = manifest(name, **spec(location=f"file:///nowhere/{namespace}/{name}", ingest=[], **changes))
    document["metadata"]["namespace"] = namespace
    server.done("POST", f"/apis/{document['apiVersion']}/namespaces/{namespace}/huditables", document)


def conditions(server: ApiServer, namespace: str, name: str) -> dict[str, tuple[str, str]]:
    status = server.get("ht", name, "-n", namespace).get("status", {})
    return {each["type"]: (each["status"], each["reason"]) for each in status.get("conditions", ())}


def served(server: ApiServer, namespace: str, name: str, seconds: float = SERVED_SECONDS) -> None:
    table(server, namespace, name)
    eventually(lambda: conditions(server, namespace, name), f"{namespace}/{name} is not looked at", seconds)


def is_gone(server: ApiServer, namespace: str) -> bool:
    return server.call("GET", f"/api/v1/namespaces/{namespace}")[0] == HTTPStatus.NOT_FOUND


def test_a_namespace_whose_rights_or_itself_go_is_said_to_be_missing_and_costs_no_other_one_anything(
    server: ApiServer, account: Account, places: tuple[str, str], tmp_path: Path
) -> None:
    stays, goes = places
    with operating(account, tmp_path / "log", stays, goes) as get:
        for place in places:
            served(server, place, "first", 60)
        account.may_not(goes)
        eventually(lambda: f"{goes} is not heard: " in get("/readyz")[1], "it is not said to be missing", 60)
        assert (get("/readyz")[0], get("/healthz")[0]) == (200, 200)
        assert "hudi_operator_namespaces_missing 1.0" in get("/metrics")[1]
        served(server, stays, "second")
        account.may(goes)
        served(server, goes, "second", 30)
        server.done("DELETE", f"/api/v1/namespaces/{goes}")
        served(server, stays, "third")
        eventually(lambda: is_gone(server, goes), "the namespace does not go", 60)
        served(server, stays, "fourth")
        made_namespace(server, goes)
        account.may(goes)
        served(server, goes, "anew", 30)
        eventually(lambda: "namespaces: all are heard" in get("/readyz")[1], "it is still said to be missing", 60)


def test_one_that_is_missing_from_the_start_costs_no_other_one_anything(
    server: ApiServer, account: Account, places: tuple[str, str], tmp_path: Path
) -> None:
    stays, goes = places
    account.may_not(goes)
    with operating(account, tmp_path / "log", goes, stays) as get:
        served(server, stays, "first", 60)
        eventually(lambda: get("/readyz")[0] == 200, "it is not ready", 30)
        assert f"{goes} is not heard" in get("/readyz")[1]


@pytest.mark.parametrize("first", ["the binding", "the namespace"])
def test_a_namespace_with_a_table_that_is_purged_goes_whatever_goes_first(
    server: ApiServer, account: Account, places: tuple[str, str], tmp_path: Path, first: str
) -> None:
    stays, goes = places
    account.may_let_go()
    with operating(account, tmp_path / "log", stays, goes):
        served(server, stays, "first", 60)
        table(server, goes, "purged", deletionPolicy="Purge")

        def held() -> bool:
            return FINALIZER in server.get("ht", "purged", "-n", goes)["metadata"].get("finalizers", ())

        eventually(held, "it is not held", 60)
        if first == "the binding":
            account.may_not(goes)
        server.done("DELETE", f"/api/v1/namespaces/{goes}")
        eventually(lambda: is_gone(server, goes), "the namespace does not go", 90)
        served(server, stays, "second")


def test_without_a_right_that_outlives_its_namespace_no_table_is_held_and_it_says_so(
    server: ApiServer, account: Account, places: tuple[str, str], tmp_path: Path
) -> None:
    stays, goes = places
    with operating(account, tmp_path / "log", stays, goes):
        table(server, goes, "purged", deletionPolicy="Purge")
        told = ("True", "AccessDenied")
        eventually(lambda: conditions(server, goes, "purged").get("Stalled") == told, "it is not told", 60)
        server.done("DELETE", f"/api/v1/namespaces/{goes}")
        eventually(lambda: is_gone(server, goes), "the namespace does not go", 60)


@pytest.mark.timeout(900)
def test_namespaces_that_are_deleted_under_load_cost_the_others_no_look(
    server: ApiServer, account: Account, namespace: str, tmp_path: Path
) -> None:
    """In any order, with tables that are purged among theirs, while tables are made in all of
    them."""
    account.may_let_go()
    draw, count = random.Random(7), scaled(3)
    going = [f"{namespace}-goes-{number}" for number in range(count)]
    staying = [f"{namespace}-stays-{number}" for number in range(2)]
    for place in (*going, *staying):
        made_namespace(server, place)
        account.may(place)
        table(server, place, "purged", deletionPolicy="Purge")
    waits = []
    with operating(account, tmp_path / "log", *going, *staying) as get:
        for place in staying:
            served(server, place, "first", 180)
        draw.shuffle(going)
        for number, place in enumerate(going):
            for left in going[number : number + 5]:
                table(server, left, f"load-{number}")
            server.done("DELETE", f"/api/v1/namespaces/{place}")
            began = time.monotonic()
            served(server, draw.choice(staying), f"at-{number}")
            waits.append(time.monotonic() - began)
        eventually(lambda: all(is_gone(server, place) for place in going), "a namespace does not go", 180)
        served(server, staying[0], "last")
        assert (get("/readyz")[0], get("/healthz")[0]) == (200, 200)
    assert max(waits) < SERVED_SECONDS
    assert "Traceback" not in (tmp_path / "log").read_text()
