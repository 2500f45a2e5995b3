"""The table of a JobSpec: its storage options, its config as the library takes it, opening and
creating it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import pyarrow as pa

from hudi_table.api import HudiTable, create_table, open_table
from hudi_table.errors import HudiError, InvalidRequestError, TableNotFoundError
from hudi_table.model.job.jobspec import JobSpec, SchemaPolicy
from hudi_table.model.job.variables import SOURCE_VARIABLES
from hudi_table.model.options.write_options import (
    DROP_DUPLICATES,
    DUPLICATE_POLICY,
    EVOLVES,
    NULL_FOR_MISSING,
    DuplicatePolicy,
)
from hudi_table.model.table.config import MergeMode, TableType
from hudi_table.model.table.index_properties import CONNECTION, INDEX_TYPE, index_properties
from hudi_table.model.table.layouts import fills_unavailable
from hudi_table.table.timeline.properties import remove_properties
from hudi_table.write.checks.schema_policy import check_rows
from hudi_table.write.checks.table_arguments import index_of
from hudi_table.write.checks.table_options import table_options

NOT_OF_STORES = frozenset({CONNECTION, *SOURCE_VARIABLES})


def storage_options(spec: JobSpec, uri: str) -> dict[str, str]:
    """Options for a location of the job: none for local paths, else endpoint, region and the
    credentials that the launcher put into the environment."""
    if uri.startswith(("file:", "memory:", "/")):
        return {}
    settings = {name: str(spec.storage[name]) for name in ("endpoint", "region") if spec.storage.get(name)}
    named = (name for name in spec.storage.get("credentials", ()) if name in os.environ and name not in NOT_OF_STORES)
    return settings | {name.lower(): os.environ[name] for name in named}


def arrival_decides(spec: JobSpec) -> bool:
    """Whether of two rows of one key the one that comes last wins, whatever they hold."""
    return not spec.table.get("orderingFields") or spec.table.get("mergeMode") == MergeMode.COMMIT_TIME.value


def find_table(spec: JobSpec) -> HudiTable | None:
    """The table at the job's location, or None if it is to be created."""
    return opener_of(spec)()


def opener_of(spec: JobSpec) -> Callable[[], HudiTable | None]:
    """What finds it, also in tasks, where the environment is another one."""
    location = str(spec.table["location"])
    return partial(_find, location, storage_options(spec, location), spec.table.get("lock"))


def _find(location: str, options: Mapping[str, str], lock: Mapping[str, str] | None) -> HudiTable | None:
    try:
        return open_table(location, storage_options=options, lock=lock)
    except TableNotFoundError:
        return None


@contextmanager
def target_of(spec: JobSpec, stored: HudiTable | None, schema: pa.Schema, *, rows: bool = True) -> Iterator[HudiTable]:
    """The table to write to, made if there was none, with the index of the spec. If the write
    fails, a table made for it is gone again. Raises InvalidSchemaError where the ingest's policy
    does not take rows of this schema. `rows`: whether there are any; a commit without one has no
    columns of its source.

    Otherwise rows that are refused would leave an empty table behind whose key could no longer be
    corrected.
    """
    if stored is not None:
        if rows:
            check_columns(spec, stored, schema)
        _follow_index(stored, spec)
        yield stored
        return
    table = make_table(spec, schema)
    # Another ingest may have made it meanwhile.
    check_columns(spec, table, schema)
    try:
        yield table
    except BaseException as error:
        _unmake(table, error)
        raise


def policy_of(spec: JobSpec) -> SchemaPolicy | None:
    """What the ingest does with other columns than the table's; None: what the table's options
    say. Raises InvalidRequestError."""
    named = spec.work.get("schemaPolicy")
    if named is None:
        return None
    try:
        return SchemaPolicy(str(named))
    except ValueError:
        raise InvalidRequestError(f"schemaPolicy is {named!r}; give one of {', '.join(SchemaPolicy)}") from None


