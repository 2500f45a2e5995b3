"""Partitions that have outlived their time: found, and dropped by one delete_partition.

Facts (Hudi 1.1.1, its classes read): `KEEP_BY_TIME` counts from the newest base instant of a
partition's latest slices, `KEEP_BY_CREATION_TIME` from the commit that its metadata file names; a
partition whose time and `days.retain` lie before now goes, at most `max.delete.partitions` at once.
Without days nothing goes.

Beyond Hudi: a write to logs counts as one; a bootstrap counts from when it completed, where Hudi
takes its instant, the first of all, for its time; a partition that is written to while it is about
to be dropped stays; the partitions selected are the option's own, where Hudi reads those of a
clustering.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cached_property
from typing import ClassVar, Self

from hudi_table.errors import InvalidOptionError, InvalidRequestError, ObjectNotFoundError
from hudi_table.model.counts import counted
from hudi_table.model.given import checked_call
from hudi_table.model.names import BOOTSTRAPS, PARTITION_METADATA, join
from hudi_table.model.options.known import boolean_option, check_options, choice_option, renamed, whole_option
from hudi_table.model.options.validators import without_validators
from hudi_table.model.options.values import short_class
from hudi_table.model.options.write_options import OPERATION, PARTITIONS_TO_DELETE
from hudi_table.model.service.services import DETAILS_MAX, ServicePlan, ServiceRequest, ServiceResult, ServiceType
from hudi_table.model.timeline.instants import comparable_time, earlier, format_instant_time
from hudi_table.services.base import Unplanned
from hudi_table.table.store.ports import Engine
from hudi_table.table.timeline.active import commit_metadata, load_timeline
from hudi_table.table.timeline.archived import archived_moments
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.instants import local_now, local_time
from hudi_table.table.timeline.relisting import with_relists
from hudi_table.table.timeline.timeline import Timeline
from hudi_table.table.view.file_system_view import FileSlice, FileSystemView, LogFile
from hudi_table.write.operations import WriteRequest, write
from hudi_table.write.result import CommitResult

_PREFIX = "hoodie.partition.ttl"
STRATEGY = f"{_PREFIX}.management.strategy.type"
STRATEGY_CLASS = f"{_PREFIX}.strategy.class"
DAYS = f"{_PREFIX}.strategy.days.retain"
MOST = f"{_PREFIX}.strategy.max.delete.partitions"
SELECTED = f"{_PREFIX}.strategy.partition.selected"
TTL_INLINE = f"{_PREFIX}.inline"
_CREATED = re.compile(rb"^commitTime=(\d+)\s*$", re.MULTILINE)


class TtlStrategy(StrEnum):
    """From when on a partition's time runs."""

    KEEP_BY_TIME = "KEEP_BY_TIME"
    KEEP_BY_CREATION_TIME = "KEEP_BY_CREATION_TIME"


_CLASSES = {
    "KeepByTime": TtlStrategy.KEEP_BY_TIME,
    "KeepByCreationTime": TtlStrategy.KEEP_BY_CREATION_TIME,
}


@dataclass(frozen=True, slots=True)
class TtlOptions:
    """`days` that a partition is kept, `most` partitions to drop at once, `selected` ones to look
    at (all if empty)."""

    strategy: TtlStrategy
    days: int
    most: int
    selected: tuple[str, ...]

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> TtlOptions:
        """Raises InvalidOptionError, also if no days are given: then nothing would ever go."""
        check_options(options)
        kind = _CLASSES.get(short_class(options.get(STRATEGY_CLASS, ""))) or TtlStrategy(
            choice_option(options, STRATEGY)
        )
        if DAYS not in options:
            raise InvalidOptionError(f"give {DAYS}: for how many days a partition is kept")
        selected = tuple(part.strip() for part in options.get(SELECTED, "").split(",") if part.strip())
        days, most = (whole_option(options, key, least=1) for key in (DAYS, MOST))
        return cls(kind, days, most, selected)


def expired_partitions(view: FileSystemView, options: TtlOptions, now: datetime) -> list[str]:
    """Paths of the partitions to drop, sorted. `now` is naive, in the timeline's zone. Raises
    InvalidRequestError for a selected partition that is not there, and a table that is not
    partitioned."""
    ctx = view.ctx
    if not ctx.config.partition_by:
        raise InvalidRequestError(
            f"table {ctx.config.name!r} is not partitioned: no partition expires", base_path=ctx.base_path
        )
    known = view.partitions()
    missing = sorted(set(options.selected) - set(known))
    if missing:
        raise InvalidRequestError(
            f"{SELECTED} names {missing[0]!r}, which the table does not have", base_path=ctx.base_path
        )
    limit = format_instant_time(earlier(now, timedelta(days=1), options.days))
    moments = _Moments(ctx, view.timeline)
    if options.strategy is TtlStrategy.KEEP_BY_TIME:
        since = _last_writes(view, moments)
    else:
        since = {partition: _created(ctx, partition, moments) for partition in options.selected or known}
    chosen = [p for p in options.selected or known if "" < since.get(p, "") < limit]
    if options.strategy is TtlStrategy.KEEP_BY_TIME:
        chosen = [p for p in chosen if not _has_younger_log(view, p, limit)]
    # One that was dropped before and not cleaned yet has no rows to drop.
    return sorted(p for p in chosen if view.groups(p))[: options.most]


