"""What a clean is to delete: chosen on a snapshot, published through the chain, or exactly a plan
that was approved.

Facts (Hudi 0.15.0): a clean looks at the partitions that commits wrote to or replaced from the last
clean's earliest retained instant to this one's; at all of them if the last clean names none, or one
that is archived. A partition whose files all go loses its metadata file too, unless a later commit
replaced groups there.

Beyond Hudi: partitions where the last clean could not delete a file, or where something held files
back, are looked at again; a partition goes only if the clean deletes every file in it. What was
superseded within the last minute is not published, by the store's ages. A dry run has no such
limit, for the plan of one state is to be the same each time; its approval has.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial

from hudi_table.errors import InvalidRequestError, WriteConflictError
from hudi_table.model.counts import counted
from hudi_table.model.json_text import parse_json
from hudi_table.model.names import PARTITION_METADATA, STAGED
from hudi_table.model.service.services import DETAILS_MAX, ServicePlan, ServiceType
from hudi_table.model.timeline.conflict_keys import CLEANING
from hudi_table.model.timeline.instants import comparable_time
from hudi_table.read.output.human import size
from hudi_table.services.cleaning.policy import (
    READERS,
    READERS_SECONDS,
    CleanOptions,
    Rule,
    Verdict,
    earliest_retained,
    recent_writes,
    verdicts,
)
from hudi_table.services.cleaning.stored import StoredGroup, stored_groups
from hudi_table.services.planning import Choose, Draft
from hudi_table.table.commit.pending_plans import held_groups
from hudi_table.table.commit.recovery import recover_failed_writes
from hudi_table.table.rows.staged import sweep_staged
from hudi_table.table.store.ports import ObjectInfo
from hudi_table.table.timeline.active import commit_metadata
from hudi_table.table.timeline.archived import archived_completions
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.instants import local_now, store_now
from hudi_table.table.timeline.timeline import Timeline
from hudi_table.table.view.clean_plans import CleanPlan, CleanRecord, last_clean, parse_clean, pending_cleans
from hudi_table.table.view.file_system_view import FileSystemView, replaced_at
from hudi_table.table.view.listing import list_data_files, partitions_in
from hudi_table.table.view.savepoints import savepoints
from hudi_table.write.checks.request import refuse_unsupported
from hudi_table.write.checks.table_state import check_timeline

SAVEPOINTS = "savepointed_timestamps"
"""Hudi's key: the savepoints that a clean saw, separated by commas."""
_HELD = "hoodie.lakeops.clean.held"
_VERSIONS = "hoodie.lakeops.clean.versions"
_MANY = 64


def prepare_clean(ctx: TableContext, timeline: Timeline, options: Mapping[str, str]) -> bool:
    """What comes before a plan: failed writes are taken back, unless the policy for them is NEVER,
    and rows that a killed write has staged are deleted. Whether the timeline is another one since.
    Raises InvalidOptionError."""
    taken = recover_failed_writes(ctx, timeline, options)
    if STAGED.rpartition("/")[2] in timeline.folders:
        sweep_staged(ctx.storage)
    return bool(taken)


def clean_choice(ctx: TableContext, options: Mapping[str, str], *, force: bool, publishes: bool = False) -> Choose:
    """What a clean deletes, of any snapshot: nothing unless it is due by
    `hoodie.clean.trigger.max.commits`, or in any case with `force`. `publishes`: the plan is not
    made to be shown.

    Raises InvalidOptionError and UnsupportedTableError.
    """
    refuse_unsupported(ctx.config)
    parsed = CleanOptions.parse(options)

    def choose(view: FileSystemView) -> Draft | None:
        check_timeline(ctx, view.timeline)
        last = last_clean(ctx, view.timeline)
        why = f"asked for, {parsed}" if force else _due(view.timeline, parsed, last)
        retain = earliest_retained(view.timeline, parsed, local_now(ctx))
        if why is None or (parsed.by_commits and retain is None):
            return None
        rule = rule_of(ctx, view.timeline, retain.time if retain else "", parsed.versions)
        chosen = _changed_partitions(ctx, view.timeline, last, rule.retain) if parsed.incremental and retain else None
        swept = _sweep(ctx, view.timeline, rule, files_in(ctx, chosen), publishes=publishes)
        # A clean that leaves something to readers has not done with what superseded it: the next one is due.
        newest = next((i for i in reversed(view.timeline.commits) if i.time not in swept.recent), None)
        extra = {SAVEPOINTS: ",".join(sorted(set(rule.savepoints.values())))} if rule.savepoints else {}
        if swept.held:
            extra[_HELD] = json.dumps(sorted({v.group.partition for v in swept.held}))
        if not parsed.by_commits:
            extra[_VERSIONS] = str(parsed.versions)
        plan = CleanPlan(
            parsed.policy, swept.names, retain, newest.time if newest else "", swept.empty, extra
        )  # fmt: skip
        return Draft(plan.to_avro(ctx.base_path), _CONFLICT_KEYS, swept.said(why)) if swept.deleted else None

    return choose


