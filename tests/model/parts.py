"""What instances are made of: first stores, and makers of processes that all lack the same
guards."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tests.model.engine import Instance, Process
from tests.model.recovery import Recovery
from tests.model.rights import Guards
from tests.model.services import Archiver, Cleaner
from tests.model.store import Store
from tests.model.writer import Writer

FIRST: Store = {("c", 1): ((("d", "f", 1, 0),), (), ("f",)), ("r", 1): "first", ("d", "f", 1, 0): 1}
TWO_GROUPS: Store = {
    **FIRST,
    ("d", "g", 1, 0): 0,
    ("c", 1): ((("d", "f", 1, 0), ("d", "g", 1, 0)), (), ("f", "g")),
}
ROWS = {0: 1, 1: 1, 2: 1}


class Parts:
    """Makers of processes that all lack the same guards."""

    def __init__(self, without: Iterable[str] = (), *, strict: bool = False) -> None:
        self.without, self.strict = Guards(without), strict

    def writer(self, name: str, operation: int | None, groups: tuple[str, ...] = ("f",), **more: Any) -> Process:
        """A writer."""
        return Writer(name, operation, groups, self.without, strict=self.strict, **more)

    def recovery(self, name: str = "B", **more: Any) -> Process:
        """A recovery."""
        return Recovery(name, self.without, strict=self.strict, **more)

    def archiver(self, name: str = "A", **more: Any) -> Process:
        """An archiver."""
        return Archiver(
            name,
            horizon="H before archiving" not in self.without and not self.strict,
            sources=self.strict and "delete body first" not in self.without,
            pending_ignored="archiver stops at pending" in self.without,
            replaced_ignored="replaced files gone first" in self.without,
            completed_first="requested deleted before completed" in self.without,
            trim_at_once="trim horizon" in self.without,
            **more,
        )

    def cleaner(self) -> Process:
        """A cleaner."""
        return Cleaner(retention="retention for readers" not in self.without)


Maker = Callable[[Parts], Instance]
