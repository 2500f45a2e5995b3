"""Conditions of a HudiTable, computed from what was observed.

They follow kstatus: `Ready` is always there; `Reconciling` and `Stalled` are there only while they
are True. The others say how the table is kept and are never the cause of an unready table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from hudi_operator.api.ingests.ingest import FRESHNESS, IngestMode, IngestSpec
from hudi_operator.api.ingests.source import MESSAGES, SourceType
from hudi_operator.api.status import CONDITION_LENGTH_MAX, Condition, RunStatus
from hudi_operator.api.table import HudiTableSpec
from hudi_operator.api.words import one_line
from hudi_operator.manifests.quantities import human_bytes
from hudi_operator.plan.observed import Problem, SourceObservation, TableObservation
from hudi_operator.plan.schedule import retention, shards, streams, upstreams
from hudi_operator.plan.schedule.ingests import late_files
from hudi_operator.plan.schedule.runs import rfc3339
from hudi_operator.plan.status.report import YEARS, human_duration
from hudi_table.model.counts import counted
from hudi_table.model.job.jobspec import MEMORY_BYTES, RESIDENT_BYTES
from hudi_table.model.job.retention import Retention
from hudi_table.model.job.shards import StreamLag
from hudi_table.model.table.properties import METADATA_DROPPED, PARTITION_DROPPED

AT_RISK = "AtRisk"
FRESH = "Fresh"
LATE = frozenset({"MessagesWaiting", "CommitsWaiting", "FilesLate"})
"""Reasons of Fresh that tell of something that has waited for longer than `freshness`."""
METADATA_TABLE = "MetadataTable"
PARTITION_GONE = "PartitionDropped"
SHARED = "SharedLocation"
FOREIGN_WRITERS = "ForeignWriters"
PROPERTIES_LOST = "PropertiesLost"
UPGRADING = "Upgrading"
CALLBACKS_DELIVERED = "CallbacksDelivered"
READERS_SERVED = "ReadersServed"
UPGRADE_WANTED = "UpgradeNeedsApproval"
MEMORY_SHORT = "MemoryShort"
RISKS_TOLD = 5
LASTS = timedelta(minutes=10)
"""A driver that has lasted for so long has memory enough, whatever those before it had."""
_WITHOUT_METADATA = "; readers list the folders; a TableService of type Indexing builds it again"


@dataclass(frozen=True, slots=True)
class Finding:
    """A condition before it is compared with the last one."""

    type: str
    status: str
    reason: str
    message: str


def conditions_of(
    findings: Iterable[Finding], previous: tuple[Condition, ...], generation: int, now: datetime
) -> tuple[Condition, ...]:
    """Conditions of findings; the transition time moves only with the status."""
    known = {condition.type: condition for condition in previous}
    found = []
    for finding in findings:
        # Texts of stores, files and people are in it, and a message that is too long would have the whole status refused.
        message = one_line(finding.message, CONDITION_LENGTH_MAX)
        condition = Condition(finding.type, finding.status, finding.reason, message, rfc3339(now), generation)
        before = known.get(finding.type)
        if before is not None and before.status == condition.status:
            condition = replace(condition, last_transition_time=before.last_transition_time)
        found.append(condition)
    return tuple(found)


def fresh(
    spec: HudiTableSpec,
    table: TableObservation | None,
    sources: tuple[SourceObservation, ...],
    now: datetime,
    coming: Mapping[str, str],
) -> Finding:
    """Whether every file of the sources is in the table, and their messages, or those of lately;
    `coming`: the next moments of ingests that have a schedule. The table's debt stands in
    `debts`."""
    found = _fresh(spec, table, sources, now)
    if found.status == "True" or not coming:
        return found
    came = rfc3339(now)
    said = (f"{name} {'was due' if at <= came else 'runs next'} at {at}" for name, at in coming.items())
    return replace(found, message=f"{found.message}; {', '.join(said)}")


def _fresh(
    spec: HudiTableSpec, table: TableObservation | None, sources: tuple[SourceObservation, ...], now: datetime
) -> Finding:
    if not spec.ingest:
        return Finding("Fresh", "True", "NoIngest", "nothing is ingested here; other writers bring the rows")
    unseen = [s for s in sources if s.problem is not None]
    if unseen or len(sources) < len(spec.ingest):
        message = unseen[0].problem.message if unseen and unseen[0].problem else "the sources were not listed"
        return Finding("Fresh", "Unknown", "SourceNotSeen", message)
    named = {each.name: each for each in spec.ingest}
    left = {s.ingest: late_files(named[s.ingest], s, table, now) for s in sources if s.ingest in named}
    late = _late(spec, table, sources, now, left)
    if late is not None:
        return late
    total = sum(left.values())
    if total:
        names = ", ".join(name for name, files in left.items() if files)
        return Finding("Fresh", "False", "FilesWaiting", f"{counted(total, 'file')} of {names} not in the table yet")
    told = {s.ingest: s.queue for s in sources if s.queue is not None and s.queue.waiting}
    if told:
        total = sum(depth.waiting for depth in told.values())
        message = f"about {counted(total, 'message')} of the queue of {', '.join(told)} not taken yet"
        return Finding("Fresh", "False", "FilesWaiting", message)
    unbegun = [each.name for each in spec.ingest if _is_unbegun(each, table)]
    if unbegun:
        message = "; ".join(f"{name} has committed nothing yet" for name in unbegun)
        return Finding("Fresh", "False", "NothingCommitted", message)
    unknown = [found for each in spec.ingest if (found := shards.unknown(each, sources))]
    if unknown:
        return Finding("Fresh", "Unknown", "SourceNotAsked", "; ".join(unknown))
    missing = [found for each in spec.ingest if (found := upstreams.missing(each, sources))]
    if missing:
        return Finding(
            "Fresh", "Unknown", "NoUpstream", f"no table at {', '.join(missing)} yet: once there is one it is taken in"
        )
    empty = empty_sources(spec, table, sources)
    if empty:
        return Finding(
            "Fresh", "Unknown", "NoFiles", f"no files at {', '.join(empty)}: files that are put there are taken in"
        )
    aside = {s.ingest: s.queue.in_flight for s in sources if s.queue is not None and s.queue.in_flight}
    if aside:
        many, names = counted(sum(aside.values()), "message"), ", ".join(aside)
        message = (
            f"what the queue of {names} tells of is in the table, but for {many} that a run works on, or has set aside"
        )
        return Finding("Fresh", "True", "UpToDate", message)
    others = (each for each in spec.ingest if each.source.type is not SourceType.FILES or each.lists_continuously)
    if any(others) or any(each.source.notifications is not None for each in spec.ingest):
        return Finding("Fresh", "True", "UpToDate", "what the sources hold is in the table, but for what came just now")
    return Finding("Fresh", "True", "AllConsumed", "every file of the sources is in the table")


def _late(
    spec: HudiTableSpec,
    table: TableObservation | None,
    sources: tuple[SourceObservation, ...],
    now: datetime,
    files: Mapping[str, int],
) -> Finding | None:
    """What has waited for longer than `freshness`, None if nothing has; `files`: how many wait of
    each ingest, of one that a driver lists only those that have waited for longer."""
    late = [found for each in spec.ingest if (found := streams.late(each, table, sources, now))]
    late += [found for each in spec.ingest if (found := shards.late(each, sources, now))]
    if late:
        return Finding("Fresh", "False", "MessagesWaiting", "; ".join(late))
    behind = [found for each in spec.ingest if (found := upstreams.late(each, sources, now))]
    if behind:
        return Finding("Fresh", "False", "CommitsWaiting", "; ".join(behind))
    listed = [each for each in spec.ingest if each.lists_continuously and files.get(each.name)]
    if listed:
        words = (
            f"{counted(files[each.name], 'file')} of {each.name} not in the table yet for longer than {each.freshness or FRESHNESS}"
            for each in listed
        )
        return Finding("Fresh", "False", "FilesLate", "; ".join(words))
    return None


def _is_unbegun(ingest: IngestSpec, table: TableObservation | None) -> bool:
    """Whether a stream has no checkpoint, so that nobody knows what waits."""
    if ingest.source.kafka is not None:
        return table is None or table.positions(ingest.name) is None
    if ingest.source.kinesis is not None and ingest.source.range is None:
        return table is None or table.shards(ingest.name) is None
    return False


def at_risk(
    spec: HudiTableSpec, table: TableObservation | None, sources: tuple[SourceObservation, ...], now: datetime
) -> tuple[Finding, ...]:
    """Whether messages that wait in streams will be deleted before they are read; nothing of a
    table without streams."""
    streamed = [each for each in spec.ingest if each.source.type in MESSAGES and each.source.range is None]
    if not streamed:
        return ()
    seen = {each.ingest: each for each in sources}
    dangers, unknown = [], []
    for ingest in streamed:
        name, source = ingest.name, seen.get(ingest.name)
        if source is None or source.problem is not None:
            why = (
                source.problem.message if source is not None and source.problem is not None else "it was not looked at"
            )
            unknown.append(("SourceNotSeen", f"{name}: {why}"))
        elif ingest.source.kinesis is not None:
            danger, silence = _of_shards(ingest, table, source, now)
            dangers += danger
            unknown += silence
        elif table is None or table.positions(name) is None:
            unknown.append(("NothingCommitted", f"{name} has committed nothing yet"))
        elif source.retention is None or isinstance(source.retention, Problem):
            why = source.retention.message if source.retention is not None else "they were not asked"
            unknown.append(
                ("RetentionNotTold", f"the brokers of {name} do not tell how long they keep what waits: {why}")
            )
        else:
            dangers += _dangers(name, retention.standing_of(source, table, now) or retention.Standing())
            unknown += _silent(name, source.retention)
    if dangers:
        rest = "; read faster, or have the source keep more: docs/runbooks/HudiTableAtRisk.md"
        message = one_line("; ".join(dangers), CONDITION_LENGTH_MAX - len(rest)) + rest
        return (Finding(AT_RISK, "True", "DeletedUnread", message),)
    if unknown:
        return (Finding(AT_RISK, "Unknown", unknown[0][0], "; ".join(said for _, said in unknown)),)
    return (Finding(AT_RISK, "False", "KeptLongEnough", "what waits in the sources is kept until it is read"),)


def _of_shards(
    ingest: IngestSpec, table: TableObservation | None, source: SourceObservation, now: datetime
) -> tuple[list[str], list[tuple[str, str]]]:
    """Of Kinesis: what is in danger, and why that is not known."""
    name, positions = ingest.name, table.shards(ingest.name) if table is not None else None
    if positions is None:
        return [], [("NothingCommitted", f"{name} has committed nothing yet")]
    lag, why = source.lag, shards.unknown(ingest, (source,))
    unknown = [("SourceNotAsked" if lag is None else "RetentionNotTold", why)] if why else []
    risk = shards.risk_of(lag, positions, now) if isinstance(lag, StreamLag) else None
    if risk is None:
        return [], unknown
    left = _for(risk.left.total_seconds())
    if risk.waits:
        return [f"{name}: records wait that are not in the table, and the oldest can be deleted in {left}"], unknown
    return [f"{name}: its commits do not tell that the stream was read, and in {left} records may be lost"], unknown


def _silent(name: str, kept: Retention) -> list[tuple[str, str]]:
    if not kept.silent:
        return []
    return [("RetentionNotTold", f"{counted(kept.silent, 'partition')} of {name} did not tell what waits")]


def _dangers(name: str, standing: retention.Standing) -> list[str]:
    """One sentence for each partition at risk, the most urgent ones."""
    took = standing.catch_up
    pace = f"reading all that waits takes {_for(took)}" if took is not None else "how fast it reads is not known"
    found = []
    for risk in standing.risks[:RISKS_TOLD]:
        where = f"topic {risk.waits.topic}, partition {risk.waits.partition}"
        many = f"at most {counted(risk.waits.messages, 'message')}"
        found.append(
            f"{name}: of {where} {many} are not in the table, and the oldest can be deleted in {_for(risk.left.seconds)}"
        )
    if found:
        more = len(standing.risks) - len(found)
        found.append(f"{pace}{f', and {more} partitions more are so' if more else ''}")
    return found


def _for(seconds: float) -> str:
    return human_duration(timedelta(seconds=min(seconds, YEARS)))


def metadata_table(table: TableObservation | None) -> tuple[Finding, ...]:
    """Which partitions of the metadata table are ready, and which a write dropped alone, or why one
    switched it off; nothing of a table that was given none.

    Both are texts of the table's properties, which others write, too.
    """
    if table is None:
        return ()
    ready = ", ".join(sorted(table.config.metadata_partitions))
    why = " ".join(table.config.extra.get(METADATA_DROPPED, "").split())
    if ready and why.startswith(PARTITION_DROPPED):
        message = one_line(f"ready: {ready}; a write dropped {why}", CONDITION_LENGTH_MAX)
        return (Finding(METADATA_TABLE, "True", PARTITION_GONE, message),)
    if ready:
        return (Finding(METADATA_TABLE, "True", "Kept", one_line(f"ready: {ready}", CONDITION_LENGTH_MAX)),)
    if not why:
        return ()
    message = one_line(why, CONDITION_LENGTH_MAX - len(_WITHOUT_METADATA)) + _WITHOUT_METADATA
    return (Finding(METADATA_TABLE, "False", "SwitchedOff", message),)


def shared(sharers: Sequence[str]) -> tuple[Finding, ...]:
    """That other resources have their table where this one has, above or below it: both say so."""
    if not sharers:
        return ()
    message = f"{', '.join(sharers)} lie there, too, above or below it: the one whose table exists goes on, else the oldest, and the others wait; delete all but one"
    return (Finding(SHARED, "True", "SharedLocation", one_line(message, CONDITION_LENGTH_MAX)),)


def foreign_writers(spec: HudiTableSpec, table: TableObservation | None) -> tuple[Finding, ...]:
    """Other engines that have written the table lately, and what one of them dropped from its
    properties; nothing where there is none. A lock that the resource names is for them."""
    if table is None:
        return ()
    found = []
    if table.foreign:
        made = (
            f"{counted(len(table.foreign), 'recent commit')} of other engines, the last at {table.foreign[-1].time}; "
        )
        if spec.lock is None:
            message = (
                made + "beside them a row that both write at once can be lost: docs/explanation/foreign-writers.md"
            )
            found.append(Finding(FOREIGN_WRITERS, "True", "Seen", message))
        else:
            message = (
                made
                + f"the lock of {spec.lock.provider.value} keeps them and us apart, if they take it: docs/explanation/locks.md"
            )
            found.append(Finding(FOREIGN_WRITERS, "False", "UnderLock", message))
    if table.lost:
        rest = "; nothing is written until they are back: hudictl doctor --mend"
        names = one_line(f"another engine dropped or changed {', '.join(table.lost)}", CONDITION_LENGTH_MAX - len(rest))
        found.append(Finding(PROPERTIES_LOST, "True", "ByAnotherEngine", names + rest))
    return tuple(found)


def memory_short(spec: HudiTableSpec, runs: Sequence[RunStatus], generation: int, now: datetime) -> tuple[Finding, ...]:
    """Continuous drivers that were begun anew behind each commit, since it took the memory that
    they may have; nothing where there is none. `runs`: newest first."""
    found = []
    for ingest in (each for each in spec.ingest if each.mode is IngestMode.CONTINUOUS):
        own = [run for run in runs if run.work == f"Ingest/{ingest.name}" and run.generation == generation]
        at_work = (run.started for run in own if run.phase == "Running" and run.started is not None)
        lasts = any(now - datetime.fromisoformat(started) >= LASTS for started in at_work)
        lives = [run.figures for run in own if run.phase != "Running"][:2]
        short = [each for each in lives if RESIDENT_BYTES in each and each.get("commits", 0.0) <= 1]
        if not lasts and len(short) == 2:
            taken, most = (human_bytes(short[0].get(name, 0.0)) for name in (RESIDENT_BYTES, MEMORY_BYTES))
            found.append(f"the driver of {ingest.name} is begun anew behind each commit, with {taken} of {most} taken")
    if not found:
        return ()
    return (Finding(MEMORY_SHORT, "True", "EachCommit", f"{'; '.join(found)}: give spec.spark.driver.memory more"),)


def as_before(previous: Iterable[Condition], kind: str) -> tuple[Finding, ...]:
    """The finding of the last reconcile, where this one saw no table."""
    return tuple(Finding(c.type, c.status, c.reason, c.message) for c in previous if c.type == kind)


def empty_sources(
    spec: HudiTableSpec, table: TableObservation | None, sources: tuple[SourceObservation, ...]
) -> tuple[str, ...]:
    """Locations of sources that hold no file and of which the table has taken none: such a path may
    be misspelt."""
    taken = table.checkpoints if table is not None else {}
    seen = {s.ingest for s in sources if s.problem is None and not s.files and s.ingest not in taken}
    files = (ingest for ingest in spec.ingest if ingest.source.type is SourceType.FILES)
    return tuple(ingest.source.path or "" for ingest in files if ingest.name in seen)
