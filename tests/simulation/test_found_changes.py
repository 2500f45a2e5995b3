"""What the simulator has found in changes of the table's version, each as the few steps that it
takes: before its mend the test fails."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from hudi_table.errors import ObjectNotFoundError, OutcomeUnknownError, UnavailableError
from hudi_table.model.names import PROPERTIES
from hudi_table.model.timeline.instants import Action, Instant
from hudi_table.services.upgrading.run import bring_to
from hudi_table.table.commit import recovery
from hudi_table.table.commit.transaction import begin
from hudi_table.table.store.ports import ObjectInfo, Storage
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.timeline import Timeline
from hudi_table.table.view.clustering_plans import ClusteringPlan, pending_clusterings
from hudi_table.write.checks.create_table import create
from tests.simulation.test_found import SIMPLE
from tests.support.aged import HOURS, AgedStorage
from tests.support.crashes import FIRST, new_store, opened, read, rows, spec
from tests.support.meanwhile import AfterPut


def table_of(version: int) -> Storage:
    store = new_store()
    create(store, replace(spec(SIMPLE), version=version))
    return store


def test_it_lists_again_where_a_listed_plan_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside a recovery that gave a clustering up it ended in a fault."""
    store = table_of(8)
    opened(store).write(rows(FIRST[0]), operation="upsert")
    inner, missed = pending_clusterings, list[str]()

    def once(ctx: TableContext, timeline: Timeline) -> dict[Instant, ClusteringPlan]:
        if ctx.changes_version and timeline.planner_claims and not missed:
            missed.append("20990101000000000.clustering.requested")
            raise ObjectNotFoundError("listed and gone", path=missed[0])
        return inner(ctx, timeline)

    monkeypatch.setattr(recovery, "pending_clusterings", once)
    died = begin(opened(store).context, Action.COMMIT)
    assert bring_to(opened(AgedStorage(store, HOURS)).context, 9).target == 9
    assert missed
    assert died.time not in {instant.time for instant in load_timeline(opened(store).context).pending}


@pytest.mark.parametrize(("opened_at", "target"), [(9, 6), (6, 9)])
def test_a_handle_from_before_writes_nothing_to_an_empty_table(opened_at: int, target: int) -> None:
    """Nothing lies in the other place, so it took the table for one of its version, and nobody who
    opened it later saw its commits."""
    store = table_of(opened_at)
    before = opened(store)
    bring_to(opened(store).context, target)
    with pytest.raises(UnavailableError, match=f"has version {target} now, and had {opened_at}"):
        before.write(rows(FIRST[0]), operation="upsert")
    opened(store).write(rows(FIRST[1]), operation="upsert")
    assert read(store) == {FIRST[1]}


def test_a_claim_that_a_refused_writer_takes_back_meanwhile_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was listed behind the decision, and could not be copied when it was gone."""
    store = table_of(6)
    opened(store).write(rows(FIRST[0]), operation="upsert")
    claim = ".hoodie/20990101000000000.commit.requested"

    class Changed(AfterPut):
        def get(self, path: str) -> bytes:
            if path == claim:
                store.delete(claim)
            return store.get(path)

    changed = Changed(store, "", lambda: None)
    changed.put_if_absent = _claims(store, claim)  # type: ignore[attr-defined]
    bring_to(opened(changed).context, 8)
    assert not load_timeline(opened(store).context).pending
    assert read(store) == {FIRST[0]}


def _claims(store: Storage, claim: str) -> Callable[[str, bytes], None]:
    """Creates what is asked for; with the decision comes the claim of another."""

    def put_if_absent(path: str, data: bytes) -> None:
        store.put_if_absent(path, data)
        if "/.txn/" in path:
            store.put(claim, b"")

    return put_if_absent


def test_a_put_that_comes_late_does_not_bring_an_earlier_version_back() -> None:
    """Its reply was lost; two changes later the table had the properties of one version and the
    timeline of another."""
    store = table_of(8)
    opened(store).write(rows(FIRST[0]), operation="upsert")
    late: list[tuple[ObjectInfo, bytes]] = []

    class Losing:
        def __getattr__(self, name: str) -> Any:
            return getattr(store, name)

        def replace(self, seen: ObjectInfo, data: bytes) -> None:
            if not late:
                late.append((seen, data))
                raise OutcomeUnknownError("no reply", path=seen.path)
            store.replace(seen, data)

    bring_to(opened(Losing()).context, 6)
    bring_to(opened(store).context, 9)
    ((seen, data),) = late
    assert seen.path == PROPERTIES
    with pytest.raises(UnavailableError):
        store.replace(seen, data)
    assert opened(store).context.config.version == 9
    assert read(store) == {FIRST[0]}
