"""What table services have left on a timeline, and how many writes came since."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hudi_operator.plan.observed import Trace
from hudi_table.model.service.services import ServiceType
from hudi_table.model.timeline.instants import Action
from hudi_table.table.timeline.timeline import Timeline

_BY_OPERATION = {
    "COMPACT": ServiceType.COMPACTION,
    "LOG_COMPACT": ServiceType.LOG_COMPACTION,
    "CLUSTER": ServiceType.CLUSTERING,
}
"""Operation types of commit metadata that are no writes (Hudi's `WriteOperationType`)."""
_BY_ACTION = {
    Action.COMPACTION: ServiceType.COMPACTION,
    Action.LOG_COMPACTION: ServiceType.LOG_COMPACTION,
    Action.CLUSTERING: ServiceType.CLUSTERING,
    Action.CLEAN: ServiceType.CLEANING,
    Action.SAVEPOINT: ServiceType.SAVEPOINT,
    Action.ROLLBACK: ServiceType.ROLLBACK,
    Action.RESTORE: ServiceType.RESTORE,
    Action.INDEXING: ServiceType.INDEXING,
}
_PLANNED = (ServiceType.COMPACTION, ServiceType.LOG_COMPACTION, ServiceType.CLUSTERING, ServiceType.CLEANING)


def traces(
    timeline: Timeline, operations: Mapping[str, str], clusterings: Iterable[str] = ()
) -> tuple[dict[ServiceType, Trace], str | None]:
    """(traces of the services that leave one, the newest write that no service made). `operations`:
    types of the newest commits by instant; `clusterings`: instants of pending replacecommits that
    hold the plan of one."""
    made = {time: _BY_OPERATION.get(operation) for time, operation in operations.items()}
    # A commit that is too old for its metadata to be read counts as a write.
    writes = [i.time for i in timeline.commits if made.get(i.time) is None]
    last: dict[ServiceType, str] = {}
    for instant in timeline.completed:
        kind = made.get(instant.time) or _BY_ACTION.get(instant.action)
        if kind is not None:
            last[kind] = instant.time
    pending: dict[ServiceType, list[str]] = {ServiceType.CLUSTERING: list(clusterings)}
    for instant in timeline.pending:
        kind = _BY_ACTION.get(instant.action)
        if kind in _PLANNED and instant.time not in pending.setdefault(kind, []):
            pending[kind].append(instant.time)
    found = {
        kind: Trace(
            pending=tuple(pending.get(kind, ())),
            last=last.get(kind),
            commits_since=sum(time > last.get(kind, "") for time in writes),
        )
        for kind in {*last, *pending, *_PLANNED}
    }
    return found, writes[-1] if writes else None
