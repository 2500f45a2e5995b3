"""Other engines on the same timeline: what they complete or plan has no entry in the decision
chain.

Section 2.6 of `docs/explanation/commit-protocol.md`: just before a decision the timeline is listed
again, and what appeared since the snapshot without an entry is held against the attempt by the
rules that hold between our own. Between that listing and the decision another engine is not seen,
unless both take a lock: `beside/locking.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial

from hudi_table.errors import CorruptTableError, WriteAbortedError, WriteConflictError
from hudi_table.model.names import BOOTSTRAPS, METADATA_TABLE, parse_log_file
from hudi_table.model.table.properties import METADATA_PARTITIONS
from hudi_table.model.timeline import conflict_keys
from hudi_table.model.timeline.chain import ChainEntry, Kind, entry_path
from hudi_table.model.timeline.commits import CommitMetadata
from hudi_table.model.timeline.instants import (
    PLANNED_ACTIONS,
    WRITE_ACTIONS,
    Action,
    Instant,
    State,
    comparable_time,
    parse_instant,
)
from hudi_table.table.commit.conflicts import CLUSTER, Claimed, group_conflict_keys
from hudi_table.table.commit.rollback import open_rollbacks
from hudi_table.table.commit.undo import planned_undo
from hudi_table.table.store.at_once import at_once
from hudi_table.table.store.local import LocalStorage
from hudi_table.table.store.ports import plain
from hudi_table.table.timeline import chain
from hudi_table.table.timeline.active import commit_metadata, list_timeline, load_timeline
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.layout import decode_commit, encode_commit
from hudi_table.table.timeline.properties import read_properties
from hudi_table.table.timeline.schemas import table_schema
from hudi_table.table.timeline.timeline import Timeline
from hudi_table.table.view.clustering_plans import planned_clustering
from hudi_table.table.view.compaction_plans import planned_slices

_OURS = "hoodie.lakeops."
_SECOND = len("20260101000000")
COMMITS_MAX = 50
"""Writes that are looked at to see whether another engine writes: one read of a chain entry each,
once."""
_SERVICES = frozenset({"COMPACT", "LOG_COMPACT"})
"""Operations that move rows without a change of any: their plan is what excludes others."""
_PLANS = PLANNED_ACTIONS | {Action.REPLACE_COMMIT, Action.CLUSTERING, Action.CLEAN, Action.RESTORE, Action.ROLLBACK}


@dataclass(slots=True)
class Neighbours:
    """What else happens on the timeline of an attempt at the instant `time`, whose claim is the
    file `claim` and whose snapshot is `snapshot`. `walked` are the decisions of the chain that it
    has come across since."""

    ctx: TableContext
    time: str
    claim: str
    snapshot: Timeline
    walked: set[str] = field(default_factory=set)
    metadata_moved: bool = False
    listed: Timeline | None = field(default=None, repr=False)
    newest: frozenset[str] | None = field(default=None, repr=False)
    under_lock: Timeline | None = field(default=None, repr=False)
    """A listing under the lock that the decision holds, behind which nothing else was done."""
    since: str = ""
    """Where the second and later listings begin."""
    counted: Callable[[Instant], bool] | None = field(default=None, repr=False)
    """Whether what another engine takes back may have been in the snapshot, where that does not
    tell: it was made of a listing behind it."""

    def passed(self, entry: ChainEntry) -> None:
        """A decision of the chain, which is not another engine's."""
        self.walked.add(entry.name)
        self.metadata_moved = self.metadata_moved or conflict_keys.moves_metadata(entry.conflict_keys)

    def relist_ahead(self) -> None:
        """List the timeline for the first `relist`, while something else is waited for that comes
        before the decision as well."""
        self.listed = list_timeline(self.ctx)

    def relist_newest_ahead(self) -> None:
        """The same for a later `relist`, of what began no earlier than the oldest instant that was
        pending when the whole was listed: little, however long the timeline is.

        It does not show what another engine, whose clock is behind, has begun since under an older
        instant.
        """
        self.forget()
        if not self.since or isinstance(plain(self.ctx.storage), LocalStorage):
            # On a local disk all names are read anyway.
            self.relist_ahead()
            return
        folder = self.ctx.layout.timeline_folder
        infos, metadata = at_once(
            self.ctx.storage,
            lambda: self.ctx.storage.list(folder, start_after=f"{folder}/{self.since}", limit=chain.PAGE),
            lambda: [] if self.snapshot.has_metadata else self.ctx.storage.list(METADATA_TABLE, limit=1),
        )
        names = [info.path[len(folder) + 1 :] for info in infos]
        if not metadata and (len(names) < chain.PAGE or names[-1] > ":"):
            self.newest = frozenset(names)

    def forget(self) -> None:
        """Something took its time since the last listing: the next `relist` asks again."""
        self.listed = self.newest = None

    def forget_unlocked(self) -> None:
        """What was listed before the lock was had may lack what another engine did as it was waited
        for."""
        self.listed, self.newest, self.under_lock = self.under_lock, None, None

    def is_quiet(self) -> bool | None:
        """Whether the listing of what is new shows nothing that the snapshot and the chain do not
        tell; None if there is none, or no more."""
        newest, self.newest = self.newest, None
        return None if newest is None else self.claim in newest and not self._unknown(newest)

    def relist(self, look: Callable[[Timeline], None] = lambda _: None) -> Timeline | None:
        """List the timeline: None if nothing is there that the snapshot and the chain do not tell.
        `look` is shown the listing in any case."""
        now, self.listed = self.listed or list_timeline(self.ctx), None
        look(now)
        # To the second, of which old releases of Hudi make instants.
        self.since = min([self.time, *(instant.time for instant in now.pending)])[:_SECOND]
        quiet = self.claim in now.files and not self._unknown(now.files) and not self._metadata_appeared(now)
        return None if quiet else now

    def check(self, now: Timeline, claimed: Claimed, upto: int) -> None:
        """Hold what `relist` found against what is about to be decided; the chain is known up to
        number `upto`, and free behind it.

        Raises WriteConflictError, WriteAbortedError and CorruptTableError.
        """
        if self.claim not in now.files or self.time in open_rollbacks(self.ctx, now):
            raise self._taken_back()
        if claimed.metadata is not None and self._metadata_appeared(now) and self._metadata_is_ready():
            raise self._conflict("a metadata table was built by another engine, which knows nothing of this write")
        for entry in self._entries(now, upto):
            if entry.instant == self.time:
                raise self._conflict("another engine has executed the same plan")
            if claimed.excluded_by(entry, self.snapshot.files):
                did = "plans to rewrite" if entry.kind is Kind.PLAN else "changed"
                raise self._conflict(f"another engine {did} the same file groups or keys by instant {entry.instant}")

    def _metadata_appeared(self, now: Timeline) -> bool:
        return now.has_metadata and not self.snapshot.has_metadata and not self.metadata_moved

    def _metadata_is_ready(self) -> bool:
        # Of ours the chain tells before the properties do; an unfinished one is a folder alone.
        return bool(read_properties(self.ctx.storage, self.ctx.clock).get(METADATA_PARTITIONS))

    def _unknown(self, names: Iterable[str]) -> list[Instant]:
        """What matters of a listing and stands neither in the snapshot nor in the chain."""
        new = sorted(name for name in names if name not in self.snapshot.files and name not in self.walked)
        return [instant for name in new if (instant := parse_instant(name)) is not None and _matters(instant)]

    def _entries(self, now: Timeline, upto: int) -> Iterator[ChainEntry]:
        """The decisions that the chain would hold if the other engine kept it."""
        for instant in chain.unchained(self.ctx, self._unknown(now.files), upto):
            try:
                yield self._entry(instant, now)
            except CorruptTableError:
                if instant.file_name in load_timeline(self.ctx).files:
                    raise

    def _entry(self, instant: Instant, now: Timeline) -> ChainEntry:
        if instant.completed and instant.action in WRITE_ACTIONS:
            kind, metadata = Kind.COMMIT, commit_metadata(self.ctx, instant)
            keys, data = self._conflict_keys_of_commit(metadata, now), encode_commit(self.ctx.layout, metadata)
        else:
            kind, keys, data = Kind.PLAN, self._conflict_keys_of_plan(instant, now), b""
        return ChainEntry.of(kind, instant.time, "", tuple(sorted(keys)), instant.file_name, data)

    def _conflict_keys_of_commit(self, metadata: CommitMetadata, now: Timeline) -> set[str]:
        if metadata.operation_type in _SERVICES or metadata.compacted:
            return set()
        if table_schema(self.ctx, now) != table_schema(self.ctx, self.snapshot):
            return {conflict_keys.TABLE}
        groups = {(stat.partition_path, stat.file_id) for stat in metadata.stats} | set(metadata.replaced_groups)
        logs_alone = all(parse_log_file(stat.path.rpartition("/")[2]) for stat in metadata.stats)
        keys = set(group_conflict_keys(groups, appended=self.ctx.layout.logs_tell_writers and logs_alone))
        if metadata.operation_type == CLUSTER:
            return keys
        keys |= {conflict_keys.partition_conflict_key(partition) for partition in metadata.replaced or ()}
        index = self.ctx.config.index
        if index is None or not index.type.has_fixed_buckets:
            # Which keys it inserted is told by nothing but its files.
            filled = {stat.partition_path for stat in metadata.stats if stat.num_inserts}
            keys |= {conflict_keys.record_conflict_keys(partition) for partition in filled}
            keys |= {conflict_keys.record_conflict_keys(conflict_keys.GLOBAL_KEYS)} if filled else set()
        return keys

    def _conflict_keys_of_plan(self, instant: Instant, now: Timeline) -> set[str]:
        if instant.action in PLANNED_ACTIONS:
            return set(group_conflict_keys((i.partition, i.file_id) for i in planned_slices(self.ctx, instant)))
        if instant.grouped_action is Action.REPLACE_COMMIT:
            plan = planned_clustering(self.ctx, instant)
            return set(group_conflict_keys((i.partition, i.file_id) for i in plan.slices)) if plan else set()
        if instant.action in (Action.CLEAN, Action.SAVEPOINT):
            return {conflict_keys.CLEANING}
        undo = planned_undo(self.ctx, instant)
        if self.time in undo.times and now.ended(instant) is not None:
            # The plan of a compaction stays behind its rollback, though the files are gone.
            raise self._taken_back()
        counted = self.counted or (lambda target: self.snapshot.is_completed(target.time))
        return {conflict_keys.TABLE} if any(map(counted, undo.targets)) else set()

    def _taken_back(self) -> WriteAbortedError:
        return WriteAbortedError(
            f"another engine takes the instant {self.time} back, as it does with writes that it holds for failed; nothing of it is "
            "visible, write again",
            base_path=self.ctx.base_path,
            instant=self.time,
        )

    def _conflict(self, why: str) -> WriteConflictError:
        return WriteConflictError(
            f"{why} since the write of {self.time} read them; nothing of it is visible, write again on the new state",
            base_path=self.ctx.base_path,
            instant=self.time,
        )


