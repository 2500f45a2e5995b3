"""Which kinds an API server serves, asked anew after a while: definitions come and go while an operator runs."""

from __future__ import annotations

import threading

from hudi_operator.kube.rest import Rest
from hudi_table.errors import ObjectNotFoundError
from hudi_table.table.ports import Clock

FRESH_SECONDS = 30.0


class Served:
    """Remembers for a while what is served. For several threads at once. Every account may ask."""

    def __init__(self, rest: Rest, clock: Clock, fresh_seconds: float = FRESH_SECONDS) -> None:
        self._rest = rest
        self._clock = clock
        self._fresh_seconds = fresh_seconds
        self._lock = threading.Lock()
        self._known: dict[str, tuple[float, frozenset[str]]] = {}

    def serves(self, version: str, plural: str) -> bool:
        """Whether there are `plural` of a version such as `batch/v1`. Raises AccessDeniedError and UnavailableError."""
        with self._lock:
            asked, found = self._known.get(version, (float("-inf"), frozenset()))
        if self._clock.boot_seconds() - asked > self._fresh_seconds:
            found = self._ask(version)
            with self._lock:
                self._known[version] = (self._clock.boot_seconds(), found)
        return plural in found

    def _ask(self, version: str) -> frozenset[str]:
        try:
            return frozenset(each["name"] for each in self._rest.get(f"/apis/{version}")["resources"])
        except ObjectNotFoundError:
            return frozenset()