def check_columns(spec: JobSpec, table: HudiTable, schema: pa.Schema) -> None:
    """Judge rows by their schema, before any of them is written. Raises InvalidSchemaError."""
    policy = policy_of(spec)
    known = table.schema() if policy is not None else None
    if policy is not None and known is not None:
        check_rows(policy, table.context.config, known, schema)


def ingest_options(spec: JobSpec) -> dict[str, str]:
    """Options of the table's writes by an ingest, whose policy wins over what they say of missing
    columns, and `dropDuplicates` over what they say of stored keys. Raises InvalidRequestError."""
    options = dict(spec.table.get("options", {}))
    policy = policy_of(spec)
    if spec.work.get("dropDuplicates"):
        if spec.work["operation"] != "Insert":
            raise InvalidRequestError(
                f"dropDuplicates goes with operation Insert, and this is {spec.work['operation']}: leave it out, or give Insert"
            )
        options |= {DUPLICATE_POLICY: DuplicatePolicy.DROP.value, DROP_DUPLICATES: "true"}
    if policy in (SchemaPolicy.ADD_COLUMNS, SchemaPolicy.WIDEN, SchemaPolicy.EVOLVE):
        options[NULL_FOR_MISSING] = "true"
    if policy is SchemaPolicy.EVOLVE:
        options[EVOLVES] = "true"
    return options


def index_options(spec: JobSpec) -> dict[str, str]:
    """Options that name the index of the spec, for a table that stores none, as Apache Hudi makes
    it: each of its writers has to be told. Options of the spec itself win."""
    index = spec.table.get("index")
    return {} if index is None or INDEX_TYPE in spec.table.get("options", {}) else index_properties(index_of(index))


def _follow_index(table: HudiTable, spec: JobSpec) -> None:
    """Look keys up as the spec wants it, which may have changed since the table was made. Raises
    InvalidRequestError if that cannot be."""
    index, stored = spec.table.get("index"), table.context.config.index
    wanted = index.get("type") if isinstance(index, Mapping) else index
    if wanted is not None and stored is not None and wanted != stored.type.value:
        table.use_index(str(wanted))


def _unmake(table: HudiTable, error: BaseException) -> None:
    """Remove a table to which nobody has written."""
    try:
        remove_properties(table.context.storage, table.context.config)
    except HudiError as failure:
        error.add_note(f"the empty table at {table.base_path} could not be removed: {failure}")


def has_unavailable(spec: JobSpec) -> bool:
    """Whether the table that a job makes merges as Hudi's own tables of change events do."""
    table, from_debezium = spec.table, spec.work.get("source", {}).get("type") == "Debezium"
    return from_debezium and fills_unavailable(
        table.get("orderingFields", ()), table.get("type", TableType.COPY_ON_WRITE), table.get("tableVersion")
    )


def make_table(spec: JobSpec, schema: pa.Schema) -> HudiTable:
    """Create the table with the schema of its first rows. Raises InvalidRequestError if something
    else lies there."""
    table = spec.table
    location = str(table["location"])
    paths: Mapping[str, Any] = table.get("paths", {})
    return create_table(
        location,
        schema,
        record_key=list(table["recordKey"]),
        partition_by=list(table.get("partitionBy", ())),
        ordering_fields=list(table.get("orderingFields", ())),
        type=table.get("type", "CopyOnWrite"),
        merge_mode=table.get("mergeMode"),
        partial_updates="FillUnavailable" if has_unavailable(spec) else None,
        version=table.get("tableVersion"),
        index=table.get("index"),
        name=str(table["name"]),
        hive_style=bool(paths.get("hiveStyle", False)),
        url_encode=bool(paths.get("urlEncode", False)),
        options=table_options(dict(table.get("options", {}))),
        storage_options=storage_options(spec, location),
        lock=table.get("lock"),
        if_exists="open",
    )
