"""What tests of plans of a TableService are made of."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from hudi_operator.api.parsing import parse
from hudi_operator.api.resources import DesiredService, desired_service
from hudi_operator.api.status import HudiTableStatus, PlanStatus, RunStatus, TableServiceStatus
from hudi_operator.plan.effects import Effect, Launch, SetStatus
from hudi_operator.plan.observed import FileFact, ObservedService, TableObservation, Trace
from hudi_operator.plan.service import plan_service
from hudi_table.model.service.services import ServiceType
from hudi_table.model.table.config import TableType
from tests.support.manifests import manifest, spec, stored
from tests.support.plans import COMMIT, CONFIG, NOW, desired, of

LOGGED = replace(CONFIG, type=TableType.MERGE_ON_READ)
PLAN = PlanStatus(
    "3f2a91bc00112233",
    "asked for",
    file_groups=2,
    files_before=6,
    files_after=2,
    bytes_read=40 << 20,
    bytes_written=20 << 20,
)


def service(status: dict[str, Any] | None = None, generation: int = 1, **spec: Any) -> DesiredService:
    """A Compaction of the table `flights`, created a day before NOW."""
    return desired_service(document_of(status, generation, **spec))


def document_of(status: dict[str, Any] | None = None, generation: int = 1, **spec: Any) -> dict[str, Any]:
    """The same as it is stored."""
    fields = {"tableRef": {"name": "flights"}, "type": "Compaction", **spec}
    return stored(manifest("upkeep", "TableService", **fields), generation=generation, status=status)


def logged(**changes: Any) -> TableObservation:
    """A merge-on-read table with logs of 2 MiB on a base file of 8."""
    found = TableObservation(
        LOGGED,
        commits=(COMMIT,),
        last_moment=NOW - timedelta(days=1),
        files=(FileFact("2013/01", 8 << 20, None, 2 << 20),),
        traces={ServiceType.COMPACTION: Trace(commits_since=5)},
        last_write=COMMIT.time,
    )
    return replace(found, **changes)


def seen(table: TableObservation | None = None, **rest: Any) -> ObservedService:
    owner = rest.pop("owner", {"type": "MergeOnRead"})
    wanted = desired(**owner) if isinstance(owner, dict) else owner
    return ObservedService(owner=wanted, table=table if table is not None else logged(), **rest)


def status_of(effects: list[Effect]) -> TableServiceStatus:
    (document,) = [effect.status for effect in effects if isinstance(effect, SetStatus)]
    found, errors = parse(TableServiceStatus, document, "status")
    assert not errors
    assert found is not None
    return found


def conditions(effects: list[Effect]) -> dict[str, tuple[str, str]]:
    return {c.type: (c.status, c.reason) for c in status_of(effects).conditions}


def launches(effects: list[Effect]) -> list[tuple[str, str]]:
    """(work, mode of the job) of what is started."""
    return [(launch.run.work, launch.spec.work["mode"]) for launch in of(Launch, effects)]


class Story:
    """One TableService from look to look: statuses are carried over, runs end as the test says."""

    def __init__(self, table: TableObservation | None = None, **spec: Any) -> None:
        self.spec = spec
        self.table = table if table is not None else logged()
        self.status: dict[str, Any] | None = None
        self.generation = 1
        self.runs: tuple[RunStatus, ...] = ()
        self.now = NOW
        self.effects: list[Effect] = []
        self.owner: dict[str, Any] = {"type": "MergeOnRead"}
        self.others: tuple[RunStatus, ...] = ()
        self.owner_runs: tuple[RunStatus, ...] = ()
        self.beside: dict[str, Any] = {}
        """What else is observed, by its field."""

    def look(self, later: float = 0.0) -> Story:
        """One judgement `later` seconds after the last."""
        self.now += timedelta(seconds=later)
        owner = desired(**self.owner)
        owner = replace(owner, status=HudiTableStatus(runs=self.owner_runs))
        observed = seen(self.table, owner=owner, runs=self.runs, others=self.others)
        observed = replace(observed, **self.beside)
        self.effects = plan_service(service(self.status, self.generation, **self.spec), observed, self.now)
        (document,) = of(SetStatus, self.effects)
        self.status = document.status
        self.runs = (*(launch.run for launch in of(Launch, self.effects)), *self.runs)
        return self

    def change(self, **spec: Any) -> Story:
        """Another generation of the manifest."""
        self.spec |= spec
        self.generation += 1
        return self

    def end(self, phase: str = "Succeeded", **changes: Any) -> Story:
        """The newest run ends 10 seconds after its start."""
        newest, *rest = self.runs
        self.now += timedelta(seconds=10)
        finished = self.now.strftime("%Y-%m-%dT%H:%M:%SZ")
        self.runs = (replace(newest, phase=phase, finished=finished, **changes), *rest)
        return self

    @property
    def documents(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The service and its table as they are stored."""
        table = stored(manifest(**spec(**self.owner)), status={})
        return document_of(self.status, self.generation, **self.spec), table

    @property
    def started(self) -> list[tuple[str, str]]:
        return launches(self.effects)

    @property
    def state(self) -> TableServiceStatus:
        return status_of(self.effects)

    @property
    def conditions(self) -> dict[str, tuple[str, str]]:
        return conditions(self.effects)
