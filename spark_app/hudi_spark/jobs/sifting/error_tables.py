"""The tables beside an ingest's that keep what is refused: made by the first row, written before
the checkpoint passes it, and kept up by who writes them, for no HudiTable is of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from hudi_spark.jobs.target import storage_options
from hudi_table.api import HudiTable, create_table, open_table, write_hudi
from hudi_table.errors import InvalidRequestError, TableNotFoundError, WriteConflictError
from hudi_table.model.job.error_tables import MESSAGES, RECORDS, error_location
from hudi_table.model.job.jobspec import JobSpec
from hudi_table.model.table.config import TableType
from hudi_table.model.timeline.instants import Action
from hudi_table.services.inline import run_inline
from hudi_table.sources.kafka.refusing import ERROR_KEY as KAFKA_KEY
from hudi_table.sources.kinesis.rows import ERROR_KEY as KINESIS_KEY
from hudi_table.table.engine.local_engine import LocalEngine
from hudi_table.table.engine.memory import DEFAULT_MEMORY
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.timeline.context import TableContext

BUCKETS = 4
UPKEEP_COMMITS = 50
"""From one upkeep to the next. What a compaction rewrites is shared among so many, and a reader has
their time before a file that it reads is deleted."""
_WRITE = {"hoodie.write.num.retries.on.conflict.failures": "10"}
"""Several ingests of one table share one."""


@dataclass(frozen=True, slots=True)
class ErrorTable:
    """Which table beside an ingest's keeps what is refused: how its location ends, and its key."""

    suffix: str
    key: tuple[str, ...]


ERRORS = ErrorTable(MESSAGES, KAFKA_KEY)
KINESIS_ERRORS = ErrorTable(RECORDS, KINESIS_KEY)
"""Sequence numbers are no offsets: one table could not hold both."""


def keep_refused(spec: JobSpec, rows: pa.Table, errors: ErrorTable = ERRORS) -> None:
    """Keep rows in the error table beside the table, by where they stand in the source: what a
    later attempt refuses again is there once. Raises what `write_hudi` and services do."""
    if not len(rows):
        return
    table = _opened(spec, rows.schema, errors)
    write_hudi(table, rows, operation="upsert", options=_WRITE)
    _keep_up(table.context)


def _opened(spec: JobSpec, schema: pa.Schema, errors: ErrorTable) -> HudiTable:
    """The error table, made if there was none: a commit appends to the log of a bucket, however
    much is in it. Tables of releases before are copy-on-write, and stay so. Raises
    InvalidRequestError where another table lies."""
    location = str(spec.table["location"])
    uri, options = error_location(location, errors.suffix), storage_options(spec, location)
    try:
        table = open_table(uri, storage_options=options)
    except TableNotFoundError:
        table = create_table(
            uri,
            schema,
            record_key=list(errors.key),
            name=f"{spec.table['name']}{errors.suffix}",
            type="MergeOnRead",
            index={"type": "Bucket", "buckets": BUCKETS},
            storage_options=options,
            if_exists="open",
        )
    found = table.context.config
    if found.record_key != errors.key:
        raise InvalidRequestError(
            f"what is refused is kept at {uri}, and the table {found.name!r} lies there, whose record key is {', '.join(found.record_key)}: "
            "give one of the two tables another location",
            base_path=table.context.base_path,
        )
    return table


def _keep_up(ctx: TableContext) -> None:
    """Merge logs, delete old files and archive, each `UPKEEP_COMMITS`: what each commit would ask
    the store for is asked once."""
    logs = ctx.config.type is TableType.MERGE_ON_READ
    timeline = load_timeline(ctx)
    # Of a table with logs a commit is a compaction.
    kept_up = {Action.CLEAN, Action.COMMIT} if logs else {Action.CLEAN}
    last = max((each.time for each in timeline.completed if each.action in kept_up), default="")
    if sum(each.time > last for each in timeline.commits) < UPKEEP_COMMITS:
        return
    try:
        run_inline(ctx, timeline.commits[-1].time, _upkeep(logs=logs), LocalEngine(), max_memory=DEFAULT_MEMORY)
    except WriteConflictError:
        # Another ingest of the table does it.
        return


def _upkeep(*, logs: bool) -> Mapping[str, str]:
    retained = UPKEEP_COMMITS
    return {
        **({"hoodie.compact.inline": "true"} if logs else {}),
        "hoodie.compact.inline.max.delta.commits": str(UPKEEP_COMMITS),
        "hoodie.clean.automatic": "true",
        "hoodie.clean.commits.retained": str(retained),
        "hoodie.archive.automatic": "true",
        "hoodie.keep.min.commits": str(retained + 10),
        "hoodie.keep.max.commits": str(retained + 20),
    }
