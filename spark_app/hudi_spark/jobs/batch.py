"""What one ingest takes in: the files of a source that wait, as one commit.

They are decided here and now, from a fresh listing and the newest checkpoint, whatever the operator saw when it
started the job: an attempt that runs twice, or late, finds nothing left to do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hudi_spark.jobs.target import storage_options
from hudi_table.api import HudiTable
from hudi_table.arguments import OperationName
from hudi_table.errors import InvalidRequestError
from hudi_table.model.job.checkpoint import Checkpoint, SourceFile, advance, key_of, waiting
from hudi_table.model.job.jobspec import JobSpec
from hudi_table.services.file_ingest import current_checkpoint, list_source, store_digests
from hudi_table.services.select_check import check_select
from hudi_table.table.store.opening import open_storage

OPERATIONS: dict[str, OperationName] = {"Upsert": "upsert", "Insert": "insert", "BulkInsert": "bulk_insert"}


@dataclass(frozen=True, slots=True)
class Batch:
    """The files of one commit: `path` and `format` of their source, and what the commit records of them."""

    path: str
    format: str
    csv: dict[str, object]
    files: tuple[SourceFile, ...]
    operation: OperationName
    sql: str | None
    checkpoint: Checkpoint
    extra_metadata: dict[str, str]

    @property
    def size(self) -> int:
        """Bytes of the files."""
        return sum(f.size for f in self.files)


def next_batch(spec: JobSpec, table: HudiTable | None) -> Batch | None:
    """The files that wait, as one batch; None if there are none. Raises InvalidRequestError for a spec it cannot do."""
    work = spec.work
    name, source = str(work["name"]), work["source"]
    if source.get("type") != "Files":
        raise InvalidRequestError(f"source type {source.get('type')!r} is not read by this release; it reads Files")
    if work["operation"] not in OPERATIONS:
        raise InvalidRequestError(f"operation {work['operation']!r} is none of {', '.join(OPERATIONS)}")
    transforms: Sequence[dict[str, str]] = work.get("transform", ())
    if len(transforms) > 1:
        raise InvalidRequestError(f"{len(transforms)} transforms are given, at most one SELECT is taken")
    for transform in transforms:
        check_select(transform["sql"])
    path = str(source["path"])
    listing = list_source(open_storage(path, storage_options(spec, path)))
    before = current_checkpoint(table.context, name) if table is not None else None
    files = waiting(listing, before)
    if not files:
        return None
    checkpoint = advance(before, name, spec.attempt, files, listing)
    if table is not None:
        # The first commit of a table holds all of it: before it nothing may lie there.
        checkpoint = store_digests(table.context, name, before, checkpoint)
    return Batch(
        path=path,
        format=str(source["format"]),
        csv=dict(source.get("csv", {})),
        files=files,
        operation=OPERATIONS[work["operation"]],
        sql=transforms[0]["sql"] if transforms else None,
        checkpoint=checkpoint,
        extra_metadata={key_of(name): checkpoint.to_text()},
    )


def write_options(spec: JobSpec) -> dict[str, str]:
    """The table's options. A batch without rows commits too: its commit says that the files are taken."""
    return {**spec.table.get("options", {}), "hoodie.allow.empty.commit": "true"}
