"""`source.hudi` of an ingest: what changes in another Hudi table."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from hudi_operator.api.fields.patterns import DURATION, LOCATION
from hudi_operator.api.schema import prop


class UpstreamStart(StrEnum):
    """Where an ingest begins that has no checkpoint."""

    EARLIEST = "Earliest"
    LATEST = "Latest"


class UpstreamDeletes(StrEnum):
    """What becomes of rows that are deleted in the other table."""

    IGNORE = "Ignore"
    DELETE = "Delete"


class UpstreamLoss(StrEnum):
    """What is done where the other table can no longer tell what changed."""

    STOP = "Stop"
    CONTINUE = "Continue"


@dataclass(frozen=True, slots=True)
class UpstreamSpec:
    """Another Hudi table, whoever writes it. It is read with the credentials of
    storage.credentialsSecretRef."""

    location: str = prop(
        "where the other table is, as a URI such as s3://lake/orders", pattern=LOCATION, max_length=1024
    )
    start_from: UpstreamStart = prop(
        "without a checkpoint: all rows and then what changes, or only what changes from now on", UpstreamStart.EARLIEST
    )
    deletes: UpstreamDeletes = prop(
        "rows that are deleted there stay, or are deleted here; then each row has the column _hoodie_is_deleted on its way",
        UpstreamDeletes.IGNORE,
    )
    max_instants: int | None = prop(
        "commits of the other table that change rows, of which one commit takes so many at the most; absent: all that wait",
        None,
        minimum=1,
        maximum=10_000,
    )
    on_data_loss: UpstreamLoss = prop(
        "where cleaning or archiving took what tells the changes: stop, or take all rows again as they are now; "
        "what was deleted meanwhile stays then",
        UpstreamLoss.STOP,
    )
    max_hold: str = prop(
        "how long cleaning and archiving of the other table wait for this one at the most, if it is that of a HudiTable of this namespace",
        "24h",
        pattern=DURATION,
        max_length=32,
    )

    @property
    def needs_keys(self) -> bool:
        """Whether rows have to find those of their key."""
        return self.deletes is UpstreamDeletes.DELETE or self.on_data_loss is UpstreamLoss.CONTINUE
