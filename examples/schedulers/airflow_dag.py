"""Airflow goes on once a Hudi table has new commits, also those of the time when Airflow was down.

Put this file into the DAG folder, and set HUDI_TABLE for the workers, such as s3://lake/flights.
The position that `hudictl events` prints is kept as an XCom of the last task. So the next run
begins behind the commits of the last run that succeeded, and those of a run that failed come again.
"""

import os
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.sdk import DAG, BaseSensorOperator, PokeReturnValue, task

from hudi_table.callbacks.waiting import commits_since
from hudi_table.errors import TableNotFoundError, UnavailableError


class HudiCommitSensor(BaseSensorOperator):
    """Waits for commits of the table at `uri`, and for the table. It returns them, oldest first and
    at most 200, and the position behind them. `kept_by`: the task whose XCom `position` says where
    to begin."""

    def __init__(self, *, uri: str, kept_by: str, **settings: Any) -> None:
        super().__init__(**settings)
        self.uri = uri
        self.kept_by = kept_by

    def poke(self, context: Any) -> PokeReturnValue:
        """Airflow calls this every `poke_interval` until it is done."""
        since = context["ti"].xcom_pull(task_ids=self.kept_by, key="position", include_prior_dates=True)
        try:
            page = commits_since(self.uri, since or "earliest")
            while page.more and not page.told:  # A page of compactions alone: nothing keeps its position.
                page = commits_since(self.uri, str(page.position))
        except (TableNotFoundError, UnavailableError) as error:
            self.log.warning("There are no commits to be had: %s", error)
            return PokeReturnValue(is_done=False)
        commits = [
            {"instant": told.commit.instant, "operation": told.commit.operation, "rows": told.commit.rows_written}
            for told in page.told
        ]
        return PokeReturnValue(is_done=bool(commits), xcom_value={"commits": commits, "position": str(page.position)})


# One run at a time: two would begin at the same position.
with DAG(
    "after_commits",
    schedule=timedelta(minutes=1),
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
):

    @task
    def report(found: dict[str, Any]) -> str:
        """Put your own work here, such as an incremental read that ends at the last instant."""
        for commit in found["commits"]:
            print(f"{commit['instant']}: {commit['operation']} of {commit['rows']} rows")
        return str(found["position"])

    @task
    def keep(position: str, ti: Any = None) -> None:
        """Comes last, so that a run that failed leaves no position."""
        ti.xcom_push(key="position", value=position)

    arrived = HudiCommitSensor(
        task_id="arrived",
        uri=os.environ["HUDI_TABLE"],
        kept_by="keep",
        mode="reschedule",
        poke_interval=30,
        timeout=3600,
        soft_fail=True,
    )
    keep(report(arrived.output))
