"""What a plan asks for. The runtime performs effects in their order; each is safe to repeat."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from hudi_operator.api.fields.spark import SparkSpec
from hudi_operator.api.status import RunStatus
from hudi_table.model.job.jobspec import JobSpec


class EventType(StrEnum):
    """Kubernetes' two types of events."""

    NORMAL = "Normal"
    WARNING = "Warning"


@dataclass(frozen=True, slots=True)
class SetStatus:
    """Write the status."""

    status: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Launch:
    """Start the attempt, or adopt it if one of its name exists. `secret`: name of the Secret that
    fills the job's environment; `spark`: which launcher, and how large its pods are."""

    run: RunStatus
    spec: JobSpec
    secret: str | None = None
    spark: SparkSpec = field(default_factory=SparkSpec)


@dataclass(frozen=True, slots=True)
class Stop:
    """End an attempt that runs. What it has committed stays; a published plan stays, too."""

    name: str


@dataclass(frozen=True, slots=True)
class Hold:
    """Hold a resource back when it is deleted, or let go of it: our finalizer is there or not."""

    held: bool


@dataclass(frozen=True, slots=True)
class Emit:
    """Tell people: an event of the resource."""

    type: EventType
    reason: str
    message: str = field(default="")


@dataclass(frozen=True, slots=True)
class RequeueAfter:
    """Reconcile again after so many seconds, even if nothing is heard of. An `appointment` is what
    a schedule says: nothing is left to do until then."""

    seconds: float
    why: str
    appointment: bool = False


@dataclass(frozen=True, slots=True)
class MakeTable:
    """Make the HudiTable of a topic; nothing is done to one that is there meanwhile."""

    topic: str
    document: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ChangeTable:
    """Make the HudiTable of a topic what this says, if it still is as it was seen."""

    topic: str
    document: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RemoveTable:
    """Delete the HudiTable of a topic, and none that was made anew under its name."""

    topic: str
    name: str
    uid: str


Write = MakeTable | ChangeTable | RemoveTable
"""What a HudiTableSet does to its HudiTables."""
Effect = SetStatus | Launch | Stop | Hold | Emit | RequeueAfter
