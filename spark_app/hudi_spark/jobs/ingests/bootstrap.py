"""The job that makes a table of a folder of Parquet files: what `bootstrap` of a HudiTable asks
for. It needs no JVM."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hudi_spark.jobs.progress import Progress
from hudi_spark.jobs.target import storage_options
from hudi_table.errors import InvalidRequestError
from hudi_table.model.counts import counted
from hudi_table.model.job.jobspec import JobResult, JobSpec
from hudi_table.model.options.known import aliases
from hudi_table.services.bootstrapping.checks import FILE_OPTIONS, modes_of
from hudi_table.services.bootstrapping.run import BootstrapRequest, bootstrap_folder
from hudi_table.sources.imports.parquet import ParquetFolder
from hudi_table.table.engine.local_engine import LocalEngine
from hudi_table.table.store.clock import SystemClock
from hudi_table.table.store.opening import open_storage
from hudi_table.write.checks.create_table import TableSpec
from hudi_table.write.checks.table_options import table_options


def run_bootstrap(spec: JobSpec, progress: Progress) -> JobResult:
    """Make the table, all of it or none. An attempt that was killed is completed by the next, and
    one behind it that has succeeded changes nothing. Raises as `bootstrap_folder`."""
    clock, work = SystemClock(), spec.work
    start = clock.boot_seconds()
    path, location, pattern = str(work["path"]), str(spec.table["location"]), work.get("pattern")
    folder = ParquetFolder.open(open_storage(path, storage_options(spec, path)))
    in_place = bool(modes_of(folder, str(work["mode"]), pattern).skeletons)
    if in_place:
        _check_paths(folder, spec.table.get("paths", {}))
    progress.say(f"makes the table of {counted(len(folder.files), 'file')} at {path}")
    request = BootstrapRequest(_table_spec(spec, folder, in_place=in_place), str(work["mode"]), pattern)
    done = bootstrap_folder(open_storage(location, storage_options(spec, location)), folder, request, LocalEngine())
    figures = {
        "recordsInserted": float(done.rows),
        "skeletons": float(done.skeletons),
        "filesCopied": float(done.copied),
        "bytesWritten": float(done.bytes_written),
        "seconds": clock.boot_seconds() - start,
    }
    if done.replayed:
        return JobResult(spec.attempt, "NothingToDo", message=f"the table was made of {path} before")
    message = f"{counted(done.rows, 'row')}: {counted(done.skeletons, 'file')} left in place, {counted(done.copied, 'file')} copied"
    return JobResult(spec.attempt, "Succeeded", message=message, figures=figures)


def _check_paths(folder: ParquetFolder, paths: Mapping[str, Any]) -> None:
    """Folders of the source stay the partitions of the table: the manifest must name them as they
    are. Raises InvalidRequestError."""
    folders = [file.path.rpartition("/")[0] for file in folder.files]
    for name, sign in (("hiveStyle", "="), ("urlEncode", "%")):
        wanted = any(sign in each for each in folders)
        if wanted is not bool(paths.get(name, False)):
            shown = next((each for each in folders if (sign in each) is wanted), "")
            raise InvalidRequestError(
                f"the folders of {folder.place} are partitions of the table as they are, such as {shown!r}: set paths.{name}: {str(wanted).lower()}"
            )


def _table_spec(spec: JobSpec, folder: ParquetFolder, *, in_place: bool) -> TableSpec:
    table = spec.table
    paths, options = table.get("paths", {}), dict(table.get("options", {}))
    if in_place:
        # What only writes and services act on is given to those that come.
        of_table = table_options(options)
        options = {
            key: text for key, text in options.items() if key in of_table or aliases().get(key, key) in FILE_OPTIONS
        }
    return TableSpec(
        schema=folder.schema,
        record_key=list(table["recordKey"]),
        partition_by=list(table.get("partitionBy", ())),
        ordering_fields=list(table.get("orderingFields", ())),
        type=table.get("type"),
        merge_mode=table.get("mergeMode"),
        index=table.get("index"),
        name=str(table["name"]),
        hive_style=bool(paths.get("hiveStyle", False)),
        url_encode=bool(paths.get("urlEncode", False)),
        version=table.get("tableVersion"),
        options=options,
    )
