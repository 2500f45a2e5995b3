"""Specs of table versions, upgrades and readers: what the definitions take, and what they refuse
with which words."""

from __future__ import annotations

from typing import Any

from tests.support.manifests import spec


def table(**changes: Any) -> tuple[str, dict[str, Any]]:
    return "HudiTable", spec(**changes)


def service(**fields: Any) -> tuple[str, dict[str, Any]]:
    return "TableService", {"tableRef": {"name": "flights"}, "type": "Cleaning", **fields}


VERSION_GOOD = [
    table(tableVersion=9, readers=[{"engine": "Hudi", "version": "1.1.1"}, {"engine": "Sail", "version": "0.1-rc2"}]),
    table(tableVersion=6, readers=[{"engine": "Hudi", "version": "0.15.0"}]),
    table(readers=[{"engine": "hudi-rs", "version": "0.5"}]),
    service(type="Upgrade", mode="Plan", upgrade={"to": 9}),
    service(type="Upgrade", mode="Plan", upgrade={"to": 6}, approve="3f2a91bc00112233"),
]
VERSION_BAD = [
    (table(tableVersion=9, readers=[{"engine": "Hudi", "version": "0.15"}]), "an engine of readers cannot read"),
    (table(tableVersion=8, readers=[{"engine": "hudi", "version": "0.14.1"}]), "an engine of readers cannot read"),
    (table(tableVersion=9, readers=[{"engine": "Hudi", "version": "1.0.2"}]), "an engine of readers cannot read"),
    (table(tableVersion=8, readers=[{"engine": "Trino", "version": "476"}]), "an engine of readers cannot read"),
    (table(readers=[{"engine": "Tri no", "version": "476"}]), "engine"),
    (table(readers=[{"engine": "Trino", "version": "v476"}]), "version"),
    (table(readers=[{"engine": "Trino"}]), "version"),
    (service(type="Upgrade", upgrade={"to": 9}), "use mode Plan"),
    (service(type="Upgrade", mode="Plan"), "type Upgrade needs upgrade.to"),
    (service(type="Upgrade", mode="Plan", upgrade={"to": 7}), "upgrade.to is one of 6, 8, 9"),
    (service(type="Upgrade", mode="Plan", upgrade={"to": 10}), "to"),
    (service(type="Upgrade", mode="Plan", upgrade={"to": 9}, schedule="0 3 * * *"), "run once"),
    (service(type="Upgrade", mode="Plan", upgrade={"to": 9}, activeDeadline="1h"), "takes no activeDeadline"),
    (service(upgrade={"to": 9}), "upgrade belongs to type Upgrade"),
]
