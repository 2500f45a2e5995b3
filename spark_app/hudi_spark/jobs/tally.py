"""What the commits of one run have come to, and the result that says so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hudi_table.api import CommitResult
from hudi_table.model.job.jobspec import JobResult, JobSpec


@dataclass(slots=True)
class Tally:
    """How many commits there were, what they did in all, and which was the last."""

    count: int = 0
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    bytes_written: int = 0
    instant: str = ""

    def add(self, commit: CommitResult) -> None:
        """Count a commit."""
        self.count += 1
        self.inserted += commit.rows_inserted
        self.updated += commit.rows_updated
        self.deleted += commit.rows_deleted
        self.bytes_written += commit.bytes_written
        self.instant = commit.instant or ""

    def result(
        self, spec: JobSpec, words: str, checkpoint: str, seconds: float, figures: Mapping[str, float]
    ) -> JobResult:
        """Of a run that has committed. `words`: how its message begins; `figures` beside those that
        all such runs have."""
        message = f"{words}: {self.inserted:,} inserted, {self.updated:,} updated, {self.deleted:,} deleted in {seconds:.1f} s"
        return self.told(spec, message, checkpoint, seconds, figures)

    def told(
        self, spec: JobSpec, message: str, checkpoint: str, seconds: float, figures: Mapping[str, float]
    ) -> JobResult:
        """The same with a message of its own."""
        known = {
            "recordsInserted": float(self.inserted),
            "recordsUpdated": float(self.updated),
            "recordsDeleted": float(self.deleted),
            "bytesWritten": float(self.bytes_written),
            "seconds": round(seconds, 3),
            **figures,
        }
        instants = (self.instant,) if self.instant else ()
        return JobResult(
            spec.attempt, "Succeeded", message=message, instants=instants, figures=known, checkpoint=checkpoint
        )
