"""The next attempt at something: started now, or why not. One judgement for ingests, services and
purges."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from hudi_operator.api.resources import Identity
from hudi_operator.api.status import RunStatus
from hudi_operator.api.table import HudiTableSpec
from hudi_operator.manifests.attempts import attempt_name
from hudi_operator.plan.effects import Launch
from hudi_operator.plan.observed import Problem
from hudi_operator.plan.schedule.runs import RetryPolicy, rfc3339, verdict
from hudi_table.model.counts import counted
from hudi_table.model.job.jobspec import JobSpec

QUEUED = "Queued"
"""Reason of an attempt that was not started because as many are at work as may be."""
QUEUE_SECONDS = 20.0
"""How soon it is asked again whether there is a turn."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Something that is due: `work` on `batch`, for the resource of `owner`, on the table of
    `spec`.

    `job` makes the JobSpec of an attempt by its name. `number`: the attempt's, where the resource
    counts them itself.
    """

    owner: Identity
    spec: HudiTableSpec
    work: str
    batch: str
    job: Callable[[str], JobSpec]
    number: int | None = None


@dataclass(frozen=True, slots=True)
class Stalled:
    """Another attempt would fail as the last one did."""

    problem: Problem


@dataclass(frozen=True, slots=True)
class Waits:
    """The last attempt has failed, or others have their turn; the next one is due in so many
    seconds."""

    seconds: float
    message: str
    reason: str = "Retrying"


@dataclass(frozen=True, slots=True)
class Unlaunchable:
    """An attempt was due, and could not be started."""

    problem: Problem


def next_attempt(
    wanted: Wanted,
    runs: tuple[RunStatus, ...],
    unlaunchable: Mapping[str, Problem],
    *,
    policy: RetryPolicy,
    now: datetime,
) -> Launch | Stalled | Waits | Unlaunchable:
    """What is to be done about something that is due, given the runs of the resource, newest first;
    `unlaunchable`: what was refused to start just now, by work."""
    owner, work = wanted.owner, wanted.work
    found = verdict(runs, work, owner.generation, wanted.batch, policy=policy, now=now)
    if found.stalled is not None:
        return Stalled(Problem(*found.stalled))
    if found.wait_seconds > 0:
        wait = f"next attempt after {policy.wait_seconds(found.failures):.0f} s"
        return Waits(found.wait_seconds, f"{work} failed {counted(found.failures, 'time')}; {wait}")
    if work in unlaunchable:
        problem = unlaunchable[work]
        return Waits(QUEUE_SECONDS, problem.message, problem.reason) if problem.retryable else Unlaunchable(problem)
    number = wanted.number or found.number
    name = attempt_name(owner.key.name, owner.uid, work, owner.generation, number)
    run = RunStatus(name, work, "Running", owner.generation, number, batch=wanted.batch, started=rfc3339(now))
    secret = wanted.spec.storage.credentials_secret_ref
    return Launch(run, wanted.job(name), secret.name if secret is not None else None, wanted.spec.spark)
