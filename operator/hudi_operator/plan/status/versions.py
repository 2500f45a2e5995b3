"""Conditions about a table's version and its readers."""

from __future__ import annotations

from collections.abc import Iterable

from hudi_operator.api.status import Condition
from hudi_operator.api.table import HudiTableSpec
from hudi_operator.plan.effects import Emit, EventType
from hudi_operator.plan.observed import Observed, TableObservation
from hudi_operator.plan.status.conditions import READERS_SERVED, UPGRADE_WANTED, UPGRADING, Finding
from hudi_operator.plan.versions import readers_of
from hudi_table.model.table.readers import features_of, lost, unproven

HALF_WAY = "HalfWay"
CONDITIONS = (UPGRADING, READERS_SERVED, UPGRADE_WANTED)
_NEWS = {
    (READERS_SERVED, "False", "CannotRead"): "ReaderLost",
    (READERS_SERVED, "Unknown", "Unproven"): "ReaderUnproven",
}


def held(observed: Observed) -> tuple[str, str] | None:
    """(reason, message) where nothing else is done to the table, for its version is being
    changed."""
    if observed.upgrade:
        said = f"TableService {observed.upgrade} brings the table to another version: nothing else is started until it has ended"
        return "ByTableService", said
    change = observed.table.changing if observed.table is not None else None
    if change is None:
        return None
    source, target = change
    return HALF_WAY, (
        f"a change from version {source} to {target} has begun, and no TableService is at it: the table takes no writes until it has ended; "
        f"once the process that began it has ended, make a TableService of type Upgrade with upgrade.to {target} to go on, or with "
        f"{source} to give it up, and approve its plan"
    )


def findings(spec: HudiTableSpec, observed: Observed) -> tuple[Finding, ...]:
    """Upgrading, UpgradeNeedsApproval and ReadersServed, each where there is something to say."""
    table = observed.table
    found = []
    holding = held(observed)
    if holding is not None:
        found.append(Finding(UPGRADING, "True", *holding))
    if table is not None and spec.table_version not in (None, table.config.version) and holding is None:
        found.append(Finding(UPGRADE_WANTED, "True", "VersionChanged", _wish(spec, table)))
    if table is not None and spec.readers:
        found.append(_served(spec, table))
    return tuple(found)


def news(before: Iterable[Condition], after: Iterable[Condition]) -> list[Emit]:
    """Events of readers that cannot read the table, or may not be able to."""
    old = {c.type: (c.status, c.reason, c.message) for c in before}
    return [
        Emit(EventType.WARNING, _NEWS[c.type, c.status, c.reason], c.message)
        for c in after
        if (c.type, c.status, c.reason) in _NEWS and old.get(c.type) != (c.status, c.reason, c.message)
    ]


def _wish(spec: HudiTableSpec, table: TableObservation) -> str:
    has = table.config.version
    return (
        f"tableVersion is {spec.table_version}, the table has {has} and is written with it; make a TableService of type Upgrade in mode Plan with "
        f"upgrade.to {spec.table_version} and approve its plan, or put {has} back"
    )


def _served(spec: HudiTableSpec, table: TableObservation) -> Finding:
    """Whether all that are named read the table as it is."""
    readers, features = readers_of(spec), features_of(table.config, table.columns)
    cannot, unknown = lost(readers, features), unproven(readers, features)
    if cannot:
        return Finding(READERS_SERVED, "False", "CannotRead", "; ".join([*cannot, *unknown]))
    if unknown:
        said = f"{'; '.join(unknown)}: try it, and report what you find to the project"
        return Finding(READERS_SERVED, "Unknown", "Unproven", said)
    return Finding(
        READERS_SERVED, "True", "AllProven", f"{', '.join(map(str, readers))}: known to read {', '.join(features)}"
    )
