"""The job that deletes a table with all its files: what `deletionPolicy: Purge` asks for. It needs
no JVM."""

from __future__ import annotations

from hudi_spark.jobs.progress import Progress
from hudi_spark.jobs.target import storage_options
from hudi_table.model.counts import counted
from hudi_table.model.job.jobspec import JobResult, JobSpec
from hudi_table.services.purging import purge
from hudi_table.table.store.opening import open_storage


def run_purge(spec: JobSpec, progress: Progress) -> JobResult:
    """Delete what lies at the job's location. An attempt that was interrupted is completed by the
    next. Raises as `purge` does."""
    location = str(spec.table["location"])
    found = purge(open_storage(location, storage_options(spec, location)), spec.attempt, progress.say)
    if not found.files:
        return JobResult(spec.attempt, "NothingToDo", message=f"nothing lies at {location}")
    figures = {"filesDeleted": float(found.files), "bytesDeleted": float(found.bytes)}
    return JobResult(spec.attempt, "Succeeded", message=f"{counted(found.files, 'file')} deleted", figures=figures)
