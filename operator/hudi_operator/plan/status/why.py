"""Why a table stands still, in plain words, each cause with the next command. Pure: what is known
comes in as documents.

In the order in which somebody would look: is it seen at all, does it stand still, does something
wait, what is due, what is advised.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from hudi_operator.api import documents
from hudi_operator.api.documents import Document
from hudi_operator.plan.status import overview
from hudi_operator.plan.status.pods import is_starting, start_events, troubles
from hudi_table.model.table.config import IndexType

SEEN_SECONDS_MAX = 60
LEASE = "hudi-operator"
REFUSED = "the API server refuses"
"""How a refusal begins that is the cluster's, not the store's."""
_BESIDE = "a driver of mode Continuous: other attempts work beside it"
_WAITS = "other attempts on this table wait for it, but for drivers of mode Continuous"
_SERVICE_OF = {
    "Compacted": "Compaction", "WellSized": "Clustering", "Clean": "Cleaning", "Archived": "Archiving",
    "MetadataTable": "Indexing",
}  # fmt: skip
_INDEXES = {each.value: each for each in IndexType}


class Level(StrEnum):
    """How a cause stands to the table: it stops it, is the failure of one service, a wait that ends
    by itself or by an approval, work that goes on, a debt, or a word about what would cost less."""

    BLOCKS = "blocks"
    FAILED = "failed"
    WAITS = "waits"
    RUNS = "runs"
    DEBT = "debt"
    ADVICE = "advice"


@dataclass(frozen=True, slots=True)
class Cause:
    """One cause. `next` is a command, or empty where there is nothing to do."""

    level: Level
    what: str
    why: str
    next: str = ""
    since: str | None = None


@dataclass(frozen=True, slots=True)
class Facts:
    """What was found beside the table. `holder`: who leads, '' if nobody does, None if that could
    not be seen."""

    services: Sequence[Document] = ()
    pods: Sequence[Document] = ()
    events: Sequence[Document] = ()
    holder: str | None = None


def causes(table: Document, facts: Facts, now: datetime) -> list[Cause]:
    """Every cause, the gravest first."""
    own = [each for each in facts.services if documents.table_of(each) == documents.name_of(table)]
    causes_found = [
        *_unseen(table, facts, now),
        *_standstill(table),
        *_suspended(table),
        *troubles_of(table, facts),
        *_work(table, own),
        *(cause for service in own for cause in _service(table, service)),
        *_debts(table, own),
        *_advice(table),
    ]
    order = list(Level)
    return sorted(dict.fromkeys(causes_found), key=lambda cause: order.index(cause.level))


def _unseen(table: Document, facts: Facts, now: datetime) -> Iterator[Cause]:
    """Whether an operator reconciles it at all."""
    if table["metadata"].get("deletionTimestamp"):
        held = ", ".join(table["metadata"].get("finalizers") or ()) or "nothing of ours"
        yield Cause(Level.BLOCKS, "it is being deleted", f"finalizers that hold it: {held}", _get(table, "-o yaml"))
    if documents.is_seen(table) and facts.holder != "":
        return
    generation = table["metadata"].get("generation", 1)
    seen = documents.status_of(table).get("observedGeneration", 0)
    leases = f"kubectl get lease -A --field-selector metadata.name={LEASE}"
    if facts.holder == "":
        yield Cause(
            Level.BLOCKS, "no operator leads", f"nobody holds the Lease {LEASE}, so nothing is reconciled", leases
        )
    elif (overview.since(_changed(table), now) or 0) > SEEN_SECONDS_MAX:
        holder = f"{facts.holder} leads" if facts.holder else "who leads cannot be seen"
        why = f"generation {generation} of the manifest was not reconciled (the status speaks of {seen}); {holder}"
        yield Cause(Level.BLOCKS, "the operator has not reconciled it", why, leases)


def _changed(document: Document) -> str | None:
    """When somebody last changed the manifest."""
    fields = document["metadata"].get("managedFields") or ()
    moments = [str(each["time"]) for each in fields if not each.get("subresource") and each.get("time")]
    created = document["metadata"].get("creationTimestamp")
    return max([*moments, *([str(created)] if created else [])], default=None)


def _standstill(table: Document) -> Iterator[Cause]:
    stalled, ready = documents.condition_of(table, "Stalled"), documents.condition_of(table, "Ready")
    busy = documents.condition_of(table, "Reconciling")
    if stalled.get("status") == "True":
        reason, message = str(stalled.get("reason")), str(stalled.get("message"))
        yield Cause(
            Level.BLOCKS,
            f"stalled: {reason}",
            message,
            _mend(table, reason, message),
            stalled.get("lastTransitionTime"),
        )
    elif ready.get("status") == "Unknown":
        next_ = f"hudictl explain {ready.get('reason')}"
        yield Cause(Level.BLOCKS, f"it cannot be seen: {ready.get('reason')}", str(ready.get("message")), next_)
    elif ready.get("reason") == "NoTable":
        yield Cause(Level.WAITS, "there is no table yet", str(ready.get("message")), _get(table, "-o yaml"))
    if busy.get("status") == "True" and busy.get("reason") in ("Retrying", "Queued"):
        why, began = str(busy.get("message")), busy.get("lastTransitionTime")
        yield Cause(
            Level.WAITS,
            "it waits for its turn" if busy.get("reason") == "Queued" else "it is tried again",
            why,
            _hudi(table, "logs"),
            began,
        )


def _mend(table: Document, reason: str, message: str) -> str:
    """The command that somebody would type next."""
    namespace = documents.namespace_of(table)
    secret = (table.get("spec", {}).get("storage", {}).get("credentialsSecretRef") or {}).get("name")
    if "credentialsSecretRef" in message and secret:
        values = "--from-literal=AWS_ACCESS_KEY_ID=… --from-literal=AWS_SECRET_ACCESS_KEY=…"
        return f"kubectl create secret generic {secret} -n {namespace} {values}"
    if "exceeded quota" in message:
        return f"kubectl describe quota -n {namespace}"
    if reason == "AccessDenied" and REFUSED in message:
        return f"kubectl describe role,rolebinding -n {namespace}"
    if reason in ("InvalidSpec", "InvalidOption", "LauncherNotServed"):
        return f"kubectl edit {_resource(table)}"
    if reason == "AccessDenied" and secret:
        return f"kubectl get secret {secret} -n {namespace}"
    if reason in ("JobLost", "InvalidData", "InvalidSchema", "Invariant", "DeadlineExceeded"):
        return _hudi(table, "logs")
    return f"hudictl explain {reason}"


def _suspended(resource: Document) -> Iterator[Cause]:
    if documents.is_suspended(resource):
        patch = """--type merge -p '{"spec":{"suspend":false}}'"""
        of = "it" if resource.get("kind") == "HudiTable" else f"TableService {documents.name_of(resource)}"
        level = Level.BLOCKS if resource.get("kind") == "HudiTable" else Level.WAITS
        yield Cause(level, f"{of} is suspended", "spec.suspend is set: no new run is started", _patch(resource, patch))


def troubles_of(table: Document, facts: Facts) -> Iterator[Cause]:
    """Pods that cannot start."""
    for pod in facts.pods:
        for reason, message in troubles(pod):
            name = documents.name_of(pod)
            next_ = f"kubectl describe pod {name} -n {documents.namespace_of(pod)}"
            yield Cause(Level.BLOCKS, f"pod {name} does not start: {reason}", message, next_)
    yield from _events_of_pods(table, facts)
    for event in facts.events:
        if event.get("reason") == "FailedCreate":
            of = event.get("involvedObject") or {}
            next_ = f"kubectl describe job {of.get('name')} -n {documents.namespace_of(table)}"
            why = str(event.get("message"))
            yield Cause(Level.BLOCKS, f"Job {of.get('name')} gets no pod", why, next_, event.get("lastTimestamp"))


def _events_of_pods(table: Document, facts: Facts) -> Iterator[Cause]:
    """What only events tell: a sandbox that cannot be made, a volume that is not there, and why a
    pod that is gone never ran."""
    pods = {documents.name_of(pod): pod for pod in facts.pods}
    known = {name for name, pod in pods.items() if any(troubles(pod))}
    for name, event in start_events(facts.events).items():
        pod = pods.get(name)
        if name in known or (pod is not None and not is_starting(pod)):
            continue
        why, since = f"{event.get('message')}", documents.moment_of(event)
        namespace = documents.namespace_of(table)
        if pod is not None:
            next_ = f"kubectl describe pod {name} -n {namespace}"
            yield Cause(Level.BLOCKS, f"pod {name} does not start: {event.get('reason')}", why, next_, since)
        else:
            next_ = f"kubectl get events -n {namespace} --field-selector involvedObject.name={name}"
            yield Cause(Level.FAILED, f"pod {name} did not start: {event.get('reason')}", why, next_, since)


def _work(table: Document, services: Sequence[Document]) -> Iterator[Cause]:
    for resource in (table, *services):
        for run in documents.running_of(resource):
            waits = _BESIDE if documents.is_driver(run) else _WAITS
            why = f"attempt {run.get('attempt')} as {run.get('name')}; {waits}"
            yield Cause(
                Level.RUNS, f"{run.get('work')} is at work", why, _hudi(table, "logs", "-f"), run.get("started")
            )


def _service(table: Document, service: Document) -> Iterator[Cause]:
    name, plan = documents.name_of(service), documents.plan_of(service)
    stalled, busy = documents.condition_of(service, "Stalled"), documents.condition_of(service, "Reconciling")
    head = f"TableService {name} ({service.get('spec', {}).get('type')})"
    yield from _suspended(service)
    if stalled.get("status") == "True":
        reason, why = str(stalled.get("reason")), str(stalled.get("message"))
        edits = reason in ("InvalidSpec", "TableMissing", "TableNotReady")
        next_ = _get(service, "-o yaml") if edits else _hudi(service, "logs")
        began = stalled.get("lastTransitionTime")
        yield Cause(Level.FAILED, f"{head} is stalled: {reason}", why, next_, began)
    elif documents.condition_of(service, "Ready").get("status") == "False" and busy.get("status") != "True":
        ready = documents.condition_of(service, "Ready")
        why = str(ready.get("message"))
        yield Cause(Level.FAILED, f"{head} failed: {ready.get('reason')}", why, _hudi(service, "logs"))
    if busy.get("status") == "True" and busy.get("reason") in ("Waiting", "Queued", "Retrying", "NoTable"):
        why = str(busy.get("message"))
        yield Cause(Level.WAITS, f"{head} waits", why, _hudi(table, "status"), busy.get("lastTransitionTime"))
    if documents.is_true(service, "PlanStale"):
        stale = documents.condition_of(service, "PlanStale")
        why = f"{stale.get('message')}; a new plan wants a new approval"
        yield Cause(Level.WAITS, f"the plan of {head} is stale", why, _hudi(table, "plan"))
    elif overview.waits(service):
        why = f"plan {plan.get('digest')}: {plan.get('why')}"
        yield Cause(Level.WAITS, f"{head} waits for approval", why, _hudi(service, "approve"), plan.get("made"))


def _debts(table: Document, services: Sequence[Document]) -> Iterator[Cause]:
    fresh = documents.condition_of(table, "Fresh")
    idle = not any(documents.running_of(each) for each in (table, *services))
    if fresh.get("status") == "False" and idle:
        yield Cause(Level.DEBT, "files wait to be taken", str(fresh.get("message")), _get(table, "-o yaml"))
    elif fresh.get("reason") == "NoFiles":
        yield Cause(Level.WAITS, "a source holds no files", str(fresh.get("message")), _get(table, "-o yaml"))
    elif fresh.get("status") == "Unknown":
        next_ = f"hudictl explain {fresh.get('reason')}" if fresh.get("reason") != "SourceNotSeen" else ""
        yield Cause(Level.BLOCKS, "a source cannot be seen", str(fresh.get("message")), next_ or _get(table, "-o yaml"))
    if documents.is_true(table, "AtRisk"):
        risk = documents.condition_of(table, "AtRisk")
        why, since = str(risk.get("message")), risk.get("lastTransitionTime")
        yield Cause(Level.FAILED, "messages will be deleted unread", why, _hudi(table, "logs"), since)
    for kind, service in _SERVICE_OF.items():
        condition = documents.condition_of(table, kind)
        if condition.get("status") != "False":
            continue
        verb = "plan" if service == "Clustering" else "run"
        index = _INDEXES.get(str((table.get("spec", {}).get("index") or {}).get("type")))
        bucketed = index is not None and index.has_fixed_buckets
        next_ = _hudi(table, verb, service) if not (service == "Clustering" and bucketed) else ""
        next_ = "" if condition.get("reason") == "FailedWrites" else next_
        began = condition.get("lastTransitionTime")
        yield Cause(
            Level.DEBT, f"{service} is due: {condition.get('reason')}", str(condition.get("message")), next_, began
        )
    shared = documents.condition_of(table, "SharedLocation")
    if shared.get("status") == "True":
        why, began = str(shared.get("message")), shared.get("lastTransitionTime")
        yield Cause(Level.FAILED, "its location is not its own", why, "kubectl get ht -A -o wide", began)
    if documents.is_true(table, "ResizeNeedsApproval"):
        resize = documents.condition_of(table, "ResizeNeedsApproval")
        yield Cause(
            Level.WAITS, "a resize waits for a plan", str(resize.get("message")), _hudi(table, "plan", "Resize")
        )
    yield from _versions(table)


def _versions(table: Document) -> Iterator[Cause]:
    """Another table version that is wanted, and readers that cannot read the table."""
    wish = documents.condition_of(table, "UpgradeNeedsApproval")
    if wish.get("status") == "True":
        target = str((table.get("spec") or {}).get("tableVersion"))
        next_ = _hudi(table, "plan", "Upgrade", "--to", target)
        yield Cause(Level.WAITS, "another table version waits for a plan", str(wish.get("message")), next_)
    served = documents.condition_of(table, "ReadersServed")
    if served.get("status") == "False":
        yield Cause(Level.DEBT, "a reader cannot read it", str(served.get("message")), _get(table, "-o yaml"))


def _advice(table: Document) -> Iterator[Cause]:
    index = documents.index_of(table)
    kind, better = str(index.get("type")), index.get("better")
    if not index.get("advice"):
        return
    if better is None:
        what, next_ = f"its index {kind} could do better", f"kubectl edit {_resource(table)}"
    else:
        what = f"index {better} would read less than {kind}"
        # Another index than these takes a table that is written anew.
        patch = f"""--type merge -p '{{"spec":{{"index":{{"type":"{better}"}}}}}}'"""
        next_ = _patch(table, patch) if _can_become(kind, str(better)) else ""
    yield Cause(Level.ADVICE, what, "; ".join(map(str, index["advice"])), next_)


def _can_become(kind: str, better: str) -> bool:
    return kind in _INDEXES and better in _INDEXES and _INDEXES[kind].can_become(_INDEXES[better])


def _resource(document: Document) -> str:
    short = {"HudiTable": "ht", "TableService": "tsvc"}[str(document["kind"])]
    return f"{short} {documents.name_of(document)} -n {documents.namespace_of(document)}"


def _get(document: Document, *more: str) -> str:
    return " ".join(["kubectl get", _resource(document), *more])


def _patch(document: Document, patch: str) -> str:
    return f"kubectl patch {_resource(document)} {patch}"


def _hudi(document: Document, verb: str, *more: str) -> str:
    return " ".join(["kubectl hudi", verb, documents.name_of(document), *more, "-n", documents.namespace_of(document)])


def row(cause: Cause) -> dict[str, Any]:
    """As a document has it."""
    return {
        "level": cause.level.value, "what": cause.what, "why": cause.why, "next": cause.next or None, "since": cause.since,
    }  # fmt: skip
