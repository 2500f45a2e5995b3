"""What tests of plans are made of: something desired, something seen, and the effects looked
into."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from hudi_operator.api.parsing import parse
from hudi_operator.api.resources import DesiredTable, desired_table
from hudi_operator.api.status import HudiTableStatus, RunStatus
from hudi_operator.plan.effects import Effect, Launch, SetStatus
from hudi_operator.plan.observed import CommittedCheckpoint, FileFact, Observed, SourceObservation, TableObservation
from hudi_table.model.job.checkpoint import SourceFile, advance
from hudi_table.model.table.config import IndexSpec, IndexType, MergeMode, TableConfig, TableType
from hudi_table.model.timeline.instants import Action, Instant, State
from tests.support.manifests import manifest, spec, stored

NOW = datetime(2026, 1, 2, tzinfo=UTC)
CONFIG = TableConfig(
    name="flights",
    type=TableType.COPY_ON_WRITE,
    record_key=("id",),
    ordering_fields=("ts",),
    merge_mode=MergeMode.EVENT_TIME,
    index=IndexSpec(IndexType.BUCKET, 4),
)
FILES = tuple(SourceFile(f"{i}.parquet", 100, f"v{i}", NOW - timedelta(minutes=10 - i)) for i in range(3))
COMMIT = Instant("20260101000000000", Action.COMMIT, State.COMPLETED)


def desired(status: dict[str, Any] | None = None, generation: int = 1, **changes: Any) -> DesiredTable:
    return desired_table(stored(manifest(**spec(**changes)), generation=generation, status=status))


def table(*consumed: SourceFile, attempt: str = "a", **changes: Any) -> TableObservation:
    checkpoints = {}
    if consumed:
        checkpoints["feed"] = CommittedCheckpoint(advance(None, "feed", attempt, consumed, consumed), COMMIT.time)
    found = TableObservation(
        CONFIG,
        commits=(COMMIT,),
        last_moment=NOW - timedelta(days=1),
        files=(FileFact("2013/01", 200 << 20, 7),),
        checkpoints=checkpoints,
        attempts={attempt: COMMIT.time} if consumed else {},
    )
    return replace(found, **changes)


def seen(found: TableObservation | None = None, files: tuple[SourceFile, ...] = FILES, **rest: Any) -> Observed:
    return Observed(table=found, sources=(SourceObservation("feed", files),), **rest)


def status_of(effects: list[Effect]) -> HudiTableStatus:
    (document,) = [effect.status for effect in effects if isinstance(effect, SetStatus)]
    found, errors = parse(HudiTableStatus, document, "status")
    assert not errors
    assert found is not None
    return found


def conditions(effects: list[Effect]) -> dict[str, tuple[str, str]]:
    return {c.type: (c.status, c.reason) for c in status_of(effects).conditions}


def of(kind: type, effects: list[Effect]) -> list[Any]:
    return [effect for effect in effects if isinstance(effect, kind)]


def run_after(effects: list[Effect], phase: str, **changes: Any) -> RunStatus:
    """The launched run, ended a moment after it started."""
    (launch,) = of(Launch, effects)
    ended = {"finished": "2026-01-02T00:00:05Z"} if phase != "Running" else {}
    return replace(launch.run, phase=phase, **(ended | changes))
