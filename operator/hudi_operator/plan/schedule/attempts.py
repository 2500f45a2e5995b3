"""The next attempt at something: started now, or why not. One judgement for ingests, services and
purges."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from hudi_operator.api.resources import Identity
from hudi_operator.api.status import RunStatus
from hudi_operator.api.table import HudiTableSpec
from hudi_operator.manifests.attempts import attempt_name
from hudi_operator.plan.effects import Launch
from hudi_operator.plan.observed import Problem
from hudi_operator.plan.schedule.runs import DENIED, DONE, RetryPolicy, rfc3339, verdict
from hudi_table.model.counts import counted
from hudi_table.model.job.jobspec import JobSpec

QUEUED = "Queued"
"""Reason of an attempt that was not started because as many are at work as may be."""
QUEUE_SECONDS = 20.0
"""How soon it is asked again whether there is a turn."""
STEADY_SECONDS = 60.0
"""Credentials count as taken by an attempt that has committed, or lasted for so long."""


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
    """Another attempt would fail as the last one did, until somebody mends it. `again_seconds`:
    where nobody would tell that this was done, one is made all the same after so long."""

    problem: Problem
    again_seconds: float | None = None


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


def to_correct(spec: HudiTableSpec) -> str:
    """What somebody has to do where credentials are refused."""
    secret = spec.storage.credentials_secret_ref
    if secret is None:
        return "give credentials in a Secret that spec.storage.credentialsSecretRef names, or the account of its pods the rights"
    return f"correct Secret {secret.name} (spec.storage.credentialsSecretRef), or the rights of what it names"


def still_refused(
    spec: HudiTableSpec, runs: tuple[RunStatus, ...], committed: Mapping[str, str], now: datetime
) -> Iterator[tuple[str, Problem, float]]:
    """(work, why it stood still, seconds) of repeats that have just begun after a refusal. What was
    said of that stands for so long: a condition that came and went with each repeat would never
    last until somebody is called. `committed`: attempts that have."""
    for run in runs:
        if run.phase != "Running" or run.name in committed or run.started is None:
            continue
        same = (each for each in runs if each.work == run.work and each.generation == run.generation)
        before = next((each for each in same if each.attempt < run.attempt), None)
        left = STEADY_SECONDS - (now - datetime.fromisoformat(run.started)).total_seconds()
        if before is not None and before.phase not in DONE and before.reason == DENIED and left > 0:
            said = f"{before.message}; {to_correct(spec)}: attempt {run.attempt} is at work"
            yield run.work, Problem(DENIED, said), left


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
    if found.stalled is not None and found.again is not None:
        reason, said = found.stalled
        words = f"{said}; {to_correct(wanted.spec)}: it is tried again by itself at {rfc3339(found.again)}"
        return Stalled(Problem(reason, words), found.wait_seconds)
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
