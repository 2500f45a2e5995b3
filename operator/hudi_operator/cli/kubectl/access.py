"""The cluster that the arguments name, as the user's own account sees it; its refusals in plain
words."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from kubernetes import config
from kubernetes.client import ApiClient, Configuration

from hudi_operator.api import documents
from hudi_operator.api.documents import Document
from hudi_operator.api.names import API_VERSION, GROUP, PLURALS, VERSION
from hudi_operator.kube.rest import Rest
from hudi_operator.plan.status.overview import since
from hudi_table.errors import AccessDeniedError, HudiError, InvalidOptionError, InvalidRequestError, ObjectNotFoundError

LEASE = "hudi-operator"
LAPSED_SECONDS = 120
"""A Lease that was renewed longer ago is nobody's; it lasts some seconds, but clocks of machines
differ."""
_IN_POD = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"


@dataclass(frozen=True, slots=True)
class Access:
    """Calls in one namespace. Every method raises HudiError with the next step."""

    rest: Rest
    namespace: str

    def tables(self, *, everywhere: bool = False) -> list[Document]:
        """All HudiTables."""
        return self._listed("HudiTable", everywhere=everywhere)

    def services(self, *, everywhere: bool = False) -> list[Document]:
        """All TableServices."""
        return self._listed("TableService", everywhere=everywhere)

    def table_sets(self, *, everywhere: bool = False) -> list[Document]:
        """All HudiTableSets."""
        return self._listed("HudiTableSet", everywhere=everywhere)

    def table_set(self, name: str) -> Document:
        """One HudiTableSet."""
        return self._one("HudiTableSet", name)

    def table(self, name: str) -> Document:
        """One HudiTable."""
        return self._one("HudiTable", name)

    def service(self, name: str) -> Document:
        """One TableService."""
        return self._one("TableService", name)

    def services_of(self, table: Document) -> list[Document]:
        """The TableServices of a table."""
        return [each for each in self.services() if documents.table_of(each) == documents.name_of(table)]

    def create_service(self, body: Mapping[str, Any]) -> Document:
        """A new TableService."""
        return self._called(lambda: self.rest.create(self.collection("TableService"), body))

    def patch_service(self, name: str, patch: Mapping[str, Any]) -> Document:
        """A JSON merge patch. Raises ObjectExistsError if `resourceVersion` in it is not that of
        now."""
        return self._called(lambda: self.rest.merge(f"{self.collection('TableService')}/{name}", patch))

    def objects(self, path: str, **query: str) -> list[Document]:
        """Objects of the namespace that are good to know; none if they may not be seen."""
        try:
            found = self.rest.get(path, **query)
        except (AccessDeniedError, ObjectNotFoundError):
            return []
        return list(found.get("items") or ())

    def holder(self, now: datetime) -> str | None:
        """Who leads: '' if nobody does, None if that cannot be seen."""
        try:
            found = self.rest.get("/apis/coordination.k8s.io/v1/leases", fieldSelector=f"metadata.name={LEASE}")
        except HudiError:
            return None
        specs = [lease.get("spec") or {} for lease in found.get("items") or ()]
        held = [
            spec
            for spec in specs
            if spec.get("holderIdentity") and (since(spec.get("renewTime"), now) or 0) < LAPSED_SECONDS
        ]
        return str(held[0]["holderIdentity"]) if held else ""

    def collection(self, kind: str, *, everywhere: bool = False) -> str:
        """The path of all resources of a kind."""
        where = "" if everywhere else f"/namespaces/{self.namespace}"
        return f"/apis/{GROUP}/{VERSION}{where}/{PLURALS[kind]}"

    def _one(self, kind: str, name: str) -> Document:
        try:
            found = self._called(lambda: self.rest.get(f"{self.collection(kind)}/{name}"))
        except ObjectNotFoundError:
            known = [documents.name_of(each) for each in self._listed(kind, everywhere=False)]
            raise self._missing(kind, name, known) from None
        return {"apiVersion": API_VERSION, "kind": kind, **found}

    def _listed(self, kind: str, *, everywhere: bool) -> list[Document]:
        try:
            found = self._called(lambda: self.rest.get(self.collection(kind, everywhere=everywhere)))
        except ObjectNotFoundError:
            raise InvalidRequestError(
                f"the API server does not know {PLURALS[kind]}.{GROUP}: install the definitions, kubectl apply -f crds/"
            ) from None
        return [{"apiVersion": API_VERSION, "kind": kind, **item} for item in found["items"]]

    def _called(self, call: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        try:
            return call()
        except AccessDeniedError as error:
            raise AccessDeniedError(
                f"{error.message}; ask for a Role of {GROUP} in namespace {self.namespace}"
            ) from None

    def _missing(self, kind: str, name: str, known: list[str]) -> HudiError:
        there = f"there are {', '.join(sorted(known)[:10])}" if known else "there is none"
        verb, what = ("sets", "sets") if kind == "HudiTableSet" else ("status", "tables")
        return InvalidRequestError(
            f"there is no {kind} {name!r} in namespace {self.namespace}; {there}; kubectl hudi {verb} -A shows all {what}"
        )


def access(args: argparse.Namespace) -> Access:
    """As kubectl finds it: the kubeconfig and its context, else the account of the pod."""
    known = Configuration()
    try:
        if args.kubeconfig is None and args.context is None and os.path.exists(_IN_POD) and not _has_kubeconfig():
            config.load_incluster_config(client_configuration=known)
            with open(_IN_POD, encoding="utf-8") as file:
                namespace = file.read().strip()
        else:
            config.load_kube_config(args.kubeconfig, args.context, client_configuration=known)
            namespace = _namespace(args)
    except config.ConfigException as error:
        said = " ".join(str(error).split()).rstrip(".")
        raise InvalidOptionError(
            f"no cluster to ask: {said}; give --kubeconfig FILE and --context NAME, as kubectl; without a cluster "
            "`hudictl local FILE` applies manifests, and `hudictl compact`, `cluster` and `clean` work on a table's folder"
        ) from None
    return Access(Rest(ApiClient(known)), args.namespace or namespace)


def _has_kubeconfig() -> bool:
    return os.path.exists(os.path.expanduser("~/.kube/config"))


def _namespace(args: argparse.Namespace) -> str:
    contexts, active = config.list_kube_config_contexts(args.kubeconfig)
    chosen = next((each for each in contexts if each["name"] == args.context), active)
    return str(chosen.get("context", {}).get("namespace") or "default")
