"""How far an ingest from another Hudi table is: the checkpoint that its commits hold under
`lakeops.ingest.<name>`, and what waits behind it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from hudi_table.model.job.checkpoint_text import parsed, texts, written

UPSTREAM_FORMAT = "hudi-1"
LOSS_REMEDY = "give hudi.onDataLoss: Continue to take all rows again, as they are now"


@dataclass(frozen=True, slots=True)
class Upstream:
    """`instant`: the newest write of the other table whose changes were taken; `moment`: that by
    which ranges of changes go there, when it completed where names tell that, else its own time.
    `table`: name of the other table."""

    batch: str
    attempt: str
    table: str
    instant: str
    moment: str

    def to_text(self) -> str:
        """The value in extra metadata: compact JSON."""
        return written(UPSTREAM_FORMAT, {name: getattr(self, name) for name in self.__slots__})

    @classmethod
    def from_text(cls, text: str) -> Upstream:
        """Parse. Raises ValueError for anything that `to_text` did not write."""
        return parsed(text, UPSTREAM_FORMAT, "another table", lambda raw: cls(*texts(raw, *cls.__slots__)))


@dataclass(frozen=True, slots=True)
class UpstreamExtent:
    """What another table holds behind a checkpoint. `newest`: the newest instant that can be taken,
    '' if there is none; `commits`: how many wait, `size` the bytes of their files, `oldest` when
    the first of them was made. `lost`: why the changes behind the checkpoint can no longer be
    told; if they can, `since` tells when the first commit behind it was made, of whatever kind."""

    newest: str = ""
    commits: int = 0
    size: int = 0
    oldest: datetime | None = None
    lost: str = ""
    since: datetime | None = None
