"""kopf, for watching alone: what it hears goes into the queue. No handler of ours changes an object, so kopf writes none.

Handlers that detect changes would lose some and add finalizers, see docs/operator.md; reconciling is ours.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any

import kopf
from kubernetes.client import Configuration

from hudi_operator.api.crd import GROUP, PLURALS, VERSION
from hudi_operator.kube.access import configuration
from hudi_operator.kube.rest import ANSWER_SECONDS, CONNECT_SECONDS
from hudi_operator.launchers.objects import Kind
from hudi_operator.manifests.pods import OWNER
from hudi_operator.runtime.operator import Operator
from hudi_table.errors import HudiError

WATCH_SECONDS = 300
"""How long one watch lasts; a new one goes on from the last version that was heard."""
KINDS_SECONDS = 10.0
"""How often it is asked which kinds are served; the answer may be some seconds older."""
CHUNK = 200
IDLE_SECONDS = 0.5
"""How many resources one answer of a listing brings, and how long what was heard of one is kept: they bound the memory of a start."""
_log = logging.getLogger(__name__)


def settings(*, namespaced: bool) -> kopf.OperatorSettings:
    """Bounded in time, silent in the cluster. In chosen namespaces nothing of the whole cluster is asked for."""
    found = kopf.OperatorSettings()
    found.posting.enabled = False
    found.scanning.disabled = namespaced
    found.networking.connect_timeout = CONNECT_SECONDS
    found.networking.request_timeout = ANSWER_SECONDS
    found.watching.server_timeout = WATCH_SECONDS
    found.watching.chunk_size = CHUNK
    found.queueing.idle_timeout = IDLE_SECONDS
    found.watching.client_timeout = WATCH_SECONDS + ANSWER_SECONDS
    found.persistence.diffbase_storage = _NothingCompared()
    found.persistence.progress_storage = _NoProgress()
    return found


class _NothingCompared(kopf.DiffBaseStorage):
    """For each event, whoever listens to it or not, kopf copies the resource to compare it with what it once wrote there, which took
    it longer than all the rest. Handlers of events ask for no comparison."""

    def build(self, **_: Any) -> kopf.BodyEssence:
        return kopf.BodyEssence()

    def fetch(self, **_: Any) -> None:
        """Nothing was written."""

    def store(self, **_: Any) -> None:
        """Nothing is."""


class _NoProgress(kopf.ProgressStorage):
    """Of how far handlers are nothing is kept: those of events are not repeated."""

    def fetch(self, **_: Any) -> None:
        """Nothing is kept."""

    def store(self, **_: Any) -> None:
        """Nothing is kept."""

    def purge(self, **_: Any) -> None:
        """Nothing is kept."""

    def touch(self, **_: Any) -> None:
        """Nothing is kept."""

    def clear(self, *, essence: kopf.BodyEssence) -> kopf.BodyEssence:
        """As it is."""
        return essence


def registry(operator: Operator, kinds: Iterable[Kind], kubeconfig: str | None = None) -> kopf.OperatorRegistry:
    """What is listened to: our kinds, and the objects and pods that work for them."""
    found = kopf.OperatorRegistry()

    @kopf.on.login(registry=found)
    def login(**_: Any) -> kopf.ConnectionInfo:
        return _connection(configuration(kubeconfig))

    for kind, plural in PLURALS.items():

        @kopf.on.event(GROUP, VERSION, plural, registry=found, id=plural)
        async def heard(event: Mapping[str, Any], kind: str = kind, **_: Any) -> None:
            operator.heard({**event["object"], "kind": kind}, deleted=event["type"] == "DELETED")

    for group, version, plural in ((*_parts(kind), kind.plural) for kind in kinds):
        kopf.on.event(group, version, plural, registry=found, id=f"ended-{group}", labels={OWNER: kopf.PRESENT})(
            _ended(operator)
        )
    kopf.on.event("", "v1", "pods", registry=found, id="ended-pods", labels={OWNER: kopf.PRESENT})(_ended(operator))
    return found


def _ended(operator: Operator) -> Callable[..., Awaitable[None]]:
    async def ended(labels: Mapping[str, str], **_: Any) -> None:
        operator.ended(labels[OWNER])

    return ended


def _parts(kind: Kind) -> tuple[str, str]:
    group, _, version = kind.version.partition("/")
    return group, version


def _connection(known: Configuration) -> kopf.ConnectionInfo:
    """kopf's own login knows no file but those that KUBECONFIG names; the client library knows every way in."""
    scheme, _, token = str(known.get_api_key_with_prefix("BearerToken", alias="authorization") or "").rpartition(" ")
    return kopf.ConnectionInfo(
        server=known.host,
        ca_path=known.ssl_ca_cert,
        insecure=not known.verify_ssl,
        username=known.username or None,
        password=known.password or None,
        scheme=scheme or None,
        token=token or None,
        certificate_path=known.cert_file,
        private_key_path=known.key_file,
    )


def watch(
    operator: Operator,
    watchable: Callable[[Sequence[str]], Sequence[Kind]],
    namespaces: Sequence[str],
    stop: threading.Event,
    kubeconfig: str | None = None,
) -> None:
    """Listen until `stop` is set; in all namespaces if none is named. Kinds that come or go are noticed after a while."""

    def now() -> Sequence[Kind]:
        return watchable(namespaces)

    while not stop.is_set():
        kinds = now()
        anew = threading.Event()
        threading.Thread(target=_until_changed, args=(now, kinds, stop, anew), name="kinds", daemon=True).start()
        kopf.run(
            standalone=True,
            registry=registry(operator, kinds, kubeconfig),
            settings=settings(namespaced=bool(namespaces)),
            clusterwide=not namespaces,
            namespaces=list(namespaces),
            stop_flag=anew,
        )
        if not anew.is_set():
            return  # it has ended by itself: without a watch the operator is of no use


def _until_changed(
    now: Callable[[], Sequence[Kind]], kinds: Sequence[Kind], stop: threading.Event, anew: threading.Event
) -> None:
    """Set `anew` once there are other kinds to watch, or `stop` is set."""
    while not anew.is_set():
        if stop.wait(KINDS_SECONDS):
            anew.set()
            return
        try:
            if now() != kinds:
                anew.set()
        except HudiError as error:
            _log.warning("the kinds to watch are not known: %s", error)
