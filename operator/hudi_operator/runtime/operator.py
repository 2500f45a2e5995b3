"""The operator's workers: what the watch brings goes into the queue, and each worker reconciles
what is due."""

from __future__ import annotations

import logging
import random
import threading
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hudi_operator.api.names import LATER
from hudi_operator.api.resources import KINDS, Key, key_of, table_of
from hudi_operator.plan.observed import Problem
from hudi_operator.runtime.api_cluster import ApiCluster
from hudi_operator.runtime.members import looks_alike, set_of
from hudi_operator.runtime.ports import Meter, NoMeter
from hudi_operator.runtime.queue import JITTER, WorkQueue
from hudi_operator.runtime.reconcile import Reconciler
from hudi_operator.runtime.workers import Workers
from hudi_table.errors import HudiError, InvariantError, UnavailableError

AWAY_SECONDS = 5.0
"""How soon a reconcile is repeated that the API server did not answer: stores that do not answer
raise nothing here."""
RESYNC_SECONDS = 600.0
"""How often a resource is reconciled of which nothing is heard: what changes in a store sends no
word."""
SETTLED_SECONDS = 2.0
"""How long a HudiTableSet waits for more when one of its tables has changed."""
_log = logging.getLogger(__name__)


@dataclass
class Operator:
    """Reconciles resources with `count` threads. `heard` and `ended` are the watch's; `start` and
    `stop` are for whoever leads. `ending` is set by a reconcile that asks the process to end."""

    cluster: ApiCluster
    reconciler: Reconciler
    queue: WorkQueue
    count: int = 4
    resync_seconds: float = RESYNC_SECONDS
    meter: Meter = field(default_factory=NoMeter)
    ending: threading.Event = field(default_factory=threading.Event)
    last_heard: dict[tuple[str, str], float] = field(default_factory=dict)
    """When the watch last brought anything of a kind in a namespace, on the queue's clock."""
    workers: Workers = field(init=False)

    def __post_init__(self) -> None:
        self.workers = Workers(self.queue, self._work, self.count, self.ending)

    def load(self, namespaces: Sequence[str]) -> dict[str, HudiError]:
        """List what is there, in all namespaces if none is named, before the watch begins, and
        reconcile all of it: what belongs to one table, one after the other. The namespaces that
        cannot be listed, and why: they keep nobody from the others."""
        refused: dict[str, HudiError] = {}
        for namespace, kind in ((namespace, kind) for namespace in namespaces or ("",) for kind in KINDS):
            try:
                self.cluster.load(kind, namespace)
            except HudiError as error:
                if kind not in LATER:
                    refused[namespace] = error
        for key in sorted(self.cluster.keys(), key=lambda key: (self.group(key), key)):
            self.queue.add(key)
        return refused

    def heard(self, document: Mapping[str, Any], *, deleted: bool = False) -> None:
        """The watch has brought a resource of ours, which is there, has changed, or is gone."""
        key, version = key_of(document), document["metadata"]["resourceVersion"]
        self.last_heard[key.kind, key.namespace] = self.queue.clock()
        self.cluster.record_version(key, version)
        if deleted or not self.cluster.is_listed(key, version):
            self.take_in(document, deleted=deleted)

    def take_in(self, document: Mapping[str, Any], *, deleted: bool = False) -> None:
        """A resource of ours is there, has changed, or is gone. Its table's other resources are
        reconciled, too."""
        before = self.cluster.get(key_of(document))
        key = self.cluster.seen(document)
        others = self.cluster.about(*table_of(document))
        self._tell_sets(before, document, deleted=deleted)
        if deleted:
            self.cluster.gone(key)
            self.queue.forget(key)
            others.remove(key)
        elif before is not None and before["metadata"]["resourceVersion"] == document["metadata"]["resourceVersion"]:
            others.remove(key)  # what we wrote ourselves comes back
        for other in others:
            self.queue.add(other)

    def _tell_sets(self, before: Mapping[str, Any] | None, document: Mapping[str, Any], *, deleted: bool) -> None:
        """The set of a HudiTable looks at it a little later: many of its tables may change at
        once."""
        if before is not None and not deleted and looks_alike(before, document):
            return
        for owner in {set_of(each) for each in (before, document) if each is not None}:
            if owner is not None and self.cluster.get(owner) is not None:
                self.queue.add(owner, SETTLED_SECONDS)

    def vanished(self, key: Key, document: Mapping[str, Any]) -> None:
        """A resource that was known by this document is not there any more, and the watch did not
        tell."""
        others = self.cluster.about(*table_of(document))
        if self.cluster.vanished(key, document):
            self._tell_sets(None, document, deleted=True)
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
        self.workers.start()

    def stop(self, seconds: float) -> bool:
        """Take up nothing more; whether all that was at work has ended after so many seconds."""
        return self.workers.stop(seconds)

    def _work(self, key: Key) -> None:
        began, before = self.queue.clock(), self.cluster.get(key)
        error: str | None = InvariantError.name()
        try:
            error = self._reconcile(key)
        finally:
            self.meter.reconciled(key, self.queue.clock() - began, error)
        after = self.cluster.get(key)
        if after is not None and after is not before:
            # What we have written ourselves is known by now: the watch brings no news of it.
            self._tell_sets(before, after, deleted=False)

    def _reconcile(self, key: Key) -> str | None:
        """One reconcile; the name of the error in which it ended. Exits are passed on, and nothing
        else is."""
        try:
            again = self.reconciler.reconcile(key)
            known = self.cluster.get(key) is not None
        except HudiError as error:
            away = isinstance(error, UnavailableError)
            wait = self.queue.failed(key, AWAY_SECONDS * (1 + JITTER * random.random()) if away else float("inf"))  # noqa: S311 - spreads moments
            _log.warning("%s: %s: %s; next reconcile in %.0f s", key, error.name(), error, wait)
            if not error.retryable:
                self._report_failure(key, Problem(error.name(), str(error)), wait)
            return error.name()
        except (KeyboardInterrupt, SystemExit):
            self.queue.failed(key)
            raise
        except BaseException as error:  # noqa: BLE001 - a fault in one reconcile, a panic below it too, must not end the worker
            wait = self.queue.failed(key)
            # What it says may hold a value of a Secret.
            _log.error("%s: %s; next reconcile in %.0f s\n%s", key, type(error).__name__, wait, _frames(error))
            self._report_failure(key, Problem(InvariantError.name(), _fault(error)), wait)
            return InvariantError.name()
        wait = min(self.resync_seconds, again.seconds) if again is not None else self.resync_seconds
        self.queue.done(key, wait if known else None)
        return None

    def _report_failure(self, key: Key, problem: Problem, wait: float) -> None:
        """The resource says why it is not reconciled. Where that cannot be written, the log has
        said it."""
        try:
            self.reconciler.report_failure(key, problem, wait)
        except Exception as error:  # noqa: BLE001 - the reconcile has failed already
            _log.warning("%s: its condition cannot be written: %s", key, type(error).__name__)


def _frames(error: BaseException) -> str:
    return "Traceback (most recent call last):\n" + "".join(traceback.format_tb(error.__traceback__))


def _fault(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    where = f" in {frames[-1].name}" if frames else ""
    return f"its reconcile ended in {type(error).__name__}{where}: a fault of the operator, whose log says where"
