"""What a listing showed may be gone when it is opened: given up, cleaned, archived or damaged.
Another listing tells which.

A timeline file leaves when it is archived or taken back, a log when its undecided write is given
up, a data file when a clean takes it. A new listing shows none of them, so whoever asked for the
newest state goes on with that. What every new listing names and nobody can open is damage.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import wraps
from typing import ParamSpec, TypeVar

from hudi_table.errors import CorruptTableError, HudiError, ObjectNotFoundError, UnavailableError
from hudi_table.table.timeline.context import TableContext

P = ParamSpec("P")
T = TypeVar("T")

LISTINGS_MAX = 8
SAME_MAX = 3
"""So many listings that all name one object which is not there prove damage: a listing that begins
after a deletion does not show it."""


@dataclass(slots=True)
class Listings:
    """The listings that one operation has made of its table."""

    ctx: TableContext
    _missed: Counter[str] = field(default_factory=Counter, repr=False)

    def again(self, missing: HudiError) -> None:
        """Returns if the operation is to take a new listing, as something of its last one is gone.

        Raises CorruptTableError if every listing names an object that is not there,
        UnavailableError if the table moves too fast.
        """
        path = missing.path or missing.message
        self._missed[path] += 1
        if self._missed[path] >= SAME_MAX:
            raise CorruptTableError(
                f"{path} is part of the table's newest state and is not there: {SAME_MAX} listings named it and could not open it; "
                "bring it back from a copy or a version of the store, or run hudictl doctor to see what needs it",
                base_path=self.ctx.base_path,
                path=missing.path,
            ) from missing
        if self._missed.total() >= LISTINGS_MAX:
            raise UnavailableError(
                f"files of the table went away during each of {LISTINGS_MAX} listings, lastly {path}; writers and services are busy, try again",
                base_path=self.ctx.base_path,
                path=missing.path,
            ) from missing


def with_relists(ctx: TableContext, work: Callable[[], T]) -> T:
    """What `work` returns, which lists the table itself and reads what it listed; it is called
    again, on a new listing, if something of it is gone. Raises as `Listings.again`, and what `work`
    raises."""
    listings = Listings(ctx)
    while True:
        try:
            return work()
        except ObjectNotFoundError as missing:
            listings.again(missing)


def relists(work: Callable[P, T]) -> Callable[P, T]:
    """A function of a table, its first argument, that lists it itself, by way of `with_relists`."""

    @wraps(work)
    def relisted(*args: P.args, **more: P.kwargs) -> T:
        ctx = args[0]
        assert isinstance(ctx, TableContext)
        return with_relists(ctx, lambda: work(*args, **more))

    return relisted
