"""JobSpecs of ingests and table services. No secret enters: `storage.credentials` names the
variables that the launcher fills."""

from __future__ import annotations

from typing import Any

from hudi_operator.api.fields.bootstrap import BootstrapSpec
from hudi_operator.api.fields.shaping import OnError
from hudi_operator.api.ingests.ingest import COMMIT_INTERVAL, MAX_ERROR_RATIO, IngestMode, IngestSpec
from hudi_operator.api.ingests.source import SourceType
from hudi_operator.api.schema import to_document
from hudi_operator.api.service import RunMode
from hudi_operator.api.table import HudiTableSpec
from hudi_operator.manifests.quantities import bytes_of, seconds_of
from hudi_operator.manifests.services import ServiceWork, resize_wanted
from hudi_operator.manifests.sources import (
    custom_document,
    kafka_document,
    kinesis_document,
    query_document,
    upstream_document,
)
from hudi_table.errors import InvalidRequestError
from hudi_table.model.job.jobspec import MEMORY_BYTES, JobSpec
from hudi_table.model.job.variables import SOURCE_VARIABLES
from hudi_table.model.options.known import renamed
from hudi_table.model.service.services import ServiceType
from hudi_table.model.table.config import TableConfig
from hudi_table.model.table.index_properties import CONNECTION

FILES_BYTES = "256Mi"
"""Of one commit of a driver that has no end, whatever waits."""
LOCAL_ENGINE_BYTES_MAX = 256 << 20
"""An ingest whose files are smaller and whose transforms need no Spark, or a service that reads
less, needs no JVM."""
REWRITES = (ServiceType.COMPACTION, ServiceType.LOG_COMPACTION, ServiceType.CLUSTERING, ServiceType.RESIZE)
"""Services that write rows."""
CREDENTIAL_VARIABLES = (
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "GOOGLE_SERVICE_ACCOUNT_KEY",
    "AZURE_STORAGE_ACCOUNT_NAME",
    "AZURE_STORAGE_ACCOUNT_KEY",
    "AZURE_STORAGE_SAS_TOKEN",
    CONNECTION,
    *SOURCE_VARIABLES,
)
"""Environment variables that a credentials Secret may fill: those that the store's client reads,
the connection of an index in PostgreSQL, and what Kafka, a registry and a database ask for."""


TABLE_FIELDS = (
    "location",
    "type",
    "recordKey",
    "partitionBy",
    "paths",
    "orderingFields",
    "mergeMode",
    "tableVersion",
    "index",
)
"""Fields of a HudiTable that say what the table is."""


def options_of(spec: HudiTableSpec) -> dict[str, str]:
    """Write options: `files` as Hudi's keys, then `options` under their newest names, which win."""
    return {
        "hoodie.parquet.max.file.size": str(bytes_of(spec.files.target_size)),
        "hoodie.parquet.small.file.limit": str(bytes_of(spec.files.small_file_limit)),
        "hoodie.parquet.compression.codec": spec.files.codec.value,
        **renamed(spec.options),
    }


def storage_of(spec: HudiTableSpec) -> dict[str, Any]:
    """Endpoint, region, and the names of the credential variables if a Secret provides them."""
    found = {"endpoint": spec.storage.endpoint, "region": spec.storage.region}
    document: dict[str, Any] = {key: value for key, value in found.items() if value is not None}
    if spec.storage.credentials_secret_ref is not None:
        document["credentials"] = list(CREDENTIAL_VARIABLES)
    return document


def table_of(name: str, spec: HudiTableSpec, config: TableConfig | None = None) -> dict[str, Any]:
    """The table as the job creates or checks it. A table that exists keeps its own number of
    buckets until it is resized."""
    body = to_document(spec)
    found = {"name": name, **{key: body[key] for key in TABLE_FIELDS if key in body}, "options": options_of(spec)}
    if not found.get("index", {}).get("partitionBuckets", True):
        # What an earlier release of the job does not know it is told only where it matters.
        del found["index"]["partitionBuckets"]
    if spec.lock is not None:
        found["lock"] = spec.lock.hudi_options
    if config is not None and "tableVersion" in found:
        found["tableVersion"] = config.version
    resize = resize_wanted(spec, config) if config is not None else None
    if resize is not None:
        found["index"] = {**found["index"], "buckets": resize[0]}
    return found


