"""A compaction job: what is planned is executed, and if the job says so, a new plan made and executed.

Executing a plan again is safe, so an attempt that runs twice, or late, finds nothing left to do. No JVM is started unless
the job says Spark and there is something to do.
"""

from __future__ import annotations

from hudi_spark.jobs.progress import Progress
from hudi_spark.jobs.target import find_table
from hudi_table.api import CompactionResult, HudiTable
from hudi_table.errors import TableNotFoundError
from hudi_table.model.jobspec import JobResult, JobSpec
from hudi_table.services.compaction.execute import pending_instants
from hudi_table.table.clock import SystemClock
from hudi_table.table.engine import LocalEngine
from hudi_table.table.ports import Engine
from hudi_table.table.timeline import load_timeline


def run_compaction(spec: JobSpec, progress: Progress) -> JobResult:
    """Do one attempt. Raises HudiError; published plans stay, and another attempt executes them."""
    clock = SystemClock()
    start = clock.boot_seconds()
    table = find_table(spec)
    if table is None:
        raise TableNotFoundError("there is no table to compact", base_path=str(spec.table["location"]))
    options: dict[str, str] = dict(spec.table.get("options", {}))
    schedule = bool(spec.work.get("schedule", True))
    waiting = pending_instants(load_timeline(table.context))
    planned = table.schedule_compaction(options, force=True) if schedule else None
    instants = [*waiting, *([planned.instant] if planned else [])]
    if not instants:
        return JobResult(spec.attempt, "NothingToDo", message="no compaction is planned, and no log waits for one")
    progress.say(f"compacting by the plans of {', '.join(instants)}")
    done = _execute(spec, table, instants, options, progress)
    seconds = clock.boot_seconds() - start
    rows = sum(result.rows_written for result in done)
    groups = sum(result.file_groups for result in done)
    return JobResult(
        spec.attempt,
        "Succeeded",
        message=f"{groups} file groups compacted, {rows:,} rows, in {seconds:.1f} s",
        instants=tuple(result.instant for result in done),
        figures={
            "fileGroups": float(groups),
            "logFiles": float(sum(result.log_files for result in done)),
            "bytesWritten": float(sum(result.bytes_written for result in done)),
            "seconds": round(seconds, 3),
        },
    )


def _execute(
    spec: JobSpec, table: HudiTable, instants: list[str], options: dict[str, str], progress: Progress
) -> list[CompactionResult]:
    def each(engine: Engine) -> list[CompactionResult]:
        found = [table.run_compaction(instant, options=options, engine=engine) for instant in instants]
        return [result for result in found if not result.replayed]

    if spec.engine == "Local":
        return each(LocalEngine())
    # Spark is started only by jobs that need it.
    from hudi_spark.engine import SparkEngine
    from hudi_spark.errors import as_hudi_errors
    from hudi_spark.jobs.ingest_spark import session

    progress.say("starting Spark")
    with as_hudi_errors():
        return each(SparkEngine(session(spec)))
