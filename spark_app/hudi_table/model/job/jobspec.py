"""JobSpec (what is asked of a job) and JobResult (what came of it): the two documents between
operator and job.

Versioned JSON, camelCase keys. Golden files in `tests/contract/` pin them. Secrets never stand in
either: `storage.credentials` names environment variables that the launcher fills from a secret
reference.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from hudi_table.model.json_text import parse_json

VERSION = "hudi.lakeops.dev/v1alpha1"
MEASURE_INDEX = "measureIndex"
"""Key of a JobSpec's `work`: whether the job is also to measure the table's index."""
MEMORY_BYTES, RESIDENT_BYTES = "memoryBytes", "residentBytes"
"""Key of a JobSpec's `work`: how much memory a continuous driver may have. With the other one a
figure of its result, if it has ended since it had taken most of it."""


class SchemaPolicy(StrEnum):
    """What an ingest does where the columns of its source are not those of its table. The strictest
    first: each takes all that those before it take."""

    REFUSE = "Refuse"
    ADD_COLUMNS = "AddColumns"
    WIDEN = "Widen"
    EVOLVE = "Evolve"


@dataclass(frozen=True, slots=True)
class JobSpec:
    """One attempt of one piece of work.

    `table`: the table as `create_table` takes it (name, location, type, recordKey, partitionBy,
    paths, orderingFields, mergeMode, index, `lock`: Hudi's options of it) and the write's
    `options`. `work`: {"type": "Ingest", "name", "operation", "source": {"type": "Files", "path",
    "format", "csv"} or {"type": "Kafka" or "Debezium", "format", "kafka": see
    `hudi_table.sources.kafka.settings`}, "transform": [steps,
    see `hudi_table.services.transforming.steps`], of Kafka also "mode", "commitIntervalSeconds",
    MEMORY_BYTES, "onUndecodable": Fail or Quarantine, of every source "expectations": [{"name",
    "sql", "onFail": Fail, Quarantine or Drop}], "maxErrorRatio", "schemaPolicy": a
    `SchemaPolicy`}, {"type":
    "Purge"}, {"type": "Bootstrap", "path", "mode": MetadataOnly or FullRecord, "pattern"}, or of a
    table service {"type": a `ServiceType`,
    "mode": Plan, Schedule, Execute or ScheduleAndExecute, "options": those of the service, which
    win over the table's, "plan": digest of an approved dry run or "", "instant": what it is about
    or "", "force": whether or not its own trigger says so, "comment"}; of every type but Purge and
    Bootstrap also MEASURE_INDEX. `attempt`: unique name of the attempt, recorded in the checkpoint
    of its commit.
    `storage`: `endpoint`, `region`, and the names of the environment variables in `credentials`.
    `engine`: `Local` (no JVM) or `Spark` (with `spark.conf`, the manifest's properties, and
    `spark.fixed`, the launcher's, which win). `progress`: path of a JSON-lines file, or "" for the
    log.
    """

    attempt: str
    table: dict[str, Any]
    work: dict[str, Any]
    storage: dict[str, Any] = field(default_factory=dict)
    engine: str = "Spark"
    spark: dict[str, Any] = field(default_factory=dict)
    progress: str = ""

    def to_json(self) -> str:
        """Indented JSON with `apiVersion` and `kind`."""
        return _render("JobSpec", self)

    @classmethod
    def from_json(cls, text: str) -> JobSpec:
        """Parse. Raises ValueError for another kind or version, or for unknown keys."""
        return cls(**_parse("JobSpec", text))


@dataclass(frozen=True, slots=True)
class JobResult:
    """What came of an attempt: `outcome` Succeeded, Failed or NothingToDo; `error_class` a stable
    error name or "".

    `instants` made by this attempt, oldest first; `figures` are numbers with their unit in the name
    (recordsInserted, recordsUpdated, recordsDeleted, filesConsumed, bytesRead, bytesWritten,
    fileGroups, seconds, peakBytes, residentBytes, memoryBytes). `plan`: what a service has planned,
    as `ServicePlan` (docs/reference/services.md), else empty. `index`: what was measured of the
    table's index, where that was asked for: {"type", "advice": sentences, "better": another type or
    None, "instant": the newest write}.
    """

    attempt: str
    outcome: str
    error_class: str = ""
    message: str = ""
    instants: tuple[str, ...] = ()
    figures: dict[str, float] = field(default_factory=dict)
    checkpoint: str = ""
    plan: dict[str, Any] = field(default_factory=dict)
    index: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> str:
        """Indented JSON with `apiVersion` and `kind`."""
        return _render("JobResult", self)

    def within(self, max_bytes: int) -> JobResult:
        """The same result in so many bytes of JSON, 1 KiB at least: what was measured of the index
        goes first, which a later job measures again, then the details of its plan, then the end of
        its message, then all but the outcome, the error's class and the newest instant."""
        result = self
        if result._size() > max_bytes:
            result = replace(result, index={})
        if result._size() > max_bytes and "details" in result.plan:
            result = replace(result, plan={**result.plan, "details": []})
        over = result._size() - max_bytes
        if over > 0:
            # Each character that is cut away took a byte at least.
            result = replace(result, message=result.message[: max(0, len(result.message) - over)])
        if result._size() > max_bytes:
            result = replace(
                result, message=result.message[:64], checkpoint="", plan={}, figures={}, instants=result.instants[-1:]
            )
        return result

    def _size(self) -> int:
        return len(self.to_json().encode())

    @classmethod
    def from_json(cls, text: str) -> JobResult:
        """Parse. Raises ValueError for another kind or version, or for unknown keys."""
        raw = _parse("JobResult", text)
        return cls(**{**raw, "instants": tuple(raw.get("instants", ()))})


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(word.capitalize() for word in rest)


def _render(kind: str, document: JobSpec | JobResult) -> str:
    body = {_camel(name): getattr(document, name) for name in document.__dataclass_fields__}
    if not body.get("index", True):
        # An earlier release of the operator refuses the key, and never asks for it.
        del body["index"]
    return json.dumps({"apiVersion": VERSION, "kind": kind, **body}, indent=2, ensure_ascii=False)


def _parse(kind: str, text: str) -> dict[str, Any]:
    raw = parse_json(text)
    if not isinstance(raw, dict) or raw.pop("apiVersion", None) != VERSION or raw.pop("kind", None) != kind:
        raise ValueError(f"not a {kind} of {VERSION}")
    cls = JobSpec if kind == "JobSpec" else JobResult
    names = {_camel(name): name for name in cls.__dataclass_fields__}
    unknown = sorted(set(raw) - set(names))
    if unknown:
        raise ValueError(f"{kind} has unknown keys: {', '.join(unknown)}")
    return {names[key]: value for key, value in raw.items()}
