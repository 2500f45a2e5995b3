"""Plans of clusterings: the requested file of a replacecommit that says which slices become which
file groups.

Facts (table version 6, measured on Hudi 0.15.0): `T.replacecommit.requested` is an Avro container
of HoodieRequestedReplaceMetadata; of a clustering it holds a `clusteringPlan`, of an overwrite
nothing or nulls. Base files and logs are named by their absolute paths, Hudi's logs newest first; a
slice has no base instant but that in the names of its files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hudi_table.errors import CorruptTableError
from hudi_table.model.names import join, parse_base_file, parse_log_file
from hudi_table.model.service.resizes import STRATEGY
from hudi_table.model.timeline.instants import Action, Instant, State
from hudi_table.table.timeline.active import body, is_there
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.layout import decode_records, encode_record
from hudi_table.table.timeline.timeline import Timeline
from hudi_table.table.view.compaction_plans import PlannedSlice
from hudi_table.table.view.file_system_view import LogFile

_VERSION = 1


@dataclass(frozen=True, slots=True)
class ClusteringGroup:
    """Slices of one partition that are rewritten together, into `outputs` file groups. `extra`:
    what a strategy says of the group."""

    slices: tuple[PlannedSlice, ...]
    outputs: int
    metrics: Mapping[str, float] = field(default_factory=dict)
    extra: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ClusteringPlan:
    """The groups of a plan, and the class and parameters by which they are rewritten."""

    groups: tuple[ClusteringGroup, ...]
    strategy: str
    params: Mapping[str, str] = field(default_factory=dict)
    extra: Mapping[str, str] = field(default_factory=dict)

    @property
    def slices(self) -> tuple[PlannedSlice, ...]:
        """All slices, in the order of the groups."""
        return tuple(item for group in self.groups for item in group.slices)

    @property
    def is_resize(self) -> bool:
        """Whether it changes the number of buckets, which a clustering would lose."""
        return self.strategy == STRATEGY


def clustering_body(ctx: TableContext, plan: ClusteringPlan, folder: str = "") -> bytes:
    """Content of the requested file. `folder`: put before the paths of files, which only Hudi
    reads, so that it finds none of them."""
    groups = [
        {
            "slices": [_slice_record(join(ctx.base_path, folder), item) for item in group.slices],
            "metrics": dict(group.metrics),
            "numOutputFileGroups": group.outputs,
            "extraMetadata": dict(group.extra) or None,
            "version": _VERSION,
        }
        for group in plan.groups
    ]
    return encode_record(
        "HoodieRequestedReplaceMetadata",
        {
            "operationType": "CLUSTER",
            "clusteringPlan": {
                "inputGroups": groups,
                "strategy": {
                    "strategyClassName": plan.strategy,
                    "strategyParams": dict(plan.params),
                    "version": _VERSION,
                },
                "extraMetadata": dict(plan.extra),
                "version": _VERSION,
                "preserveHoodieMetadata": True,
            },
            "extraMetadata": {},
            "version": _VERSION,
        },
    )


def planned_clustering(ctx: TableContext, instant: Instant) -> ClusteringPlan | None:
    """The plan of a clustering, or of a replacecommit that may be the end of one; None if it is
    not. Raises CorruptTableError."""
    requested = instant.with_state(State.REQUESTED)
    if instant.completed and ctx.layout.clustering is not instant.action:
        requested = Instant(instant.time, ctx.layout.clustering, State.REQUESTED)
        if not is_there(ctx, requested):
            return None
    return parse_clustering(body(ctx, requested), requested.file_name)


def parse_clustering(data: bytes, name: str = "a clustering plan") -> ClusteringPlan | None:
    """The plan in the bytes of a requested file, None if they hold none. Raises CorruptTableError
    that says `name`."""
    if not data:
        return None
    try:
        (record,) = decode_records(data)
        plan = record.get("clusteringPlan")
        if not plan:
            return None
        strategy = plan.get("strategy") or {}
        return ClusteringPlan(
            tuple(_group(group) for group in plan["inputGroups"] or ()),
            strategy.get("strategyClassName") or "",
            strategy.get("strategyParams") or {},
            plan.get("extraMetadata") or {},
        )
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptTableError(f"{name} is no plan of a clustering: {error}", path=name) from error


def pending_clusterings(ctx: TableContext, timeline: Timeline) -> dict[Instant, ClusteringPlan]:
    """The plans of clusterings that have not completed, oldest first."""
    found = {}
    for instant in timeline.pending:
        requested = instant.with_state(State.REQUESTED)
        if instant.grouped_action is Action.REPLACE_COMMIT and requested.file_name in timeline.files:
            plan = planned_clustering(ctx, instant)
            if plan is not None:
                found[instant] = plan
    return found


def _slice_record(base: str, item: PlannedSlice) -> dict[str, Any]:
    return {
        "dataFilePath": "" if item.base_path is None else join(base, item.base_path),
        "deltaFilePaths": [join(base, path) for path in item.log_paths],
        "fileId": item.file_id,
        "partitionPath": item.partition,
        "bootstrapFilePath": "",
        "version": _VERSION,
    }


def _group(record: Mapping[str, Any]) -> ClusteringGroup:
    slices = tuple(_slice(item) for item in record["slices"] or ())
    return ClusteringGroup(
        slices,
        int(record["numOutputFileGroups"] or 1),
        record.get("metrics") or {},
        record.get("extraMetadata") or {},
    )


def _slice(record: Mapping[str, Any]) -> PlannedSlice:
    base = (record["dataFilePath"] or "").rpartition("/")[2]
    logs = _in_order(path.rpartition("/")[2] for path in record["deltaFilePaths"] or ())
    named = parse_base_file(base)
    logged = [log.base_instant for log in map(parse_log_file, logs) if log is not None]
    instant = named.instant if named is not None else max(logged, default="")
    return PlannedSlice(record["partitionPath"] or "", record["fileId"], instant, base or None, logs, {})


def _in_order(names: Iterable[str]) -> tuple[str, ...]:
    """Logs in the order in which they apply; what is no log's name is left to whoever reads it."""
    parsed = [(parse_log_file(name), name) for name in names]
    return tuple(
        name
        for log, name in sorted(parsed, key=lambda pair: LogFile("", 0, pair[0]).sort_key if pair[0] else ("", 0, ""))
    )
