"""What is remembered of a table between two reconciles: small facts of the commits on its timeline,
which cannot change, and the newest checkpoint of each ingest, wherever it stands.

A checkpoint is looked for among the newest commits, then among the older ones, then in the archive:
an ingest that rests is as little forgotten as one that a writer of another kind works beside. What
was found is kept as long as its commit stands on the timeline, or is older than all of it; one that
a restore has taken back is looked for again.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from hudi_operator.plan.observed import CommittedCheckpoint, Pace, Problem
from hudi_operator.runtime.observing.paces import Step, pace_of, step_of
from hudi_operator.runtime.observing.problems import problem_of
from hudi_table.errors import HudiError
from hudi_table.model.job.checkpoint import KEY_PREFIX, key_of
from hudi_table.model.table.readers import column_types
from hudi_table.model.timeline.instants import Instant, comparable_time, parse_instant_time
from hudi_table.sources.checkpoints import archived_checkpoints, read_any
from hudi_table.table.timeline.active import commit_metadata
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.timeline import Timeline

COMMITS_READ_MAX = 200
"""Of the newest commits rows and attempts are known; of older ones nothing is asked but
checkpoints."""


@dataclass(frozen=True, slots=True)
class CommitFact:
    """`operation`: the commit's operation type. `steps`: of the checkpoints that it holds.
    `event_times`: of its rows. `columns`: the types of Hudi 1.2's own that columns of its schema
    have, None where it has none."""

    operation: str
    steps: tuple[Step, ...]
    event_times: tuple[int, int] | None = None
    columns: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Held:
    """The newest checkpoint of an ingest: the instant of its commit, and its text."""

    time: str
    text: str


@dataclass(slots=True)
class KnownTable:
    """Facts of one table. `rows`: of its live files, by path, as far as commits tell them."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    rows: dict[str, int] = field(default_factory=dict)
    _commits: dict[str, CommitFact] = field(default_factory=dict)
    _held: dict[str, Held] = field(default_factory=dict)
    _absent: set[str] = field(default_factory=set)
    _newest: str = ""

    @property
    def weight(self) -> int:
        """How much is remembered, in facts of a few hundred bytes."""
        texts = sum(len(held.text) for held in self._held.values())
        return 1 + len(self._commits) + len(self.rows) + texts // 256

    def learn(self, ctx: TableContext, timeline: Timeline, ingests: Collection[str]) -> dict[str, Problem]:
        """Take in what is new on a timeline; why the checkpoint of some ingest is not known. Raises
        HudiError."""
        self._let_go(timeline)
        found: dict[str, Instant] = {}
        for place, instant in enumerate(reversed(timeline.commits)):
            if place >= COMMITS_READ_MAX and all(name in found for name in ingests):
                break
            for step in self._fact(ctx, instant, with_rows=place < COMMITS_READ_MAX).steps:
                found.setdefault(step.ingest, instant)
        for name, instant in found.items():
            held = self._held.get(name)
            if held is None or held.time != instant.time:
                self._held[name] = Held(instant.time, commit_metadata(ctx, instant).extra_metadata[key_of(name)])
        self._newest = timeline.commits[-1].time if timeline.commits else ""
        return self._from_archive(ctx, [n for n in ingests if n not in self._held and n not in self._absent])

    def _from_archive(self, ctx: TableContext, missing: list[str]) -> dict[str, Problem]:
        if not missing:
            return {}
        try:
            found = archived_checkpoints(ctx, missing)
        except HudiError as error:
            return dict.fromkeys(missing, problem_of(error))
        self._held |= {name: Held(time, text) for name, (time, text) in found.items()}
        self._absent |= set(missing) - found.keys()
        return {}

    def _let_go(self, timeline: Timeline) -> None:
        """Forget what holds no more."""
        there = {instant.file_name for instant in timeline.commits}
        self._commits = {name: fact for name, fact in self._commits.items() if name in there}
        if not timeline.commits:
            self._held, self._absent = {}, set()
            return
        times = {instant.time for instant in timeline.commits}
        first = comparable_time(timeline.commits[0].time)
        if self._newest and comparable_time(self._newest) < first:
            # What was written and archived since the last reconcile was never seen.
            self._held, self._absent = {}, set()
        self._held = {
            name: held for name, held in self._held.items() if held.time in times or comparable_time(held.time) < first
        }

    def _fact(self, ctx: TableContext, instant: Instant, *, with_rows: bool) -> CommitFact:
        known = self._commits.get(instant.file_name)
        if known is None:
            commit = commit_metadata(ctx, instant)
            steps = tuple(
                step_of(key.removeprefix(KEY_PREFIX), text, commit)
                for key, text in commit.extra_metadata.items()
                if key.startswith(KEY_PREFIX)
            )
            known = self._commits[instant.file_name] = CommitFact(
                commit.operation_type or "",
                steps,
                commit.event_times,
                column_types(commit.avro_schema) if commit.avro_schema else None,
            )
            if with_rows:
                self.rows |= {stat.path: stat.num_writes for stat in commit.stats}
        return known

    def keep_rows(self, paths: Iterable[str]) -> None:
        """These files are live; rows of no other are remembered."""
        self.rows = {path: self.rows[path] for path in paths if path in self.rows}

    def operations(self, timeline: Timeline) -> Mapping[str, str]:
        """Instant → operation type of the newest commits."""
        newest = timeline.commits[-COMMITS_READ_MAX:]
        return {i.time: self._commits[i.file_name].operation for i in newest if i.file_name in self._commits}

    def event_times(self, timeline: Timeline) -> tuple[int, int] | None:
        """(the smallest of the newest commit that records any, the largest of the newest commits),
        in milliseconds since 1970."""
        newest = timeline.commits[-COMMITS_READ_MAX:]
        facts = [self._commits[i.file_name] for i in newest if i.file_name in self._commits]
        found = [fact.event_times for fact in facts if fact.event_times is not None]
        return (found[-1][0], max(most for _, most in found)) if found else None

    def columns(self, ctx: TableContext, timeline: Timeline) -> tuple[str, ...]:
        """The types of Hudi 1.2's own that columns of the table have."""
        for instant in reversed(timeline.commits[-COMMITS_READ_MAX:]):
            fact = self._commits.get(instant.file_name)
            if fact is not None and fact.columns is not None:
                return fact.columns
        return column_types(ctx.config.create_schema)

    def attempts(self, timeline: Timeline) -> dict[str, str]:
        """Attempt → instant of the newest commits."""
        newest = timeline.commits[-COMMITS_READ_MAX:]
        facts = [(i, self._commits[i.file_name]) for i in newest if i.file_name in self._commits]
        return {step.attempt: i.time for i, fact in facts for step in fact.steps if step.attempt}

    def paces(self, ctx: TableContext, timeline: Timeline) -> dict[str, Pace]:
        """Of each ingest that the newest commits tell of."""
        newest = timeline.commits[-COMMITS_READ_MAX:]
        found: dict[str, list[tuple[datetime, Step]]] = {}
        for instant in newest:
            fact = self._commits.get(instant.file_name)
            for step in fact.steps if fact is not None else ():
                found.setdefault(step.ingest, []).append((moment_of(ctx, instant.time), step))
        return {name: pace_of(steps, ctx.clock.now()) for name, steps in found.items()}

    def checkpoints(self, ctx: TableContext) -> tuple[dict[str, CommittedCheckpoint], dict[str, Problem]]:
        """(newest checkpoint of each ingest, why that of others cannot be read)."""
        found: dict[str, CommittedCheckpoint] = {}
        damaged: dict[str, Problem] = {}
        for name, held in self._held.items():
            try:
                found[name] = CommittedCheckpoint(read_any(ctx, name, held.time, held.text), held.time)
            except HudiError as error:
                damaged[name] = problem_of(error)
        return found, damaged


def moment_of(ctx: TableContext, time: str) -> datetime:
    """When an instant began, in UTC."""
    naive = parse_instant_time(time)
    return naive.replace(tzinfo=UTC) if ctx.config.timezone == "UTC" else naive.astimezone(UTC)
