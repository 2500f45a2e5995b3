"""kopf, for watching alone: what it hears goes into the queue. No handler of ours changes an object, so kopf writes none.

Handlers that detect changes would lose some and add finalizers, see docs/operator.md; reconciling is ours.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

import kopf

from hudi_operator.api.crd import GROUP, PLURALS, VERSION
from hudi_operator.kube.rest import ANSWER_SECONDS, CONNECT_SECONDS
from hudi_operator.manifests.batch import OWNER
from hudi_operator.runtime.operator import Operator

WATCH_SECONDS = 300
"""How long one watch lasts; a new one begins with a listing, so that nothing that was missed stays missed."""


def settings(*, namespaced: bool) -> kopf.OperatorSettings:
    """Bounded in time, silent in the cluster. In chosen namespaces nothing of the whole cluster is asked for."""
    found = kopf.OperatorSettings()
    found.posting.enabled = False
    found.scanning.disabled = namespaced
    found.networking.connect_timeout = CONNECT_SECONDS
    found.networking.request_timeout = ANSWER_SECONDS
    found.watching.server_timeout = WATCH_SECONDS
    found.watching.client_timeout = WATCH_SECONDS + ANSWER_SECONDS
    return found


def registry(operator: Operator, kubeconfig: str | None = None) -> kopf.OperatorRegistry:
    """What is listened to: our kinds, and the Jobs and pods that work for them."""
    found = kopf.OperatorRegistry()

    @kopf.on.login(registry=found)
    def login(**known: Any) -> Any:
        return kopf.login_with_kubeconfig(**known) if kubeconfig else kopf.login_with_service_account(**known)

    for kind, plural in PLURALS.items():

        @kopf.on.event(GROUP, VERSION, plural, registry=found, id=plural)
        async def heard(event: Mapping[str, Any], kind: str = kind, **_: Any) -> None:
            operator.heard({**event["object"], "kind": kind}, deleted=event["type"] == "DELETED")

    for group, version, plural in (("batch", "v1", "jobs"), ("", "v1", "pods")):

        @kopf.on.event(group, version, plural, registry=found, id=f"ended-{plural}", labels={OWNER: kopf.PRESENT})
        async def ended(namespace: str | None, labels: Mapping[str, str], **_: Any) -> None:
            operator.ended(labels[OWNER], namespace or "")

    return found


def watch(operator: Operator, namespaces: Sequence[str], stop: threading.Event, kubeconfig: str | None = None) -> None:
    """Listen until `stop` is set; in all namespaces if none is named."""
    kopf.run(
        standalone=True,
        registry=registry(operator, kubeconfig),
        settings=settings(namespaced=bool(namespaces)),
        clusterwide=not namespaces,
        namespaces=list(namespaces),
        stop_flag=stop,
    )