def approved_clean(ctx: TableContext, data: bytes) -> Choose:
    """Exactly the plan of these bytes, if everything in it may still be deleted. Raises
    WriteConflictError that names a file that may not."""
    planned = parse_clean(data, "an approved plan")

    def choose(view: FileSystemView) -> Draft:
        versions = planned.extra.get(_VERSIONS)
        if planned.retain is None and versions is None:
            raise InvalidRequestError(
                "the plan does not say what it retains; make one by a dry run", base_path=ctx.base_path
            )
        rule = rule_of(ctx, view.timeline, planned.retain.time if planned.retain else "", int(versions or 0))
        swept = _sweep(ctx, view.timeline, rule, files_in(ctx, planned.files.keys()), publishes=True)
        for partition, names in planned.files.items():
            moved = set(names) - set(swept.names.get(partition, ()))
            if early := moved & swept.left_to_readers(partition):
                raise WriteConflictError(
                    f"{min(early)} in partition {partition!r} was superseded within the last {READERS_SECONDS:g} s, and readers that go "
                    "on may need it; approve the plan again in a minute",
                    base_path=ctx.base_path,
                )
            if moved or (partition in planned.partitions and partition not in swept.empty):
                raise WriteConflictError(
                    f"{min(moved, default='the rest')} in partition {partition!r} was deleted or is needed since the plan "
                    "was made; make a new plan and approve that",
                    base_path=ctx.base_path,
                )
        return Draft(data, _CONFLICT_KEYS, swept.only(planned).said("approved"))

    return choose


_CONFLICT_KEYS = frozenset({CLEANING})


def rule_of(ctx: TableContext, timeline: Timeline, retain: str, versions: int) -> Rule:
    """The rule of a clean on this timeline: what savepoints and pending plans need."""
    kept: dict[str, str] = {}
    for found in savepoints(ctx, timeline):
        kept |= {name: found.instant for names in found.files.values() for name in names}
        # A plan that was older than the savepoint may have been executed since: its files are those of the moment now.
        for item in FileSystemView(ctx, timeline, found.instant).latest_slices():
            files = (item.base, *item.logs)
            kept |= {file.path.rpartition("/")[2]: found.instant for file in files if file is not None}
    return Rule(retain, versions, kept, held_groups(ctx, timeline))


@dataclass(frozen=True, slots=True)
class _Swept:
    """The verdicts on the partitions looked at, without what pending cleans delete already; `empty`
    lose every file. `recent`: the writes that superseded what is left to readers."""

    deleted: tuple[Verdict, ...]
    held: tuple[Verdict, ...]
    empty: tuple[str, ...]
    files_before: int
    recent: frozenset[str]

    @property
    def names(self) -> dict[str, tuple[str, ...]]:
        found: dict[str, list[str]] = {}
        for verdict in self.deleted:
            found.setdefault(verdict.group.partition, []).extend(verdict.slice.names)
        return {partition: tuple(names) for partition, names in sorted(found.items())}

    def left_to_readers(self, partition: str) -> set[str]:
        """The names of the files that readers who go on may need."""
        left = (v.slice.names for v in self.held if v.held == READERS and v.group.partition == partition)
        return {name for names in left for name in names}

    def only(self, plan: CleanPlan) -> _Swept:
        """What of it a plan names."""
        names = {(p, name) for p, found in plan.files.items() for name in found}
        kept = tuple(v for v in self.deleted if all((v.group.partition, n) in names for n in v.slice.names))
        return replace(self, deleted=kept, held=())

    def said(self, why: str) -> ServicePlan:
        files, freed = Counter[str](), Counter[str]()
        for verdict in self.deleted:
            files[verdict.group.partition] += len(verdict.slice.files)
            freed[verdict.group.partition] += verdict.slice.size
        lines = [f"{p or '.'}: {_files_text(files[p])}, {size(freed[p])}" for p in sorted(files)]
        lines += [f"{p}: goes with its last file" for p in self.empty]
        held = Counter[tuple[str, str]]()
        for verdict in self.held:
            held[verdict.group.partition, verdict.held or ""] += len(verdict.slice.files)
        back = [f"{p or '.'}: {_files_text(count)} held back by {what}" for (p, what), count in sorted(held.items())]
        total = files.total()
        return ServicePlan(
            ServiceType.CLEANING,
            why,
            file_groups=len({verdict.group.key for verdict in self.deleted}),
            files_before=self.files_before,
            files_after=self.files_before - total,
            bytes_freed=freed.total(),
            details=(*lines[: DETAILS_MAX - len(back[:_BACK_MAX])], *back[:_BACK_MAX]),
        )


