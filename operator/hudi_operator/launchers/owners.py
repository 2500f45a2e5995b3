"""Which resources may have attempts in the cluster, so that nobody asks the API server for those of
a table that never had any.

It errs on one side alone: who is not known here has none. All that there were are listed once, by
the one that leads, before it looks at anything; each that it launches is entered before, and each
that the watch brings. One is taken out when its resource is gone.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Sequence

from hudi_operator.kube.rest import Rest
from hudi_operator.launchers.objects import Kind
from hudi_operator.manifests.pods import OWNER


class Owners:
    """Uids of resources. Until they were listed, everyone may have attempts. For several threads at
    once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._heard: set[str] = set()
        self._listed = False

    def find(self, rest: Rest, kinds: Sequence[Kind], namespaces: Sequence[str]) -> None:
        """Enter the owners of all objects of these kinds, in all namespaces if none is named.
        Raises HudiError."""
        places = [f"/namespaces/{name}" for name in namespaces] or [""]
        for path in (f"/apis/{kind.version}{place}/{kind.plural}" for kind in kinds for place in places):
            for metadata in rest.metadata(path, labelSelector=OWNER):
                self.add(metadata["labels"][OWNER])
        self._listed = True

    def add(self, uid: str) -> None:
        """A resource has an attempt, or is about to."""
        with self._lock:
            self._heard.add(uid)

    def may_have(self, uid: str) -> bool:
        """Whether a resource may have attempts."""
        with self._lock:
            return not self._listed or uid in self._heard

    def uids(self) -> Collection[str]:
        """All that were entered."""
        with self._lock:
            return frozenset(self._heard)

    def forget(self, uids: Collection[str]) -> None:
        """Their resources are gone."""
        with self._lock:
            self._heard.difference_update(uids)
