"""The debts of a table."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CompactionDebt:
    """`pending` are the instants of published plans, oldest first; `why` a new one is due, None if
    it is not; both of them read `bytes_read` of `file_groups`."""

    pending: tuple[str, ...] = ()
    why: str | None = None
    file_groups: int = 0
    bytes_read: int = 0

    @property
    def due(self) -> bool:
        """Whether there is something to do now."""
        return bool(self.pending) or self.why is not None


@dataclass(frozen=True, slots=True)
class ArchivingDebt:
    """Of `most` completed writes that may be on the timeline, `writes` are; `leaving` of them may
    leave now. `due`: that is enough to begin. `held_by`: what holds back the next one, '' if
    nothing does."""

    writes: int = 0
    most: int = 0
    leaving: int = 0
    due: bool = False
    held_by: str = ""
