"""A table that is deleted where the operator's rights are gone, while an attempt was at work: it is
let go in time, though neither its attempts nor its status can be reached."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from hudi_operator.api.resources import FINALIZER, Identity, Key
from hudi_operator.api.status import RunStatus
from hudi_operator.launchers.local import LocalLauncher
from hudi_operator.plan.deletion import UNSEEN_SECONDS_MAX
from hudi_operator.plan.schedule.runs import rfc3339
from hudi_operator.runtime.local.folder import FolderCluster
from hudi_operator.runtime.reconcile import Reconciler
from hudi_table.errors import AccessDeniedError
from tests.support.manifests import manifest, spec
from tests.support.tables import TestClock

RUN = {"name": "flights-feed-1", "work": "Ingest/feed", "phase": "Running", "generation": 1, "attempt": 1}


class Going(FolderCluster):
    """Its table is deleted, held by us, and its status cannot be written."""

    deleted: str | None = None
    holds: list[bool]

    def get(self, key: Key) -> Mapping[str, Any] | None:
        """With what the deletion adds."""
        found = super().get(key)
        if found is None or self.deleted is None:
            return found
        metadata = found["metadata"] | {"deletionTimestamp": self.deleted, "finalizers": [FINALIZER]}
        return {**found, "metadata": metadata, "status": {"runs": [RUN]}}

    def set_status(self, key: Key, status: Mapping[str, Any]) -> None:
        """It is refused."""
        raise AccessDeniedError("may not patch the status")

    def hold(self, key: Key, *, held: bool) -> None:
        """Noted."""
        self.holds.append(held)


class Unseen(LocalLauncher):
    """Its attempts cannot be listed."""

    def runs(self, owner: Identity) -> tuple[RunStatus, ...]:
        """They are refused."""
        raise AccessDeniedError("may not list jobs")


def test_a_deletion_goes_on_without_the_status_that_is_refused(tmp_path: Path) -> None:
    clock = TestClock()
    cluster = Going(tmp_path / "state", clock, lambda key, event: None)
    cluster.holds = []
    cluster.acquire()
    reconciler = Reconciler(cluster, Unseen(tmp_path / "attempts"), clock)
    key = cluster.apply(manifest("flights", **spec(location=f"file://{tmp_path}/t", deletionPolicy="Purge")))
    with pytest.raises(AccessDeniedError):
        reconciler.reconcile(key)
    cluster.deleted = rfc3339(clock.now())
    again = reconciler.reconcile(key)
    assert again is not None
    assert again.seconds < UNSEEN_SECONDS_MAX, "whether the attempt has ended is looked for again"
    assert cluster.holds == [True]
    clock.advance(UNSEEN_SECONDS_MAX + 1)
    reconciler.reconcile(key)
    assert cluster.holds == [True, False]
    cluster.release()
