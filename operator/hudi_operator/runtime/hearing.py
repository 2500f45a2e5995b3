"""Whether the watch hears: what it has brought, beside what the API server has.

A watch that is silent may be deaf, or nothing happens; an age of its last event cannot tell which. So the versions of all resources
are listed from time to time. A resource whose version is another there, while what we know of it does not move, was not heard.

A listing tells, too, what is gone: a watch that begins with a list of its own never tells of what was deleted before.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from hudi_operator.api.crd import GROUP, PLURALS, VERSION
from hudi_operator.api.resources import DEFAULT_NAMESPACE, Key
from hudi_operator.kube.rest import Document, Rest
from hudi_operator.runtime.operator import Operator
from hudi_table.errors import HudiError
from hudi_table.table.ports import Clock

FIRST_SECONDS, PAUSE_SECONDS = 2.0, 60.0
_log = logging.getLogger(__name__)


class Remembered(Protocol):
    """What somebody remembers of resources by their uids, which never come back."""

    def uids(self) -> Collection[str]:
        """Of which resources anything is remembered."""
        ...

    def forget(self, uids: Collection[str]) -> None:
        """They are gone."""
        ...


@dataclass
class Hearing:
    """Compares in a thread of its own. `permitted`: the resources may be listed; `listed`: all that were there are known; `remembered`:
    who is told which resources are gone."""

    rest: Rest
    operator: Operator
    clock: Clock
    namespaces: Sequence[str] = ()
    remembered: Sequence[Remembered] = ()
    permitted: bool = False
    listed: bool = False
    _behind: dict[Key, tuple[str | None, float]] = field(default_factory=dict)

    def keep(self, stopping: threading.Event) -> None:
        """Compare until `stopping` is set, more often until everything is known."""
        while not stopping.wait(PAUSE_SECONDS if self.listed else FIRST_SECONDS):
            self.compare()

    def ask(self) -> None:
        """Find out whether the resources may be listed, so that one without the rights is seen before it leads."""
        try:
            for path in self._paths().values():
                self.rest.get(path, limit="1")
        except HudiError as error:
            _log.warning("resources cannot be listed: %s", error)
        else:
            self.permitted = True

    def compare(self) -> None:
        """One comparison. A server that does not answer is no sign of deafness: the lead is lost then."""
        before, remembered = self._known(), [(each, set(each.uids())) for each in self.remembered]
        try:
            there = self._there()
        except HudiError as error:
            _log.warning("what the watch has missed cannot be told: %s", error)
            return
        # Whatever was known before the listing began was made before it: what it does not show is gone.
        for key in before.keys() - there.keys():
            self.operator.vanished(key, before[key])
        uids = {metadata["uid"] for metadata in there.values()}
        for each, held in remembered:
            each.forget(held - uids)
        self._compare({key: metadata["resourceVersion"] for key, metadata in there.items()})
        self.permitted = True

    def _compare(self, there: Mapping[Key, str]) -> None:
        now = self.clock.boot_seconds()
        known = {key: document["metadata"]["resourceVersion"] for key, document in self._known().items()}
        behind: dict[Key, tuple[str | None, float]] = {}
        for key in known.keys() | there.keys():
            ours = known.get(key)
            if ours != there.get(key):
                before = self._behind.get(key)
                behind[key] = before if before is not None and before[0] == ours else (ours, now)
        self._behind = behind
        self.listed = self.listed or there.keys() <= known.keys()

    def behind_seconds(self) -> float:
        """For how long the watch has not brought something that is there."""
        now = self.clock.boot_seconds()
        return max((now - since for _, since in self._behind.values()), default=0.0)

    def _known(self) -> dict[Key, Mapping[str, Any]]:
        cluster = self.operator.cluster
        found = ((key, cluster.get(key)) for key in cluster.keys())  # noqa: SIM118 - it is no mapping
        return {key: document for key, document in found if document is not None}

    def _there(self) -> dict[Key, Document]:
        found = {}
        for (kind, _), path in self._paths().items():
            for metadata in self.rest.metadata(path):
                key = Key(kind, metadata.get("namespace", DEFAULT_NAMESPACE), metadata["name"])
                found[key] = {name: metadata[name] for name in ("uid", "resourceVersion")}
        return found

    def _paths(self) -> dict[tuple[str, str], str]:
        places = [f"/namespaces/{name}" for name in self.namespaces] or [""]
        return {
            (kind, place): f"/apis/{GROUP}/{VERSION}{place}/{plural}"
            for kind, plural in PLURALS.items()
            for place in places
        }
