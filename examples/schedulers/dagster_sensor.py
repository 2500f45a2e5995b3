"""Dagster runs a job for the commits of a Hudi table: in their order, also for those of the time
when Dagster was down.

    HUDI_TABLE=s3://lake/flights dagster dev -f examples/schedulers/dagster_sensor.py

The cursor of the sensor is the position that `hudictl events` prints. Dagster starts runs that are
asked for side by side, so the sensor asks for one run at a time, for all commits behind the cursor.
The run key is the instant of the last of them, so no second run starts for what it asks for twice.
"""

import os

import dagster as dg

from hudi_table.callbacks.waiting import commits_since
from hudi_table.errors import TableNotFoundError, UnavailableError

UNFINISHED = [
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]


class CommitConfig(dg.Config):
    """A commit."""

    instant: str
    operation: str
    rows_written: int


class CommitsConfig(dg.Config):
    """The commits that a run is for, oldest first."""

    commits: list[CommitConfig]


@dg.op
def report(context: dg.OpExecutionContext, config: CommitsConfig) -> None:
    """Put your own work here, such as an incremental read that ends at the last instant."""
    for commit in config.commits:
        context.log.info("%s: %s of %d rows", commit.instant, commit.operation, commit.rows_written)


@dg.job
def after_commits() -> None:
    """What Dagster runs for commits."""
    report()


@dg.sensor(job=after_commits, minimum_interval_seconds=30)
def commits(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
    """Asks for a run for the commits behind the cursor, at most 200, once no other run is left."""
    if context.instance.get_runs_count(dg.RunsFilter(job_name=after_commits.name, statuses=UNFINISHED)):
        return dg.SkipReason("the run for earlier commits has not ended")
    try:
        page = commits_since(os.environ["HUDI_TABLE"], context.cursor or "earliest")
    except (TableNotFoundError, UnavailableError) as error:
        return dg.SkipReason(f"there are no commits to be had: {error}")
    found = [
        CommitConfig(
            instant=told.commit.instant, operation=told.commit.operation, rows_written=told.commit.rows_written
        )
        for told in page.told
    ]
    runs = []
    if found:
        config = dg.RunConfig(ops={"report": CommitsConfig(commits=found)})
        runs = [dg.RunRequest(run_key=found[-1].instant, run_config=config)]
    return dg.SensorResult(run_requests=runs, cursor=str(page.position))


defs = dg.Definitions(jobs=[after_commits], sensors=[commits])
