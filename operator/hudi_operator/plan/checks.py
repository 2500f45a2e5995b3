"""What stands against a HudiTable: what this release does not do, and what contradicts the table
that exists."""

from __future__ import annotations

from hudi_operator.api.fields.maintenance import ServiceMode
from hudi_operator.api.ingests.ingest import IngestMode, IngestOperation, IngestSpec
from hudi_operator.api.ingests.source import MESSAGES, SourceType
from hudi_operator.api.ingests.upstreams import UpstreamDeletes
from hudi_operator.api.options import described_errors
from hudi_operator.api.parsing import FieldError
from hudi_operator.api.resources import DesiredTable
from hudi_operator.api.schema import to_document
from hudi_operator.api.service import TableServiceSpec
from hudi_operator.api.table import DeletionPolicy, HudiTableSpec, PartitionFieldSpec
from hudi_operator.errors import InvalidSpecError
from hudi_operator.plan.effects import Effect, Hold
from hudi_operator.plan.observed import Observed, Problem, TableObservation
from hudi_operator.plan.versions import service_refused, table_refused
from hudi_table.errors import InvalidRequestError
from hudi_table.model.service.services import ServiceType
from hudi_table.model.table.config import MergeMode, PartitionField, PartitionType, TableConfig, TableType
from hudi_table.model.table.index_changes import exchange_problem
from hudi_table.services.select_check import check_select
from hudi_table.services.transforming.chain_check import check_by_row, check_chain, check_expectations

NOT_HOLDABLE = (
    "spec.deletionPolicy is Purge, but the operator's right to let go of the table lives in its namespace, which could then never be "
    "deleted: set rbac.purge of the chart, or give Retain or Unregister; until then the files would stay"
)


def problem_of(desired: DesiredTable, table: TableObservation | None) -> Problem | None:
    """The one problem that keeps a table from being worked on, all its fields in one message; None
    if there is none."""
    if desired.identity.deleted:
        return Problem("Deleting", "it is being deleted")
    if desired.errors or desired.spec is None:
        return _problem(InvalidSpecError.name(), desired.errors)
    transforms = _transforms(desired.spec)
    if transforms:
        return _problem(InvalidSpecError.name(), transforms)
    contradictions = contradictions_of(desired.spec, table.config) if table is not None else ()
    contradictions = (*contradictions, *table_refused(desired.spec, table))
    return _problem(InvalidSpecError.name(), contradictions) if contradictions else None


def _problem(reason: str, errors: tuple[FieldError, ...]) -> Problem:
    return Problem(reason, "; ".join(str(error) for error in errors))


def service_contradictions(
    spec: TableServiceSpec, table: HudiTableSpec, there: TableObservation | None = None
) -> tuple[FieldError, ...]:
    """Where a service cannot be of its table: by what the table is, `there` if it is there yet, or
    by what its own `maintenance` keeps."""
    bucketed = table.index is not None and table.index.type.has_fixed_buckets
    logs = (ServiceType.COMPACTION, ServiceType.LOG_COMPACTION)
    found = []
    if spec.type in logs and table.type is TableType.COPY_ON_WRITE:
        found.append(FieldError("spec.type", f"is {spec.type.value}, but a CopyOnWrite table has no logs to compact"))
    if spec.type is ServiceType.CLUSTERING and bucketed:
        found.append(FieldError("spec.type", "is Clustering, which would move the rows of a Bucket index; use Resize"))
    if spec.type is ServiceType.RESIZE and not bucketed:
        found.append(FieldError("spec.type", "is Resize, but the table has no Bucket index; use Clustering"))
    if spec.type is ServiceType.PARTITION_TTL and not table.partition_by:
        found.append(FieldError("spec.type", "is PartitionTTL, but the table is not partitioned: no partition expires"))
    described = described_errors(table, spec.table_ref.name, spec.options)
    return (*found, *described, *service_refused(spec, table, there), *_retention(spec, table))


def _retention(spec: TableServiceSpec, table: HudiTableSpec) -> tuple[FieldError, ...]:
    """Commits must not leave the timeline before their files."""
    cleaning, archiving = table.maintenance.cleaning, table.maintenance.archiving
    kept, least = cleaning.keep_commits, archiving.min_commits
    late = "commits would leave before their files; give"
    if spec.archiving is not None and cleaning.mode is ServiceMode.AUTO and spec.archiving.min_commits <= kept:
        said = f"is {spec.archiving.min_commits}, but maintenance.cleaning.keepCommits of the table is {kept}: {late} "
        return (FieldError("spec.archiving.minCommits", f"{said}{kept + 1} or more"),)
    keeps = spec.cleaning.keep_commits if spec.cleaning is not None else None
    if keeps is not None and archiving.mode is ServiceMode.AUTO and keeps >= least:
        said = f"is {keeps}, but maintenance.archiving.minCommits of the table is {least}: {late} "
        return (FieldError("spec.cleaning.keepCommits", f"{said}{least - 1} or less"),)
    return ()


def _transforms(spec: HudiTableSpec) -> tuple[FieldError, ...]:
    found = []
    for i, ingest in enumerate(spec.ingest):
        for j, transform in enumerate(ingest.transform):
            try:
                if transform.sql is not None:
                    check_select(transform.sql)
            except InvalidRequestError as error:
                found.append(FieldError(f"spec.ingest[{i}].transform[{j}].sql", error.message))
        found += _expectations(i, ingest)
        found += _by_row(i, ingest)
        if (ingest.source.type in MESSAGES or ingest.mode is IngestMode.CONTINUOUS) and not found:
            found += _stream_transforms(i, spec, ingest)
    return tuple(found)


