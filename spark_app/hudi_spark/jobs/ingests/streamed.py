"""What the commits of one run that reads a stream have come to, and the result that says so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hudi_spark.jobs.shaping import Shaped
from hudi_table.api import CommitResult
from hudi_table.model.counts import counted
from hudi_table.model.job.jobspec import JobResult, JobSpec


@dataclass(slots=True)
class Streamed:
    """What a run has come to."""

    commits: int = 0
    messages: int = 0
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    bytes_written: int = 0
    refused: int = 0
    dropped: int = 0
    instant: str = ""

    def read(self, shaped: Shaped[Any]) -> None:
        """Count what is passed over for good."""
        self.messages += shaped.messages
        self.refused += len(shaped.refused)

    def add(self, shaped: Shaped[Any], commit: CommitResult) -> None:
        """Count a commit."""
        self.read(shaped)
        self.commits += 1
        self.dropped += shaped.dropped
        self.inserted += commit.rows_inserted
        self.updated += commit.rows_updated
        self.deleted += commit.rows_deleted
        self.bytes_written += commit.bytes_written
        self.instant = commit.instant or self.instant

    def result(self, spec: JobSpec, seconds: float) -> JobResult:
        """What is told of it."""
        if not self.commits:
            said = "every message of the source is in the table"
            if self.refused:
                said = (
                    f"no message can be read, of which a table could be made: {self.refused:,} are in its error table"
                )
            return JobResult(spec.attempt, "NothingToDo", message=said)
        figures = {
            "recordsInserted": float(self.inserted),
            "recordsUpdated": float(self.updated),
            "recordsDeleted": float(self.deleted),
            "messagesRead": float(self.messages),
            "commits": float(self.commits),
            "bytesWritten": float(self.bytes_written),
            "seconds": round(seconds, 3),
        }
        refused = f", {self.refused:,} refused" if self.refused else ""
        if self.refused:
            figures["recordsRefused"] = float(self.refused)
        if self.dropped:
            figures["recordsDropped"] = float(self.dropped)
        message = (
            f"{counted(self.messages, 'message')} in {counted(self.commits, 'commit')}: {self.inserted:,} inserted, "
            f"{self.updated:,} updated, {self.deleted:,} deleted{refused} in {seconds:.1f} s"
        )
        return JobResult(spec.attempt, "Succeeded", message=message, instants=(self.instant,), figures=figures)
