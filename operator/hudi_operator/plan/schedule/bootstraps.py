"""A bootstrap: whether it is still to be made. It makes the table, so it is never made again, and
nothing else writes before."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from hudi_operator.api.fields.bootstrap import BootstrapSpec
from hudi_operator.api.status import Condition, RunStatus
from hudi_operator.api.table import HudiTableSpec
from hudi_operator.plan.observed import Problem, TableObservation
from hudi_operator.plan.schedule.runs import DONE
from hudi_table.model.table.version_properties import BOOTSTRAP_BASE

WORK, BOOTSTRAPPED, GONE = "Bootstrap", "Bootstrapped", "TableGone"


def is_due(spec: HudiTableSpec, table: TableObservation | None) -> bool:
    """Whether there is no table yet, nor a row of one. A bootstrap that was cut short may have left
    an empty one."""
    return spec.bootstrap is not None and (table is None or not table.commits)


def batch_of(bootstrap: BootstrapSpec) -> str:
    """What an attempt is for."""
    said = f"{bootstrap.path}\n{bootstrap.mode.value}\n{bootstrap.pattern or ''}"
    return hashlib.sha256(said.encode()).hexdigest()[:20]


def was_made(table: TableObservation | None, runs: Iterable[RunStatus], before: Iterable[Condition]) -> bool:
    """Whether a bootstrap has made the table, as far as anything tells: an earlier status, a run,
    or the table's own properties."""
    told = any(each.type == BOOTSTRAPPED and each.status == "True" for each in before)
    if told or any(run.work == WORK and run.phase in DONE for run in runs):
        return True
    return table is not None and bool(table.config.extra.get(BOOTSTRAP_BASE, "").strip())


def gone(location: str) -> Problem:
    """Of a table that was bootstrapped once, and of which nothing is left."""
    return Problem(
        GONE,
        f"the table at {location} was bootstrapped and is not there any more, and a bootstrap is made once: "
        "put the table back, or leave bootstrap out, and the first rows make an empty one",
    )