def ingest_job(
    name: str,
    spec: HudiTableSpec,
    ingest: IngestSpec,
    attempt: str,
    waiting_bytes: int,
    config: TableConfig | None = None,
) -> JobSpec:
    """The job of one ingest attempt. The engine is the one that the ingest names, else Local if
    there is little to read, and no transform that only Spark does."""
    body = to_document(ingest)
    if not body["source"].get("columns", True):
        # What an earlier release of the job does not know it is told only where it matters.
        del body["source"]["columns"]
    work = {
        "type": "Ingest",
        "name": ingest.name,
        "operation": ingest.operation.value,
        "source": body["source"],
        "transform": body["transform"],
    }
    most = ingest.source.max_bytes or (FILES_BYTES if ingest.mode is IngestMode.CONTINUOUS else None)
    if ingest.source.type is SourceType.FILES and most is not None:
        work["source"] = {**body["source"], "maxBytes": bytes_of(most)}
    if ingest.source.kafka is not None:
        work["source"] = {**body["source"], "kafka": kafka_document(ingest.source.kafka)}
    if ingest.source.kinesis is not None:
        work["source"] = {**body["source"], "kinesis": kinesis_document(ingest.source.kinesis)}
    if ingest.drop_duplicates:
        work["dropDuplicates"] = True
    if ingest.schema_policy is not None:
        work["schemaPolicy"] = ingest.schema_policy.value
    work |= _checks(ingest, body)
    if ingest.source.kafka is not None or ingest.mode in (IngestMode.CONTINUOUS, IngestMode.BACKFILL):
        # At its moment a job takes what is there, once.
        work["mode"] = (IngestMode.ONCE if ingest.mode is IngestMode.SCHEDULED else ingest.mode).value
        work["commitIntervalSeconds"] = seconds_of(ingest.commit_interval or COMMIT_INTERVAL)
    if ingest.mode is IngestMode.CONTINUOUS and spec.spark.driver.memory is not None:
        work[MEMORY_BYTES] = bytes_of(spec.spark.driver.memory)
    if ingest.source.jdbc is not None:
        work["source"] = {**body["source"], "jdbc": query_document(ingest.source.jdbc)}
    if ingest.source.custom is not None:
        work["source"] = {**body["source"], "custom": custom_document(ingest.source.custom)}
    if ingest.source.sql is not None:
        work["source"] = {**body["source"], "sql": query_document(ingest.source.sql)}
    if ingest.source.hudi is not None:
        work["source"] = {**body["source"], "hudi": upstream_document(ingest.source.hudi)}
    source = ingest.source
    here = any(each is not None for each in (source.kafka, source.kinesis, source.jdbc, source.sql, source.custom))
    # A driver that has no end does not keep executors unless it is asked to.
    here = here or ingest.mode is IngestMode.CONTINUOUS or ingest.sifts
    if ingest.on_spark:
        return _job(attempt, table_of(name, spec, config), work, spec, local=False)
    small = here or (waiting_bytes <= LOCAL_ENGINE_BYTES_MAX and not _needs_spark(ingest))
    return _job(attempt, table_of(name, spec, config), work, spec, local=small)


def _checks(ingest: IngestSpec, body: dict[str, Any]) -> dict[str, Any]:
    """What becomes of rows that are not as they should be, where the spec says anything of it."""
    found: dict[str, Any] = {}
    if ingest.expectations:
        found["expectations"] = body["expectations"]
    if ingest.on_undecodable is OnError.QUARANTINE:
        found["onUndecodable"] = ingest.on_undecodable.value
    if ingest.quarantines:
        found["maxErrorRatio"] = float(ingest.max_error_ratio or MAX_ERROR_RATIO)
    return found


def _needs_spark(ingest: IngestSpec) -> bool:
    """Whether a transform says what only Spark does."""
    # The parser of SQL is loaded by who starts a job, not by who reads a resource.
    from hudi_table.services.transforming.chain_check import check_chain

    try:
        check_chain([to_document(each) for each in ingest.transform], arrival_decides=False)
    except InvalidRequestError:
        return True
    return False


def service_job(
    name: str, spec: HudiTableSpec, work: ServiceWork, attempt: str, bytes_read: int, config: TableConfig | None = None
) -> JobSpec:
    """The job of one attempt at a table service. Only what rewrites many rows is worth a JVM."""
    rewrites = work.type in REWRITES and work.mode in (RunMode.EXECUTE, RunMode.SCHEDULE_AND_EXECUTE)
    small = not rewrites or bytes_read <= LOCAL_ENGINE_BYTES_MAX
    return _job(attempt, table_of(name, spec, config), work.document(), spec, local=small)


def purge_job(name: str, spec: HudiTableSpec, attempt: str) -> JobSpec:
    """The job that deletes the table with its files."""
    return _job(attempt, table_of(name, spec), {"type": "Purge"}, spec, local=True)


def bootstrap_job(name: str, spec: HudiTableSpec, bootstrap: BootstrapSpec, attempt: str) -> JobSpec:
    """The job that makes the table of files. It runs on the local engine: most of what it does is
    done by the store."""
    return _job(attempt, table_of(name, spec), {"type": "Bootstrap", **to_document(bootstrap)}, spec, local=True)


def _job(attempt: str, table: dict[str, Any], work: dict[str, Any], spec: HudiTableSpec, *, local: bool) -> JobSpec:
    return JobSpec(
        attempt=attempt,
        table=table,
        work=work,
        storage=storage_of(spec),
        engine="Local" if local else "Spark",
        spark={} if local else {"conf": dict(spec.spark.conf)},
    )
