"""What a job would refuse, before one is started: the job's own checks, run on a manifest without a
row.

Types of columns are not known before the first rows: what they alone could tell is left to the job.
So is what packages offer that only the jobs' image has: a custom index, merger or key generator.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace

import pyarrow as pa

from hudi_operator.api.ingests.ingest import IngestOperation, IngestSpec
from hudi_operator.api.ingests.source import SourceType
from hudi_operator.api.schema import to_document
from hudi_operator.api.service import RunMode
from hudi_operator.api.table import HudiTableSpec
from hudi_operator.manifests.jobs import options_of
from hudi_operator.manifests.services import ServiceWork
from hudi_table.errors import HudiError, InvalidRequestError, InvalidSchemaError, InvariantError
from hudi_table.metadata.port import HudiMetadata
from hudi_table.model.names import META_COLUMNS
from hudi_table.model.options.known import EVENT_TIME_FIELD, ignored_options, option_text
from hudi_table.model.options.lock_settings import MODE
from hudi_table.model.options.write_options import CUSTOM_KEYS, CUSTOM_MERGER, Operation
from hudi_table.model.service.services import ServiceRequest, ServiceType
from hudi_table.model.table.config import PartitionType, TableConfig
from hudi_table.model.table.index_properties import INDEX_CLASS
from hudi_table.model.table.layouts import fills_unavailable
from hudi_table.model.table.properties import from_properties, to_properties
from hudi_table.services.archiving.policy import ArchivePolicy
from hudi_table.services.base import Planned
from hudi_table.services.cleaning.ttl import TtlOptions
from hudi_table.services.inline import check_inline
from hudi_table.services.registry import Services
from hudi_table.table.rows.row_order import order_of
from hudi_table.table.store.ports import Clock, Storage
from hudi_table.table.timeline.context import TableContext, TxnSettings
from hudi_table.write.checks.create_table import TableSpec, config_of
from hudi_table.write.checks.request import prepare
from hudi_table.write.checks.table_options import table_options

OPERATIONS = {
    IngestOperation.UPSERT: Operation.UPSERT,
    IngestOperation.INSERT: Operation.INSERT,
    IngestOperation.BULK_INSERT: Operation.BULK_INSERT,
}
KINDS = (pa.timestamp("us"), pa.int64(), pa.date32(), pa.string())
"""What a column of times may be, the likeliest first."""
_CHOSEN = frozenset({ServiceType.COMPACTION, ServiceType.LOG_COMPACTION, ServiceType.CLUSTERING, ServiceType.CLEANING})
"""Services that read what their options ask for before they look at the table."""


def refuse_table(name: str, spec: HudiTableSpec) -> None:
    """Refuse a table that no job could make. Raises what the job would: InvalidRequestError and its
    kinds, UnsupportedTableError."""
    if not _is_of_package(spec):
        options = _acting(options_of(spec))
        TxnSettings.from_properties(made(name, spec, options)[1].extra)


def refuse_ingest(
    name: str, spec: HudiTableSpec, ingest: IngestSpec, config: TableConfig | None, storage: Storage, clock: Clock
) -> None:
    """Refuse an ingest that no job could do; `config` is None where there is no table yet. The
    storage is asked nothing. Raises as `refuse_table`."""
    if _is_of_package(spec, config):
        return
    options = _acting(options_of(spec))
    if config is None:
        schema, known = made(name, spec, options)
    else:
        schema, known = _columns(spec, options, pa.string()), _followed(spec, config)
    check_inline(TableContext(storage, known, clock, HudiMetadata()), options)
    # Of its columns nothing is known yet.
    with suppress(InvalidSchemaError):
        prepare(known, OPERATIONS[ingest.operation], options, None, schema)


def refuse_service(work: ServiceWork, spec: HudiTableSpec, config: TableConfig, storage: Storage, clock: Clock) -> None:
    """Refuse a service that no job could do, by the options of table and service. Raises as
    `refuse_table`."""
    if config.index is None or _is_of_package(spec, config):
        # Whether such a table has rings only its folders tell.
        return
    options = _acting({**options_of(spec), **work.options})
    context = TableContext(storage, config, clock, HudiMetadata())
    service = Services(context).of_type(work.type, ServiceRequest(options, force=work.force))
    if work.type in _CHOSEN and work.mode is not RunMode.EXECUTE and isinstance(service, Planned):
        service.choice(context, force=work.force)
    elif work.type is ServiceType.ARCHIVING:
        ArchivePolicy.parse(options)
    elif work.type is ServiceType.PARTITION_TTL:
        TtlOptions.parse(options)


def _acting(options: Mapping[str, str]) -> dict[str, str]:
    """Without those that do nothing: of them the job warns, where its user reads it."""
    # What the lock asks for is checked with the resource; nothing is locked to look ahead.
    idle = {key for key, _ in ignored_options(options)} | {MODE}
    return {key: value for key, value in options.items() if key not in idle}


def made(name: str, spec: HudiTableSpec, options: Mapping[str, str]) -> tuple[pa.Schema, TableConfig]:
    """The table as the job of the first ingest would make it, if it could of columns of some type.
    Raises what the likeliest type gives."""
    refused: HudiError | None = None
    for kind in KINDS if any(each.type is PartitionType.TIMESTAMP for each in spec.partition_by) else KINDS[:1]:
        schema = _columns(spec, options, kind)
        try:
            config = config_of(_table_spec(name, spec, schema, options), spec.location)
            # As it will be read back.
            return schema, from_properties(to_properties(config), spec.location)
        except InvalidRequestError as error:
            refused = refused or error
    raise refused or InvariantError("a table is made of some type")


def _table_spec(name: str, spec: HudiTableSpec, schema: pa.Schema, options: Mapping[str, str]) -> TableSpec:
    from_debezium = any(each.source.type is SourceType.DEBEZIUM for each in spec.ingest)
    fills = from_debezium and fills_unavailable(spec.ordering_fields, spec.type, spec.table_version)
    return TableSpec(
        schema,
        record_key=list(spec.record_key),
        partition_by=[to_document(each) for each in spec.partition_by],
        ordering_fields=list(spec.ordering_fields),
        type=spec.type.value,
        merge_mode=spec.merge_mode.value if spec.merge_mode is not None else None,
        partial_updates="FillUnavailable" if fills else None,
        index=to_document(spec.index) if spec.index is not None else None,
        name=name,
        hive_style=spec.paths.hive_style,
        url_encode=spec.paths.url_encode,
        version=spec.table_version,
        options=table_options(options),
    )


def _followed(spec: HudiTableSpec, config: TableConfig) -> TableConfig:
    """The table with the index that the next job gives it."""
    wanted, there = spec.index, config.index
    if wanted is None or there is None or wanted.type is there.type or not there.type.can_become(wanted.type):
        return config
    return replace(config, index=replace(there, type=wanted.type))


def _is_of_package(spec: HudiTableSpec, config: TableConfig | None = None) -> bool:
    index = spec.index.type.is_custom if spec.index is not None else False
    stored = config.extra if config is not None else {}
    there = config is not None and config.index is not None and config.index.type.is_custom
    named = any(key in each for each in (spec.options, stored) for key in (CUSTOM_KEYS, CUSTOM_MERGER, INDEX_CLASS))
    return index or there or named


def _columns(spec: HudiTableSpec, options: Mapping[str, str], kind: pa.DataType) -> pa.Schema:
    """The columns that manifest and options name; `kind`: the type of those from which a
    partition's time is made."""
    times = {each.field: kind for each in spec.partition_by if each.type is PartitionType.TIMESTAMP}
    fields = [each.field for each in spec.partition_by]
    named = [*spec.record_key, *fields, *spec.ordering_fields, *order_of(options).columns]
    found = {name.partition(".")[0]: times.get(name, pa.string()) for name in named if name not in META_COLUMNS}
    found.setdefault(option_text(options, EVENT_TIME_FIELD), pa.int64())
    return pa.schema(found.items())
