"""What a table owes its services."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CompactionDebt:
    """`pending` are the instants of published plans, oldest first; `why` a new one is due, None if it is not; both of them
    read `bytes_read` of `file_groups`."""

    pending: tuple[str, ...] = ()
    why: str | None = None
    file_groups: int = 0
    bytes_read: int = 0

    @property
    def due(self) -> bool:
        """Whether there is something to do now."""
        return bool(self.pending) or self.why is not None