def _stream_transforms(number: int, spec: HudiTableSpec, ingest: IngestSpec) -> list[FieldError]:
    """Rows of a stream have an order. Without engine Spark each SELECT is one that DuckDB runs."""
    needed = [*spec.record_key, *(each.field for each in spec.partition_by)]
    upserts = ingest.operation is IngestOperation.UPSERT
    latest_wins = not spec.ordering_fields or spec.merge_mode is MergeMode.COMMIT_TIME
    hudi, setting = ingest.source.hudi, "kafka.tombstones" if ingest.source.hudi is None else "hudi.deletes"
    deletes: list[str] = []
    if ingest.source.type is SourceType.DEBEZIUM:
        setting = ""
        deletes = [*needed, *spec.ordering_fields, "_change_operation_type"]
    elif ingest.source.deletes or (hudi is not None and hudi.deletes is UpstreamDeletes.DELETE):
        deletes = needed
    try:
        check_chain(
            [to_document(each) for each in ingest.transform],
            arrival_decides=upserts and latest_wins and (ingest.source.type in MESSAGES or bool(deletes)),
            deletes=deletes,
            setting=setting,
            by_spark=ingest.on_spark and ingest.source.kafka is not None,
        )
    except InvalidRequestError as error:
        return [FieldError(f"spec.ingest[{number}].transform", error.message)]
    return []


def _expectations(number: int, ingest: IngestSpec) -> list[FieldError]:
    try:
        check_expectations([{"name": each.name, "sql": each.sql} for each in ingest.expectations])
    except InvalidRequestError as error:
        return [FieldError(f"spec.ingest[{number}].expectations", error.message)]
    return []


def _by_row(number: int, ingest: IngestSpec) -> list[FieldError]:
    """Rows that a transform cannot take are found in one process, by what it does without
    Spark."""
    chain = [to_document(each) for each in ingest.transform]
    try:
        check_by_row(chain)
        if ingest.sifts:
            check_chain(chain, arrival_decides=False)
    except InvalidRequestError as error:
        return [FieldError(f"spec.ingest[{number}].transform", error.message)]
    return []


def contradictions_of(spec: HudiTableSpec, config: TableConfig) -> tuple[FieldError, ...]:
    """Where a spec says otherwise than the table that exists. What a table is cannot change under
    its rows."""
    pairs = (
        ("type", spec.type.value, config.type.value),
        ("recordKey", list(spec.record_key), list(config.record_key)),
        ("partitionBy", [_shape(p) for p in spec.partition_by], [_shape(p) for p in config.partition_by]),
        ("paths.hiveStyle", spec.paths.hive_style, config.hive_style),
        ("paths.urlEncode", spec.paths.url_encode, config.url_encode),
        ("orderingFields", list(spec.ordering_fields), list(config.ordering_fields)),
    )
    found = [_contradiction(name, wanted, there) for name, wanted, there in pairs if wanted != there]
    if spec.merge_mode is not None and spec.merge_mode is not config.merge_mode:
        found.append(_contradiction("mergeMode", spec.merge_mode.value, config.merge_mode.value))
    return (*found, *_index_contradictions(spec, config))


def _index_contradictions(spec: HudiTableSpec, config: TableConfig) -> tuple[FieldError, ...]:
    if spec.index is None or config.index is None:
        return ()
    wanted, there = spec.index, config.index
    if wanted.type is not there.type and there.type.can_become(wanted.type):
        # Where nothing is against it, the next run exchanges them.
        problem = exchange_problem(config)
        return (
            ()
            if problem is None
            else (FieldError("spec.index.type", f"is {wanted.type.value!r}, and the table {problem}"),)
        )
    if wanted.type is not there.type:
        return (_contradiction("index.type", wanted.type.value, there.type.value),)
    if wanted.type.is_custom and there.class_name and wanted.class_name != there.class_name:
        return (_contradiction("index.className", wanted.class_name, there.class_name),)
    if not wanted.type.hashes:
        return ()
    # Another number of buckets is a wish for a resize, which needs an approval; until then the table keeps its own.
    pairs: list[tuple[str, object, object]] = [
        ("hashFields", list(wanted.hash_fields or spec.record_key), list(there.hash_fields or spec.record_key)),
        (
            "partitionBuckets",
            [f"{item.partitions}: {item.buckets}" for item in wanted.partition_buckets],
            [f"{expression}: {number}" for expression, number in there.partition_buckets],
        ),
    ]
    if wanted.type.has_rings:
        pairs.append(("buckets", wanted.buckets, there.buckets))
    return tuple(_contradiction(f"index.{name}", want, have) for name, want, have in pairs if want != have)


def _contradiction(name: str, wanted: object, there: object) -> FieldError:
    return FieldError(
        f"spec.{name}",
        f"is {wanted!r}, but the table at this location was made with {there!r}; it cannot change: "
        f"put {there!r} back, or make a new table at another location",
    )


def _shape(item: PartitionField | PartitionFieldSpec) -> str:
    parts = [item.field]
    if item.type is PartitionType.TIMESTAMP:
        parts += [item.format or "", item.timezone]
    return ":".join(parts)


def held(desired: DesiredTable, observed: Observed) -> list[Effect]:
    """A table whose files go with it is held back before it has any; but where our rights may go
    before it, its namespace would never go."""
    spec, identity = desired.spec, desired.identity
    if spec is None or identity.deleted:
        return []
    wanted = spec.deletion_policy is DeletionPolicy.PURGE and observed.holdable
    return [Hold(wanted)] if wanted != identity.held else []
