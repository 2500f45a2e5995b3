"""Manifests for tests: a HudiTable that is right, to be changed by each test."""

from __future__ import annotations

import copy
from typing import Any

from hudi_operator.api.names import API_VERSION

INGEST: dict[str, Any] = {
    "name": "feed",
    "operation": "Upsert",
    "source": {"type": "Files", "path": "s3://landing/flights/", "format": "parquet"},
}
SPEC: dict[str, Any] = {
    "location": "s3://lake/flights",
    "recordKey": ["id"],
    "orderingFields": ["ts"],
    "mergeMode": "EventTime",
    "index": {"type": "Bucket", "buckets": 4},
    "ingest": [INGEST],
}

PARTS: dict[str, Any] = {
    "tolerations": [{"key": "spot", "operator": "Exists", "effect": "NoSchedule"}],
    "nodeSelector": {"kubernetes.io/arch": "arm64"},
    "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}},
    "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}],
    "priorityClassName": "low", "serviceAccountName": "reader", "labels": {"team": "lake"}, "annotations": {"example/owner": "lake"},
    "env": [{"name": "MODE", "value": "fast"}, {"name": "TOKEN", "secretKeyRef": {"name": "team.tokens", "key": "t"}}],
    "caBundle": {"name": "authorities"}, "cpuRequest": "250m", "cpuLimit": "2",
}  # fmt: skip
"""Settings of a driver's or an executor's pods."""


def spec(**changes: Any) -> dict[str, Any]:
    """A right spec with some fields replaced; None removes one."""
    found = copy.deepcopy(SPEC) | changes
    return {key: value for key, value in found.items() if value is not None}


def ingest(**changes: Any) -> dict[str, Any]:
    """A right ingest with some fields replaced; None removes one."""
    found = copy.deepcopy(INGEST) | changes
    return {key: value for key, value in found.items() if value is not None}


def manifest(name: str = "flights", kind: str = "HudiTable", **spec: Any) -> dict[str, Any]:
    """A manifest around a spec, as a file holds it."""
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec}


def stored(document: dict[str, Any], *, generation: int = 1, status: dict[str, Any] | None = None) -> dict[str, Any]:
    """A manifest as an API server holds it."""
    metadata = {
        "namespace": "default",
        "uid": "7d9f6c52-1f6b-4d0e-9c1e-2f6a1f0b9f10",
        "generation": generation,
        "creationTimestamp": "2026-01-01T00:00:00Z",
        **document["metadata"],
    }
    return {**document, "metadata": metadata, **({"status": status} if status is not None else {})}