def drop_expired(ctx: TableContext, options: Mapping[str, str], engine: Engine) -> CommitResult | None:
    """Drop what has expired, by one commit; None, and no claim, if nothing has."""
    parsed = TtlOptions.parse(options)

    def expired(view: FileSystemView) -> list[str]:
        return expired_partitions(view, parsed, local_now(ctx))

    found = with_relists(ctx, lambda: expired(FileSystemView(ctx, load_timeline(ctx))))
    if not found:
        return None
    left = without_validators(renamed(options))
    others = {key: value for key, value in left.items() if key not in (OPERATION, PARTITIONS_TO_DELETE)}
    request = WriteRequest("delete_partition", others, partitions=found, still=expired)
    return write(ctx, None, request, engine)


def drop_expired_inline(ctx: TableContext, options: Mapping[str, str], engine: Engine) -> None:
    """What `hoodie.partition.ttl.inline` asks after a write."""
    if boolean_option(options, TTL_INLINE):
        drop_expired(ctx, options, engine)


@dataclass(frozen=True)
class _Moments:
    """When instants were. That of a bootstrap is no time: there its completion counts, of version 6
    the age of its file. Where nothing tells it, that is '', and what it wrote stays."""

    ctx: TableContext
    timeline: Timeline = field(repr=False)

    def of(self, instant: str) -> str:
        """17 digits, or ''."""
        if instant not in BOOTSTRAPS:
            return comparable_time(instant)
        return self._active.get(instant) or self._archived.get(instant, "")

    @cached_property
    def _active(self) -> dict[str, str]:
        found = [i for i in self.timeline.commits if i.time in BOOTSTRAPS]
        files = self.timeline.files
        return {i.time: i.completion or format_instant_time(local_time(self.ctx, files[i.file_name])) for i in found}

    @cached_property
    def _archived(self) -> dict[str, str]:
        return archived_moments(self.ctx, frozenset(BOOTSTRAPS))


def _last_writes(view: FileSystemView, moments: _Moments) -> dict[str, str]:
    """When each partition was last written to."""
    last_writes: dict[str, str] = {}

    def wrote(partition: str, instant: str) -> None:
        last_writes[partition] = max(last_writes.get(partition, ""), moments.of(instant))

    for item in view.latest_slices():
        wrote(item.partition, item.instant)
        for log in item.logs:
            # Once its commit is archived, the log alone tells of it.
            wrote(item.partition, _writer(view.ctx, log) or item.instant)
    for instant in view.timeline.commits:
        for stat in commit_metadata(view.ctx, instant).stats:
            wrote(stat.partition_path, instant.time)
    return last_writes


def _writer(ctx: TableContext, log: LogFile) -> str | None:
    return log.name.base_instant if ctx.layout.logs_tell_writers else log.instant


def _has_younger_log(view: FileSystemView, partition: str, limit: str) -> bool:
    """Whether a log whose name does not tell its writer, as of another engine in version 6, is not
    as old as that. Raises ObjectNotFoundError if it has been cleaned meanwhile."""
    unknown = (log for item in view.latest_slices([partition]) for log in item.logs if not _writer(view.ctx, log))
    ages = (local_time(view.ctx, view.ctx.storage.head(log.path).modified) for log in unknown)
    return any(format_instant_time(age) >= limit for age in ages)


def _created(ctx: TableContext, partition: str, moments: _Moments) -> str:
    try:
        match = _CREATED.search(ctx.storage.get(join(partition, PARTITION_METADATA)))
    except ObjectNotFoundError:
        return ""
    return moments.of(match[1].decode()) if match else ""


@dataclass(frozen=True)
class PartitionTtlService(Unplanned):
    """Partitions that have outlived `hoodie.partition.ttl.strategy.days.retain` are dropped by one
    commit; see `services.base.Service`. No plan is stored: what has expired is looked at again when
    it is dropped."""

    type: ClassVar[ServiceType] = ServiceType.PARTITION_TTL
    nothing: ClassVar[str] = "no partition has expired"

    @checked_call
    def __call__(self, options: Mapping[str, str], *, plan: str = "") -> Self:
        """The service with these options. `plan`: digest of a dry run, which must still hold."""
        return self.with_request(ServiceRequest(options, plan=plan))

    def current_plan(self) -> ServicePlan | None:
        """What would be dropped now."""
        ctx, options = self.ctx, TtlOptions.parse(self.request.options)

        def expired() -> tuple[list[str], list[FileSlice]]:
            view = FileSystemView(ctx, load_timeline(ctx))
            names = expired_partitions(view, options, local_now(ctx))
            return names, view.latest_slices(names)

        names, slices = with_relists(ctx, expired)
        if not names:
            return None
        return ServicePlan(
            ServiceType.PARTITION_TTL,
            f"{counted(len(names), 'partition')} older than {counted(options.days, 'day')}",
            file_groups=len(slices),
            files_before=sum((item.base is not None) + len(item.logs) for item in slices),
            bytes_freed=sum(item.size for item in slices),
            details=tuple(names[:DETAILS_MAX]),
        )

    def work(self, engine: Engine) -> ServiceResult | None:
        """Drop what has expired."""
        done = drop_expired(self.ctx, self.request.options, engine)
        if done is None:
            return None
        figures = {"partitions": float(len(done.partitions)), "fileGroups": float(done.groups_replaced)}
        message = f"{counted(len(done.partitions), 'partition')} dropped; a clean frees their files"
        return ServiceResult(ServiceType.PARTITION_TTL, done.instant, message, figures)
