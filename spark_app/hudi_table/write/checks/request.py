"""Checks of a request before anything is written: table, options, index, columns.

Everything that can be known without the rows is refused here by name; what only rows can tell (null
keys, null ordering values) is refused while they are taken in, which still precedes the first file
and the claim.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from hudi_table.codec.arrow_types import normalise
from hudi_table.errors import InvalidOptionError, InvalidRequestError, InvalidSchemaError, UnsupportedTableError
from hudi_table.index.base import Index
from hudi_table.index.kinds import index_for
from hudi_table.model.options.known import INDEX_SETTINGS
from hudi_table.model.options.values import stored_boolean
from hudi_table.model.options.write_options import (
    DROP_DUPLICATES,
    DUPLICATE_POLICY,
    DuplicatePolicy,
    Operation,
    SortMode,
    WriteOptions,
    operation_option,
)
from hudi_table.model.table.cdc import CDC_ENABLED, CDC_MODE
from hudi_table.model.table.config import IndexSpec, MergeMode, TableConfig, TableType
from hudi_table.model.table.index_properties import (
    BUCKETS,
    ENGINE,
    EXPRESSIONS,
    HASH_FIELDS,
    INDEX_CLASS,
    INDEX_TYPE,
    index_settings,
    keys_move,
)
from hudi_table.model.table.layouts import has_logical_types
from hudi_table.model.table.partition_buckets import render_rules
from hudi_table.model.timeline.commits import SCHEMA_KEY
from hudi_table.table.keys.record_keys import unmade_keys
from hudi_table.table.rows.merge import MergeRule
from hudi_table.write.checks.inline_clustering import check_inline_order
from hudi_table.write.checks.merge_mode import (
    merge_rule,
    payload_option,
    refuse_custom_keys,
    refuse_merging,
    unknown_merging,
)
from hudi_table.write.checks.metadata_indexes import check_metadata_indexes
from hudi_table.write.checks.non_blocking import check_non_blocking
from hudi_table.write.checks.reserved_columns import own_columns
from hudi_table.write.checks.schema_evolution import evolve
from hudi_table.write.checks.table_options import index_option, refuse_contradictions, refuse_moves, refuse_state
from hudi_table.write.event_times import check_event_time
from hudi_table.write.functions import custom_keys, custom_merger
from hudi_table.write.settings import bloom_filter


@dataclass(frozen=True, slots=True)
class Prepared:
    """A checked request. `schema` is what files will hold (no meta columns), `changed` whether it
    is new to the table.

    `stored` is the schema that the table had, None for a table that never had one, `buckets` the
    number that it stored. `columns` are those that the rows must have, in the types in which they
    are taken in.
    """

    operation: Operation
    options: WriteOptions
    index: Index
    index_from_options: bool
    rule: MergeRule
    combine_orderings: tuple[str, ...]
    stored: pa.Schema | None
    buckets: int | None
    schema: pa.Schema
    changed: bool
    columns: pa.Schema
    sort_mode: SortMode

    @property
    def duplicates(self) -> DuplicatePolicy:
        """What becomes of rows whose key is stored, where the operation does not merge them."""
        return self.options.duplicates

    @property
    def finds_keys(self) -> bool:
        """Whether it matters to the write which keys are stored."""
        return self.operation.merges or self.duplicates is not DuplicatePolicy.NONE

    @property
    def appends(self) -> bool:
        """Whether it goes on beside others that append to the same buckets."""
        operation = self.operation
        blind = operation.merges or (operation is Operation.INSERT and not self.finds_keys)
        return self.options.non_blocking and blind and not self.changed

    @property
    def combines(self) -> bool:
        """Whether rows of one key in the data become one."""
        if self.operation.merges:
            return True
        return self.operation is not Operation.DELETE_PARTITION and self.options.combine_before_insert


def prepare(
    config: TableConfig,
    operation: str,
    options: Mapping[str, str],
    table_schema: pa.Schema | None,
    data_schema: pa.Schema | None,
) -> Prepared:
    """Check a request against its table. Raises InvalidRequestError (or a subclass) or
    UnsupportedTableError.

    `data_schema` is None for `delete_partition`, which takes no rows.
    """
    parsed = WriteOptions.parse(options)
    chosen = parse_operation(operation_option(operation, options))
    refuse_unsupported(config)
    refuse_contradictions(config, options)
    orderings = config.compared_fields
    payload = payload_option(config, options)
    mode = payload.mode
    if mode is MergeMode.EVENT_TIME and not orderings:
        raise InvalidRequestError(
            f"table {config.name!r} merges by event time and names no ordering field; create it with ordering_fields"
        )
    index, index_from_options = resolve_index(config, options)
    _check_duplicates(parsed, chosen)
    check_metadata_indexes(config, parsed)
    if parsed.non_blocking:
        check_non_blocking(config)
    bloom_filter(parsed, needed=index.needs_filters)
    refuse_merging(config, payload, index)
    refuse_custom_keys(config)
    merger = custom_merger(config)
    custom_keys(config)
    anywhere = chosen is Operation.DELETE and index.is_global
    taken_from = config if not anywhere else replace(config, partition_by=())
    schema, changed, columns = _schemas(taken_from, chosen, parsed, table_schema, data_schema)
    if chosen not in (Operation.DELETE, Operation.DELETE_PARTITION):
        check_event_time(parsed.event_time, schema)
    check_inline_order(options, schema)
    absent = [name for name in orderings if schema.get_field_index(name) < 0]
    if absent:
        # Hudi tables may name an ordering column that was never written; then rows only follow each other.
        if mode is MergeMode.EVENT_TIME:
            raise InvalidSchemaError(f"the ordering column '{absent[0]}' is not in the table's schema")
        orderings = ()
    return Prepared(
        operation=chosen,
        options=parsed,
        index=index,
        index_from_options=index_from_options,
        rule=merge_rule(payload, config.later_merge, orderings, chosen, merger),
        combine_orderings=orderings if chosen is not Operation.DELETE else (),
        stored=table_schema,
        buckets=None if config.index is None else config.index.buckets,
        schema=schema,
        changed=changed,
        columns=columns,
        sort_mode=parsed.sort_mode,
    )


def _check_duplicates(options: WriteOptions, operation: Operation) -> None:
    if options.duplicates is not DuplicatePolicy.NONE and operation is not Operation.INSERT:
        raise InvalidOptionError(
            f"{DUPLICATE_POLICY}={options.duplicates} (or {DROP_DUPLICATES}=true) is of operation insert, and this is {operation.value}: write "
            "by operation insert, or leave the option out"
        )


def parse_operation(name: str) -> Operation:
    """The operation of a name. Raises InvalidRequestError."""
    try:
        return Operation(name)
    except ValueError:
        known = ", ".join(operation.value for operation in Operation)
        raise InvalidRequestError(f"unknown operation {name!r}; use one of {known}") from None


def refuse_extra(extra: Mapping[str, str], batch_key: str) -> None:
    """Raise InvalidRequestError for what a commit cannot carry for its caller: no text, or under a
    key that it has itself."""
    for key, value in extra.items():
        if key in (SCHEMA_KEY, batch_key):
            raise InvalidRequestError(f"extra_metadata {key!r} is a key of the commit itself: give another name")
        if not isinstance(key, str) or not isinstance(value, str):
            raise InvalidRequestError(f"extra_metadata {key!r}: {value!r} has to be texts, key and value")


def refuse_unsupported(config: TableConfig, *, merges: bool = True) -> None:
    """Refuse tables that this release cannot write. Raises UnsupportedTableError that names the
    feature. `merges`: what is done with the table merges its rows."""
    extra = config.extra
    faults = [
        (
            config.type is TableType.MERGE_ON_READ
            and config.merge_mode is MergeMode.EVENT_TIME
            and config.index is not None
            and config.index.type.is_global
            and keys_move(config),
            "is merge-on-read by event time with a global index (take a Bucket or Simple index, or merge by CommitTime)",
        ),
        (
            config.index is not None
            and config.index.type.metadata_partition is not None
            and not config.populate_meta_fields,
            "has a record index and stores no record keys (hoodie.populate.meta.fields=false)",
        ),
        (extra.get("hoodie.table.base.file.format", "PARQUET").upper() != "PARQUET", "has base files that are not Parquet"),
        (_true(extra, "hoodie.table.multiple.base.file.formats.enable"), "has base files in several formats"),
        (_true(extra, "hoodie.datasource.write.drop.partition.columns"), "drops its partition columns"),
        (_true(extra, "hoodie.partition.metafile.use.base.format"), "keeps partition metadata in base file format"),
        (
            config.type is TableType.COPY_ON_WRITE
            and config.index is not None
            and config.index.type.has_rings,
            "is copy-on-write with a ConsistentBucket index, which Hudi has for merge-on-read tables alone",
        ),
        (not config.record_key, "has no record key"),
        (
            _true(extra, CDC_ENABLED) and config.cdc is None,
            f"logs changes in mode {extra.get(CDC_MODE)} ({CDC_MODE})",
        ),
    ]  # fmt: skip
    found = [what for present, what in faults if present]
    unmade = unmade_keys(config)
    if unmade is not None:
        raise UnsupportedTableError(f"table {config.name!r} cannot be written: it {unmade}")
    for what in (*found, *(unknown_merging(config) if merges else ())):
        raise UnsupportedTableError(f"table {config.name!r} {what}, which this release does not write")


def resolve_index(config: TableConfig, options: Mapping[str, str]) -> tuple[Index, bool]:
    """The table's index, and whether the options alone name it. A consistent one has the rings that
    partitions begin with.

    Raises as `resolve_spec` does, and what `index_for` raises.
    """
    return index_for(config, resolve_spec(config, options), options), config.index is None


def resolve_spec(config: TableConfig, options: Mapping[str, str]) -> IndexSpec:
    """What the table stores of its index, or else what the options tell of it.

    Raises InvalidOptionError for a contradiction, InvalidRequestError if nobody tells,
    UnsupportedTableError for an index that this release does not have.
    """
    spec_of_options = _index_argument(options, config.index)
    if spec_of_options is not None and config.index is not None:
        _refuse_other_index(config.index, spec_of_options, config.record_key)
    spec = config.index or spec_of_options
    _refuse_other_settings(spec, options)
    if spec is None:
        raise InvalidRequestError(
            f"table {config.name!r} stores no index: give options {INDEX_TYPE}=BUCKET with {BUCKETS}, "
            f"or {INDEX_TYPE}=SIMPLE, GLOBAL_SIMPLE, BLOOM, GLOBAL_BLOOM, RECORD_INDEX, RECORD_LEVEL_INDEX or FLINK_STATE, as its other writers do"
        )
    refuse_moves(spec, options)
    refuse_state(spec, options)
    if spec.type.metadata_partition is not None:
        refuse_unsupported(replace(config, index=spec))
    return spec


def _index_argument(options: Mapping[str, str], stored: IndexSpec | None) -> IndexSpec | None:
    spec = index_option(options, stored)
    if spec is not None and spec.type.is_custom and not spec.class_name:
        raise InvalidOptionError(f"{INDEX_TYPE}=CUSTOM needs {INDEX_CLASS}, the name of the index")
    return spec


def _refuse_other_index(stored: IndexSpec, named: IndexSpec, record_key: tuple[str, ...]) -> None:
    if stored.type.is_custom or named.type.is_custom:
        pairs = [(INDEX_CLASS, stored.class_name or stored.type.hudi_name, named.class_name or named.type.hudi_name)]
    else:
        pairs = [(INDEX_TYPE, stored.type.hudi_name, named.type.hudi_name)]
    if stored.type.hashes and named.type.hashes:
        pairs.append((ENGINE, str(stored.type.engine), str(named.type.engine)))
        pairs.append((BUCKETS, str(stored.buckets), str(named.buckets)))
        if named.partition_buckets:
            pairs.append((EXPRESSIONS, render_rules(stored.partition_buckets), render_rules(named.partition_buckets)))
        if named.hash_fields:
            fields = stored.hash_fields or record_key
            pairs.append((HASH_FIELDS, ",".join(sorted(fields)), ",".join(sorted(named.hash_fields))))
    for key, have, want in pairs:
        if have != want:
            raise InvalidOptionError(
                f"option {key}={want} contradicts the table, which stores {have}; remove the option"
            )


def _refuse_other_settings(spec: IndexSpec | None, options: Mapping[str, str]) -> None:
    """Settings are stored with the table, so that all its writers have the same."""
    stored = dict(spec.settings) if spec is not None else {}
    for name, value in index_settings(options):
        if stored.get(name) != value:
            have = repr(stored[name]) if name in stored else "no such setting"
            raise InvalidOptionError(
                f"option {INDEX_SETTINGS}{name}={value} contradicts the table's index, which has {have}; remove the option"
            )


def _schemas(
    config: TableConfig,
    operation: Operation,
    options: WriteOptions,
    table_schema: pa.Schema | None,
    data_schema: pa.Schema | None,
) -> tuple[pa.Schema, bool, pa.Schema]:
    """(schema of the files, whether it is new, columns that rows are taken in with)."""
    if data_schema is None:
        return table_schema or pa.schema([]), False, pa.schema([])
    incoming = normalise(own_columns(data_schema), known=table_schema, logical_types=has_logical_types(config.version))
    needed = [*config.record_key, *config.partition_fields]
    if operation is Operation.UPSERT or operation is Operation.INSERT:
        needed += [name for name in config.ordering_fields if table_schema is None or name in table_schema.names]
    for name in dict.fromkeys(needed):
        _need_column(config, name, incoming)
    if operation is Operation.DELETE:
        columns = [_key_field(name, table_schema, incoming) for name in dict.fromkeys(needed)]
        return table_schema or incoming, False, pa.schema(columns)
    if table_schema is None:
        return incoming, True, incoming
    keys = {name.partition(".")[0] for name in (*config.record_key, *config.partition_fields)}
    evolved = evolve(
        table_schema,
        incoming,
        null_for_missing=options.null_for_missing,
        keys=keys,
        orders={name.partition(".")[0] for name in config.ordering_fields},
        relaxes=options.evolves,
    )
    return evolved.schema, evolved.changed, evolved.schema


def _need_column(config: TableConfig, path: str, incoming: pa.Schema) -> None:
    name = path.partition(".")[0]
    if incoming.get_field_index(name) < 0:
        kind = (
            "a record key"
            if path in config.record_key
            else "a partition"
            if path in config.partition_fields
            else "an ordering"
        )
        raise InvalidSchemaError(
            f"the data has no column '{name}', which is {kind} field of table {config.name!r}; "
            f"it has {', '.join(incoming.names) or 'no columns'}"
        )


def _key_field(path: str, table_schema: pa.Schema | None, incoming: pa.Schema) -> pa.Field:
    name = path.partition(".")[0]
    source = table_schema if table_schema is not None and name in table_schema.names else incoming
    return source.field(name)


def _true(extra: Mapping[str, str], key: str) -> bool:
    return stored_boolean(extra.get(key))