def is_overtaken(ctx: TableContext, entry: ChainEntry, timeline: Timeline, upto: int) -> bool:
    """Whether another engine has, since the instant of an entry was claimed, completed or planned
    what excludes it; `timeline` is a listing behind a reading of the chain up to number `upto`.

    Who dies or sleeps between his last listing and the file loses the lock, and another engine that
    takes it then sees nothing of the decision. So whoever publishes it later, under the lock again,
    asks this. What is older than the claim was in the snapshot; of what is older than the entry
    nobody knows whether it was looked at, for the entry itself may have come late. Ages are the
    store's own; what is of the claim's very second, where a store counts seconds, is taken for
    later.
    """
    claims = timeline.claim_names(entry.instant)
    claimed_at = min(timeline.files[name] for name in claims)
    aborted = next((n for n, e in chain.entries_of(ctx, entry.instant, upto) if e.kind is Kind.ABORT), None)
    if aborted is not None:
        # Of a compaction that was taken back and executed again: who did so has begun behind the abort.
        claimed_at = max(claimed_at, ctx.storage.head(entry_path(aborted)).modified)
    known = narrowed(timeline, lambda age: age < claimed_at)
    claimed = Claimed(entry.conflict_keys)
    if entry.kind is Kind.COMMIT:
        claimed = Claimed.of_commit(entry.conflict_keys, decode_commit(entry.data))
    counted = partial(_may_have_counted, ctx, entry, upto)
    try:
        Neighbours(ctx, entry.instant, next(iter(claims)), known, counted=counted).check(timeline, claimed, upto)
    except (WriteConflictError, WriteAbortedError):
        return True
    return False


