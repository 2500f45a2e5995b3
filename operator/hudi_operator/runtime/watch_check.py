"""Whether the watch hears: what it has brought, beside what the API server has.

A watch that is silent may be deaf, or nothing happens; an age of its last event cannot tell which.
So the versions of all resources are listed from time to time. A resource whose version is another
there, while the watch brings nothing, was not heard: our own writes, which come back, are a
heartbeat that costs nothing. A watch that is deaf is begun anew, long before the liveness probe
would do it.

A listing tells, too, what is gone: a watch that begins with a list of its own never tells of what
was deleted before. A namespace that cannot be listed, since it is deleted or the rights are gone,
is said to be missing, and is nobody else's affair.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from hudi_operator.api.names import GROUP, LATER, PLURALS, VERSION
from hudi_operator.api.resources import DEFAULT_NAMESPACE, FINALIZER, Key
from hudi_operator.kube.rest import Document, Rest
from hudi_operator.runtime.operator import Operator
from hudi_table.errors import AccessDeniedError, HudiError, ObjectNotFoundError
from hudi_table.table.store.ports import Clock

FIRST_SECONDS, PAUSE_SECONDS = 2.0, 15.0
DEAF_SECONDS = 20.0
"""After so long a watch that does not bring what is there is begun anew."""
_log = logging.getLogger(__name__)


class Remembered(Protocol):
    """What somebody remembers of resources by their uids, which never come back."""

    def uids(self) -> Collection[str]:
        """Of which resources anything is remembered."""
        ...

    def forget(self, uids: Collection[str]) -> None:
        """They are gone."""
        ...


class Watched(Protocol):
    """The watches of namespaces; "" is all of them."""

    def missing(self) -> dict[str, str]:
        """Of which nothing is heard, and why."""
        ...

    def again(self, place: str) -> None:
        """Begin that watch anew."""
        ...


@dataclass
class Hearing:
    """Compares in a thread of its own. `permitted`: the resources of some namespace may be listed;
    `listed`: all that were there are known; `remembered`: who hears which resources are gone;
    `refused`: namespaces that cannot be listed, and why."""

    rest: Rest
    operator: Operator
    clock: Clock
    namespaces: Sequence[str] = ()
    remembered: Sequence[Remembered] = ()
    watched: Watched | None = None
    permitted: bool = False
    listed: bool = False
    refused: dict[str, str] = field(default_factory=dict)
    _behind: dict[Key, tuple[str | None, float]] = field(default_factory=dict)
    _told_at: float = 0.0

    def keep(self, stopping: threading.Event) -> None:
        """Compare until `stopping` is set, more often until everything is known."""
        while not stopping.wait(PAUSE_SECONDS if self.listed else FIRST_SECONDS):
            try:
                self.compare()
            except Exception as error:  # noqa: BLE001 - one comparison that fails is no reason to end the process
                _log.error("a comparison has failed: %s", type(error).__name__)

    def missing(self) -> dict[str, str]:
        """The namespaces of which nothing is heard, and why."""
        return self.refused | (self.watched.missing() if self.watched is not None else {})

    def ask(self) -> None:
        """Find out whether the resources may be listed, so that one without the rights is seen
        before it leads."""
        for place in self.namespaces or ("",):
            try:
                for kind in PLURALS.keys() - LATER:
                    self.rest.get(_path(kind, place), limit="1")
            except HudiError as error:
                _log.warning("resources cannot be listed: %s", error)
            else:
                self.permitted = True

    def compare(self) -> None:
        """One comparison. A server that does not answer is no sign of deafness: the Lease is lost
        then."""
        before, remembered = self._known(), [(each, set(each.uids())) for each in self.remembered]
        try:
            there, hidden = self._there()
        except HudiError as error:
            _log.warning("cannot find out what the watch has missed: %s", error)
            return
        unseen = {key for key in before if (key.kind, self._place(key)) in hidden}
        # Whatever was known before the listing began was made before it: what it does not show is gone.
        for key in before.keys() - there.keys() - unseen:
            self.operator.vanished(key, before[key])
        uids = {metadata["uid"] for metadata in there.values()} | {before[key]["metadata"]["uid"] for key in unseen}
        for each, held in remembered:
            each.forget(held - uids)
        self.refused = {place: why for (kind, place), why in hidden.items() if kind not in LATER}
        self._take_in_held(before, there)
        self._compare({key: metadata["resourceVersion"] for key, metadata in there.items()})
        lists = len(self.namespaces or ("",)) * len(PLURALS)
        if len(hidden) < lists:
            self.permitted = True
            self.listed = self.listed or there.keys() <= self._known().keys()
        self._mend()

    def _take_in_held(self, before: Mapping[Key, Mapping[str, Any]], there: Mapping[Key, Document]) -> None:
        """What is held back and was deleted waits for us, in a namespace that is not heard, too: it
        may be going as a whole."""
        missing = self.missing()
        for key in before.keys() & there.keys():
            metadata = before[key]["metadata"]
            if self._place(key) not in missing or FINALIZER not in metadata.get("finalizers", ()):
                continue
            if metadata["resourceVersion"] != there[key]["resourceVersion"]:
                with contextlib.suppress(HudiError):
                    self.operator.take_in(
                        {**self.rest.get(f"{_path(key.kind, key.namespace)}/{key.name}"), "kind": key.kind}
                    )

    def _compare(self, there: Mapping[Key, str]) -> None:
        now = self.clock.boot_seconds()
        heard, missing = self.operator.cluster.heard(), self.missing()
        behind: dict[Key, tuple[str | None, float]] = {}
        for key in heard.keys() | there.keys():
            ours = heard.get(key)
            if ours != there.get(key) and self._place(key) not in missing:
                before = self._behind.get(key)
                behind[key] = before if before is not None and before[0] == ours else (ours, now)
        self._behind, self._told_at = behind, now

    def _mend(self) -> None:
        """Begin anew what is deaf."""
        if self.watched is None:
            return
        for place in {self._place(key) for key in self._behind if self._deaf_seconds(key) > DEAF_SECONDS}:
            _log.warning("the watch of %s receives no changes: it is begun anew", place or "all namespaces")
            self.watched.again(place)

    def _deaf_seconds(self, key: Key) -> float:
        """For how long the watch has not brought a resource, nor anything else of its kind: one
        that is busy is slow, and no more. While no comparison succeeds nobody knows whether it
        still has not."""
        found = self._behind.get(key)
        if found is None:
            return 0.0
        places = [key.namespace] if self.namespaces else {n for _, n in list(self.operator.last_heard)}
        last = max((self.operator.last_heard.get((key.kind, place), 0.0) for place in places), default=0.0)
        return min(self.clock.boot_seconds(), self._told_at + PAUSE_SECONDS) - max(found[1], last)

    def behind_seconds(self) -> float:
        """For how long the watch of some namespace has not brought something that is there."""
        return max((self._deaf_seconds(key) for key in list(self._behind)), default=0.0)

    def _known(self) -> dict[Key, Mapping[str, Any]]:
        cluster = self.operator.cluster
        found = ((key, cluster.get(key)) for key in cluster.keys())  # noqa: SIM118 - it is no mapping
        return {key: document for key, document in found if document is not None}

    def _place(self, key: Key) -> str:
        """Whose watch brings a resource."""
        return key.namespace if self.namespaces else ""

    def _there(self) -> tuple[dict[Key, Document], dict[tuple[str, str], str]]:
        """(all that can be listed, what cannot by kind and namespace, and why). Raises
        UnavailableError."""
        found: dict[Key, Document] = {}
        hidden: dict[tuple[str, str], str] = {}
        for place, kind in ((place, kind) for place in self.namespaces or ("",) for kind in PLURALS):
            try:
                for metadata in self.rest.metadata(_path(kind, place)):
                    key = Key(kind, metadata.get("namespace", DEFAULT_NAMESPACE), metadata["name"])
                    found[key] = {name: metadata[name] for name in ("uid", "resourceVersion")}
            except (AccessDeniedError, ObjectNotFoundError) as error:
                hidden[kind, place] = str(error)
        return found, hidden


def _path(kind: str, place: str) -> str:
    where = f"/namespaces/{place}" if place else ""
    return f"/apis/{GROUP}/{VERSION}{where}/{PLURALS[kind]}"
