"""What the commits of one run have come to, and the result that says so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hudi_table.api import CommitResult
from hudi_table.model.job.jobspec import JobResult, JobSpec


@dataclass(slots=True)
class Tally:
    """Commits in their order."""

    commits: list[CommitResult] = field(default_factory=list)

    def result(
        self, spec: JobSpec, words: str, checkpoint: str, seconds: float, figures: Mapping[str, float]
    ) -> JobResult:
        """Of a run that has committed. `words`: how its message begins; `figures` beside those that
        all such runs have."""
        inserted = sum(each.rows_inserted for each in self.commits)
        updated = sum(each.rows_updated for each in self.commits)
        deleted = sum(each.rows_deleted for each in self.commits)
        told = {
            "recordsInserted": float(inserted),
            "recordsUpdated": float(updated),
            "recordsDeleted": float(deleted),
            "bytesWritten": float(sum(each.bytes_written for each in self.commits)),
            "seconds": round(seconds, 3),
            **figures,
        }
        message = f"{words}: {inserted:,} inserted, {updated:,} updated, {deleted:,} deleted in {seconds:.1f} s"
        last = self.commits[-1].instant
        instants = (last,) if last else ()
        return JobResult(
            spec.attempt, "Succeeded", message=message, instants=instants, figures=told, checkpoint=checkpoint
        )
