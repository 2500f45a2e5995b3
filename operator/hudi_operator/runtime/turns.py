"""Whose turn it is to start an attempt where only so many may be at work: fair between namespaces,
the first that waits in each."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from hudi_operator.api.documents import running_of
from hudi_operator.api.fields.pods import PodPolicies, PodPolicy
from hudi_operator.api.resources import Key
from hudi_operator.api.status import RunStatus
from hudi_operator.plan.deletion import WORK as PURGE
from hudi_operator.runtime.ports import Cluster
from hudi_table.model.counts import counted

FORGOTTEN_SECONDS = 90.0
"""Who waits and has not asked for so long waits no more: its resource is gone, suspended, or wants
nothing."""


def unlimited() -> PodPolicies:
    """As many as there are."""
    return PodPolicies(PodPolicy(), {})


@dataclass(slots=True)
class Turns:
    """Counts the attempts that statuses name as running, and those that are just being started. For
    several threads at once.

    `seconds`: a clock that never goes back.
    """

    cluster: Cluster
    seconds: Callable[[], float]
    policies: PodPolicies = field(default_factory=unlimited)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _starting: dict[str, str] = field(default_factory=dict)
    _waiting: dict[Key, tuple[float, float]] = field(default_factory=dict)

    @contextmanager
    def taken(self, key: Key, run: RunStatus) -> Iterator[str]:
        """Take a turn for an attempt until its status is written. Gives why there is none now, ''
        if it is its turn. Whose table is deleted with its files waits for nobody."""
        why = self._why_none(key, run.name) if run.work != PURGE else ""
        try:
            yield why
        finally:
            with self._lock:
                self._starting.pop(run.name, None)

    def _why_none(self, key: Key, attempt: str) -> str:
        most = self.policies.max_attempts
        if most is None and self.policies.of(key.namespace).max_attempts is None:
            return ""
        with self._lock:
            now = self.seconds()
            self._waiting = {each: at for each, at in self._waiting.items() if now - at[1] < FORGOTTEN_SECONDS}
            self._waiting[key] = (self._waiting.get(key, (now, now))[0], now)
            at_work = self._at_work()
            if attempt in at_work or key in self._chosen(Counter(at_work.values())):
                del self._waiting[key]
                self._starting[attempt] = key.namespace
                return ""
        return self._why(key, at_work)

    def _at_work(self) -> dict[str, str]:
        """Namespaces of attempts by name."""
        found = dict(self._starting)
        for key in self.cluster.keys():  # noqa: SIM118 - it is no mapping
            document = self.cluster.get(key)
            for run in running_of(document) if document is not None else ():
                found[str(run.get("name"))] = key.namespace
        return found

    def _chosen(self, running: Counter[str]) -> set[Key]:
        """Who may start now: again and again the namespace with the fewest at work, of equal ones
        that which waits longest."""
        free = float("inf") if self.policies.max_attempts is None else self.policies.max_attempts - running.total()
        lines: dict[str, list[Key]] = {}
        for key in sorted(self._waiting, key=lambda each: self._waiting[each][0]):
            lines.setdefault(key.namespace, []).append(key)
        chosen: set[Key] = set()
        while len(chosen) < free:
            open_ones = [name for name in lines if lines[name] and running[name] < self._most(name)]
            if not open_ones:
                break
            name = min(open_ones, key=lambda each: (running[each], self._waiting[lines[each][0]][0]))
            chosen.add(lines[name].pop(0))
            running[name] += 1
        return chosen

    def _most(self, namespace: str) -> float:
        found = self.policies.of(namespace).max_attempts
        return float("inf") if found is None else found

    def _why(self, key: Key, at_work: dict[str, str]) -> str:
        here, most = _count(at_work.values(), key.namespace), self.policies.of(key.namespace).max_attempts
        if most is not None and here >= most:
            return (
                f"{counted(here, 'attempt')} at work in namespace {key.namespace}, {most} may be; it waits for its turn"
            )
        return f"{counted(len(at_work), 'attempt')} at work, {self.policies.max_attempts} may be; it waits for its turn"


def _count(namespaces: Iterable[str], wanted: str) -> int:
    return sum(each == wanted for each in namespaces)