def _may_have_counted(ctx: TableContext, entry: ChainEntry, upto: int, target: Instant) -> bool:
    """Whether a write that another engine has taken back may have completed before an entry was
    decided, which then may hold its rows.

    No file of it is left to tell. Of ours the chain does; of another engine's nothing does, and to
    give up an entry that nobody has heard of costs an attempt alone.
    """
    if comparable_time(target.time) > comparable_time(entry.instant):
        return False
    decision = chain.find_decision(ctx, target.time, upto)
    if decision is None or decision[1].kind is not Kind.ABORT:
        return True
    return chain.find_commit(ctx, target, upto) is not None


def narrowed(timeline: Timeline, has_come: Callable[[datetime], bool]) -> Timeline:
    """A listing without the files that had not come yet, by their ages."""
    files = {name: age for name, age in timeline.files.items() if has_come(age)}
    instants = tuple(i for i in timeline.instants if not i.completed or i.file_name in files)
    return replace(timeline, files=files, instants=instants)


def overtaken(ctx: TableContext, time: str) -> WriteConflictError:
    """What its writer is told, if it lives."""
    return WriteConflictError(
        f"the lock was lost before {time} was published, and another engine has changed the same file groups since; nothing of "
        "this write is visible, write again on the new state",
        base_path=ctx.base_path,
        instant=time,
    )


def foreign_commits(ctx: TableContext, timeline: Timeline) -> tuple[Instant, ...]:
    """Of the newest completed writes of a timeline those that the chain did not decide: other
    engines', the oldest first."""
    newest = timeline.commits[-COMMITS_MAX:]
    found = chain.unchained(ctx, newest, chain.read_tail(ctx).sequence) if newest else ()
    return tuple(instant for instant in found if not _our_bootstrap(ctx, instant))


def _our_bootstrap(ctx: TableContext, instant: Instant) -> bool:
    """A bootstrap makes the table, and comes before the chain: that it is ours its metadata
    tells."""
    return instant.time in BOOTSTRAPS and any(
        key.startswith(_OURS) for key in commit_metadata(ctx, instant).extra_metadata
    )


def _matters(instant: Instant) -> bool:
    if instant.action is Action.SAVEPOINT:
        return True
    return instant.action in WRITE_ACTIONS if instant.completed else _is_plan(instant)


def _is_plan(instant: Instant) -> bool:
    return instant.state is State.REQUESTED and instant.action in _PLANS
