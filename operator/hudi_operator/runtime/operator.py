"""The operator's workers: what the watch brings goes into the queue, and each worker reconciles what is due."""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hudi_operator.api.resources import Key, key_of, table_of
from hudi_operator.runtime.api_cluster import ApiCluster
from hudi_operator.runtime.ports import Meter, NoMeter
from hudi_operator.runtime.queue import JITTER, WorkQueue
from hudi_operator.runtime.reconcile import Reconciler
from hudi_table.errors import HudiError, InvariantError, UnavailableError

PATIENCE_SECONDS = 1.0
AWAY_SECONDS = 5.0
"""How soon a look is repeated that the API server did not answer: stores that do not answer raise nothing here."""
RESYNC_SECONDS = 600.0
"""How often a resource is looked at of which nothing is heard: what changes in a store sends no word."""
_log = logging.getLogger(__name__)


@dataclass
class Operator:
    """Looks at resources with some threads. `heard` and `ended` are the watch's; `start` and `stop` are for whoever leads.

    `last_look`: when a look last ended, or the work began, on the queue's clock.
    """

    cluster: ApiCluster
    reconciler: Reconciler
    queue: WorkQueue
    workers: int = 4
    resync_seconds: float = RESYNC_SECONDS
    meter: Meter = field(default_factory=NoMeter)
    last_look: float = 0.0
    _looks: dict[str, tuple[Key, float]] = field(default_factory=dict)
    _threads: list[threading.Thread] = field(default_factory=list)

    def load(self, namespaces: Sequence[str]) -> None:
        """List what is there, in all namespaces if none is named, before the watch begins, and look at all of it: what belongs to one
        table, one after the other. Raises HudiError; what was listed before that is looked at."""
        try:
            for namespace in namespaces or ("",):
                self.cluster.load(namespace)
        finally:
            for key in sorted(self.cluster.keys(), key=lambda key: (self.group(key), key)):
                self.queue.add(key)

    def heard(self, document: Mapping[str, Any], *, deleted: bool = False) -> None:
        """A resource of ours is there, has changed, or is gone. Its table's other resources are looked at, too."""
        if self.cluster.is_listed(key_of(document), document["metadata"]["resourceVersion"]) and not deleted:
            return
        before = self.cluster.get(key_of(document))
        key = self.cluster.seen(document)
        others = self.cluster.about(*table_of(document))
        if deleted:
            self.cluster.gone(key)
            self.queue.forget(key)
            others.remove(key)
        elif before is not None and before["metadata"]["resourceVersion"] == document["metadata"]["resourceVersion"]:
            others.remove(key)  # what we wrote ourselves comes back
        for other in others:
            self.queue.add(other)

    def vanished(self, key: Key, document: Mapping[str, Any]) -> None:
        """A resource that was known by this document is not there any more, and the watch did not tell."""
        others = self.cluster.about(*table_of(document))
        if self.cluster.vanished(key, document):
            for other in others:
                self.queue.add(other)

    def ended(self, uid: str) -> None:
        """Something has become of an attempt that works for the resource of this uid."""
        self.reconciler.launcher.heard(uid)
        owner = self.cluster.of_uid(uid)
        for key in self.cluster.about(*self.group(owner)) if owner is not None else ():
            self.queue.add(key)

    def group(self, key: Key) -> tuple[str, str]:
        """The table that a resource is about: its attempts exclude each other."""
        document = self.cluster.get(key)
        return table_of(document) if document is not None else (key.namespace, f"?{key.name}")

    def start(self) -> None:
        """Begin to work."""
        self.last_look = self.queue.clock()
        self._threads = [threading.Thread(target=self._work, name=f"worker-{n}") for n in range(self.workers)]
        for thread in self._threads:
            thread.start()

    def stop(self, seconds: float) -> bool:
        """Take up nothing more; whether all that was at work has ended after so many seconds."""
        self.queue.close()
        for thread in self._threads:
            thread.join(seconds / max(1, len(self._threads)))
        return not any(thread.is_alive() for thread in self._threads)

    def looks(self) -> list[tuple[Key, float]]:
        """What is being looked at, and for how many seconds."""
        now = self.queue.clock()
        return [(key, now - began) for key, began in list(self._looks.values())]

    def working(self) -> int:
        """How many workers are alive."""
        return sum(thread.is_alive() for thread in self._threads)

    def _work(self) -> None:
        while not self.queue.closed:
            key = self.queue.take(PATIENCE_SECONDS)
            if key is not None:
                began = self.queue.clock()
                self._looks[threading.current_thread().name] = (key, began)
                error = self._look(key)
                del self._looks[threading.current_thread().name]
                self.last_look = self.queue.clock()
                self.meter.looked(key, self.last_look - began, error)

    def _look(self, key: Key) -> str | None:
        """One look; the name of the error in which it ended."""
        try:
            again = self.reconciler.reconcile(key)
        except HudiError as error:
            away = isinstance(error, UnavailableError)
            wait = self.queue.failed(key, AWAY_SECONDS * (1 + JITTER * random.random()) if away else float("inf"))  # noqa: S311 - spreads moments
            _log.warning("%s: %s: %s; next look in %.0f s", key, error.name(), error, wait)
            return error.name()
        except Exception:  # noqa: BLE001 - a bug in one look must not end the worker, or all tables would stand still
            _log.exception("%s: next look in %.0f s", key, self.queue.failed(key))
            return InvariantError.name()
        else:
            known = self.cluster.get(key) is not None
            wait = min(self.resync_seconds, again.seconds) if again is not None else self.resync_seconds
            self.queue.done(key, wait if known else None)
            return None
