"""kopf, for watching alone: what it hears goes into the queue. No handler of ours changes an
object, so kopf writes none.

Handlers that detect changes would lose some and add finalizers, see docs/explanation/operator.md;
reconciling is ours.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import kopf
from kubernetes.client import Configuration

from hudi_operator.api.names import GROUP, LATER, PLURALS, VERSION
from hudi_operator.api.words import one_line
from hudi_operator.kube.access import configuration
from hudi_operator.kube.rest import ANSWER_SECONDS, CONNECT_SECONDS, Rest
from hudi_operator.launchers.objects import Kind
from hudi_operator.manifests.pods import OWNER
from hudi_operator.runtime.operator import Operator
from hudi_table.errors import AccessDeniedError, HudiError, ObjectNotFoundError

WATCH_SECONDS = 300
"""How long one watch lasts; a new one goes on from the last version that was heard."""
KINDS_SECONDS = 10.0
"""How often it is asked which kinds are served; the answer may be some seconds older."""
RETRY_SECONDS = 5.0
"""How soon a watch that has ended is begun again."""
SAID_LENGTH_MAX = 300
CHUNK = 200
IDLE_SECONDS = 0.5
"""How many resources one answer of a listing brings, and how long what was heard of one is kept:
they bound the memory of a start."""
_log = logging.getLogger(__name__)


def settings(*, namespaced: bool) -> kopf.OperatorSettings:
    """Bounded in time, silent in the cluster. In chosen namespaces nothing of the whole cluster is
    asked for."""
    chosen = kopf.OperatorSettings()
    chosen.posting.enabled = False
    chosen.scanning.disabled = namespaced
    chosen.networking.connect_timeout = CONNECT_SECONDS
    chosen.networking.request_timeout = ANSWER_SECONDS
    chosen.watching.server_timeout = WATCH_SECONDS
    chosen.watching.chunk_size = CHUNK
    chosen.queueing.idle_timeout = IDLE_SECONDS
    chosen.watching.client_timeout = WATCH_SECONDS + ANSWER_SECONDS
    chosen.persistence.diffbase_storage = _NothingCompared()
    chosen.persistence.progress_storage = _NoProgress()
    return chosen


class _NothingCompared(kopf.DiffBaseStorage):
    """For each event, whoever listens to it or not, kopf copies the resource to compare it with
    what it once wrote there, which took it longer than all the rest. Handlers of events ask for no
    comparison."""

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


def registry(
    operator: Operator, kinds: Iterable[Kind], kubeconfig: str | None = None, unheard: Collection[str] = ()
) -> kopf.OperatorRegistry:
    """What is listened to: our kinds but those that are `unheard`, and the objects and pods that
    work for them."""
    handlers = kopf.OperatorRegistry()

    @kopf.on.login(registry=handlers)
    def login(**_: Any) -> kopf.ConnectionInfo:
        return _connection(configuration(kubeconfig))

    for kind, plural in ((kind, plural) for kind, plural in PLURALS.items() if kind not in unheard):

        @kopf.on.event(GROUP, VERSION, plural, registry=handlers, id=plural)
        async def heard(event: Mapping[str, Any], kind: str = kind, **_: Any) -> None:
            operator.heard({**event["object"], "kind": kind}, deleted=event["type"] == "DELETED")

    for group, version, plural in ((*_parts(kind), kind.plural) for kind in kinds):
        kopf.on.event(group, version, plural, registry=handlers, id=f"ended-{group}", labels={OWNER: kopf.PRESENT})(
            _ended(operator)
        )
    kopf.on.event("", "v1", "pods", registry=handlers, id="ended-pods", labels={OWNER: kopf.PRESENT})(_ended(operator))
    return handlers


def _ended(operator: Operator) -> Callable[..., Awaitable[None]]:
    async def ended(labels: Mapping[str, str], **_: Any) -> None:
        operator.ended(labels[OWNER])

    return ended


def _parts(kind: Kind) -> tuple[str, str]:
    group, _, version = kind.version.partition("/")
    return group, version


def _connection(known: Configuration) -> kopf.ConnectionInfo:
    """kopf's own login knows no file but those that KUBECONFIG names; the client library knows
    every way in."""
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


@dataclass
class _Watch:
    """That of one namespace, "" for all. `unheard`: kinds of ours that are not there yet, or may
    not be listed; `missing`: why it hears nothing; `anew` ends it, to begin again at once."""

    place: str
    kinds: Sequence[Kind] = ()
    unheard: frozenset[str] = frozenset()
    missing: str = ""
    anew: threading.Event = field(default_factory=threading.Event)


class Watches:
    """One watch for each namespace, or one for all if none is named. Whatever ends one, that its
    namespace is deleted or rights are taken, ends no other, and is tried again until it is mended.

    `watchable` names the kinds of attempts that may be watched in some namespaces.
    """

    def __init__(
        self,
        operator: Operator,
        rest: Rest,
        watchable: Callable[[Sequence[str]], Sequence[Kind]],
        namespaces: Sequence[str],
        kubeconfig: str | None = None,
    ) -> None:
        self._operator = operator
        self._rest = rest
        self._watchable = watchable
        self._kubeconfig = kubeconfig
        self._watches = {place: _Watch(place) for place in namespaces or ("",)}

    def missing(self) -> dict[str, str]:
        """The namespaces of which nothing is heard, and why."""
        return {place: watch.missing for place, watch in self._watches.items() if watch.missing}

    def again(self, place: str) -> None:
        """Begin the watch of a namespace anew: it is deaf."""
        self._watches[place].anew.set()

    def run(self, stop: threading.Event) -> None:
        """Listen until `stop` is set. Kinds that come or go are noticed after a while."""
        watches = self._watches.values()
        threads = [
            threading.Thread(target=self._keep, args=(watch, stop), name=f"watch-{watch.place}", daemon=True)
            for watch in watches
        ]
        for thread in threads:
            thread.start()
        while not stop.wait(KINDS_SECONDS):
            for watch in watches:
                self._tend(watch)
        for watch in watches:
            watch.anew.set()
        for thread in threads:
            thread.join()

    def _tend(self, watch: _Watch) -> None:
        if watch.missing:
            return
        try:
            changed = self._kinds(watch) != watch.kinds or bool(watch.unheard and self._unheard(watch) != watch.unheard)
        except HudiError as error:
            _log.warning("the kinds to watch are not known: %s", error)
        else:
            if changed:
                watch.anew.set()

    def _kinds(self, watch: _Watch) -> Sequence[Kind]:
        return self._watchable([watch.place] if watch.place else [])

    def _ask(self, watch: _Watch, kind: str) -> None:
        where = f"/namespaces/{watch.place}" if watch.place else ""
        self._rest.get(f"/apis/{GROUP}/{VERSION}{where}/{PLURALS[kind]}", limit="1")

    def _unheard(self, watch: _Watch) -> frozenset[str]:
        """The kinds that nobody needs who does not know them: definitions or a role may be older
        than this release. Raises UnavailableError."""
        found = set()
        for kind in LATER:
            try:
                self._ask(watch, kind)
            except (ObjectNotFoundError, AccessDeniedError) as error:
                found.add(kind)
                if kind not in watch.unheard:
                    _log.warning("%ss of %s are not heard: %s", kind, watch.place or "all namespaces", error)
        return frozenset(found)

    def _keep(self, watch: _Watch, stop: threading.Event) -> None:
        while not stop.is_set():
            watch.anew = threading.Event()
            try:
                self._listen(watch, stop)
                why = "" if watch.anew.is_set() else "its watch has ended"
            except HudiError as error:
                why = str(error)
            except Exception as error:  # noqa: BLE001 - whatever it is, it is tried again, and is no other namespace's affair
                why = f"{type(error).__name__}: {error}"
            if why and why != watch.missing:
                _log.warning(
                    "nothing is heard of %s: %s", watch.place or "any namespace", one_line(why, SAID_LENGTH_MAX)
                )
            watch.missing = why
            if why:
                stop.wait(RETRY_SECONDS)

    def _listen(self, watch: _Watch, stop: threading.Event) -> None:
        """Until it is to begin anew, or ends. Raises HudiError where it may not list, and whatever
        kopf raises."""
        for kind in PLURALS.keys() - LATER:
            self._ask(watch, kind)
        watch.unheard = self._unheard(watch)
        watch.kinds = self._kinds(watch)
        if watch.missing:
            _log.info("%s is heard again", watch.place or "every namespace")
        watch.missing = ""
        if stop.is_set():
            return
        kopf.run(
            standalone=True,
            registry=registry(self._operator, watch.kinds, self._kubeconfig, watch.unheard),
            settings=settings(namespaced=bool(watch.place)),
            clusterwide=not watch.place,
            namespaces=[watch.place] if watch.place else [],
            stop_flag=watch.anew,
        )