_BACK_MAX = 20


def _files_text(count: int) -> str:
    return counted(count, "file")


def _sweep(ctx: TableContext, timeline: Timeline, rule: Rule, files: list[ObjectInfo], *, publishes: bool) -> _Swept:
    groups = stored_groups(files, timeline, replaced_at(ctx, timeline), partial(archived_completions, ctx))
    going = {
        (partition, name)
        for plan in pending_cleans(ctx, timeline).values()
        for partition, names in plan.files.items()
        for name in names
    }

    def found(used: Rule) -> list[Verdict]:
        every = verdicts(groups, used)
        return [v for v in every if not all((v.group.partition, name) in going for name in v.slice.names)]

    judged, recent = _beside_readers(ctx, timeline, rule, found) if publishes else (found(rule), frozenset[str]())
    deleted = tuple(verdict for verdict in judged if verdict.held is None)
    held = tuple(verdict for verdict in judged if verdict.held is not None)
    return _Swept(deleted, held, _emptied(deleted, groups, files, rule), sum(map(_is_data, files)), recent)


def _beside_readers(
    ctx: TableContext, timeline: Timeline, rule: Rule, found: Callable[[Rule], list[Verdict]]
) -> tuple[list[Verdict], frozenset[str]]:
    """The verdicts that leave to readers what they may need, and the writes that superseded that.
    The store is asked for its present only where the newest file of the timeline, which is not
    younger, holds something back."""
    for now in (partial(max, timeline.files.values()), partial(store_now, ctx)):
        recent = recent_writes(timeline, now())
        judged = found(replace(rule, recent=recent))
        if not any(verdict.held == READERS for verdict in judged):
            return judged, frozenset()
    return judged, recent


def _emptied(
    deleted: Iterable[Verdict], groups: list[StoredGroup], files: list[ObjectInfo], rule: Rule
) -> tuple[str, ...]:
    """The partitions of which no file is left."""
    going = {info.path for verdict in deleted for info in verdict.slice.files}
    left = {info.path.rpartition("/")[0] for info in files if _is_data(info) and info.path not in going}
    retain = comparable_time(rule.retain)
    late = {g.partition for g in groups if rule.retain and g.replaced and comparable_time(g.replaced) >= retain}
    return tuple(sorted({path.rpartition("/")[0] for path in going} - left - late - {""}))


def _is_data(info: ObjectInfo) -> bool:
    return not info.path.rpartition("/")[2].startswith(PARTITION_METADATA)


def files_in(ctx: TableContext, partitions: Iterable[str] | None) -> list[ObjectInfo]:
    """The files of these partitions, of all if None."""
    chosen = None if partitions is None else sorted(partitions)
    if chosen is None or len(chosen) > _MANY:
        listed = list_data_files(ctx.storage)
        wanted = set(partitions_in(listed) if chosen is None else chosen)
        return [info for info in listed if info.path.rpartition("/")[0] in wanted]
    return [info for partition in chosen for info in ctx.storage.list_dir(partition)[1]]


def _due(timeline: Timeline, options: CleanOptions, last: CleanRecord | None) -> str | None:
    since = comparable_time(last.last_commit) if last else ""
    commits = sum(1 for i in timeline.commits if comparable_time(i.time) > since)
    if commits < options.trigger:
        return None
    return f"{counted(commits, 'commit')} since {last.last_commit if last else 'the first'}, {options}"


def _changed_partitions(
    ctx: TableContext, timeline: Timeline, last: CleanRecord | None, retain: str
) -> set[str] | None:
    """The partitions in which something can have become outdated since the last clean; None: all of
    them."""
    commits = timeline.commits
    if last is None or not last.retains or comparable_time(last.retains) < comparable_time(commits[0].time):
        return None
    seen = {time for time in last.extra.get(SAVEPOINTS, "").split(",") if time}
    held = last.extra.get(_HELD)
    if held is None and seen - {item.instant for item in savepoints(ctx, timeline)}:
        # A clean of Hudi does not say where the savepoint held files back.
        return None
    partitions = set(parse_json(held)) if held else set()
    partitions |= {partition for partition, names in last.failed.items() if names}
    low, high = comparable_time(last.retains), comparable_time(retain)
    for instant in commits:
        if low <= comparable_time(instant.time) < high:
            metadata = commit_metadata(ctx, instant)
            partitions |= {stat.partition_path for stat in metadata.stats} | set(metadata.replaced or ())
    return partitions
