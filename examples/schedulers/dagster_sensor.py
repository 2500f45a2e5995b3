"""Dagster runs a job for each commit of a Hudi table: once, in order, also for those of the time
when Dagster was down.

    HUDI_TABLE=s3://lake/flights dagster dev -f examples/schedulers/dagster_sensor.py

The cursor of the sensor is the position that `hudictl events` prints. The run key is the instant,
so Dagster starts no second run for a commit that it meets twice.
"""

import os

import dagster as dg

from hudi_table.callbacks.waiting import commits_since
from hudi_table.errors import UnavailableError


class CommitConfig(dg.Config):
    """The commit that a run is for."""

    instant: str
    operation: str
    rows_written: int


@dg.op
def report(context: dg.OpExecutionContext, config: CommitConfig) -> None:
    """Put your own work here, such as an incremental read that ends at the instant."""
    context.log.info("%s: %s of %d rows", config.instant, config.operation, config.rows_written)


@dg.job
def after_commit() -> None:
    """What Dagster runs for a commit."""
    report()


@dg.sensor(job=after_commit, minimum_interval_seconds=30)
def commits(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
    """Asks for a run for each commit behind the cursor, at most 200 at a time."""
    try:
        page = commits_since(os.environ["HUDI_TABLE"], context.cursor or "earliest")
    except UnavailableError as error:
        return dg.SkipReason(f"the store does not answer: {error}")
    runs = []
    for told in page.told:
        commit = told.commit
        config = CommitConfig(instant=commit.instant, operation=commit.operation, rows_written=commit.rows_written)
        runs.append(dg.RunRequest(run_key=commit.instant, run_config=dg.RunConfig(ops={"report": config})))
    return dg.SensorResult(run_requests=runs, cursor=str(page.position))


defs = dg.Definitions(jobs=[after_commit], sensors=[commits])
