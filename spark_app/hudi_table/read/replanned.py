"""The plan of a lazy query: made when it is first needed, and once more if what it names has gone
before a row of it was given.

Rows that were given bind a query to its snapshot, so that nothing comes twice and every later
stream gives the same rows. Before that nobody has seen the snapshot, and a newer one serves as
well.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from typing import Generic, Protocol, TypeVar

import pyarrow as pa

from hudi_table.errors import ExpiredError, ObjectNotFoundError
from hudi_table.table.store import threads
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.relisting import Listings


class _Plan(Protocol):
    @property
    def schema(self) -> pa.Schema: ...


PlanT = TypeVar("PlanT", bound=_Plan)
T = TypeVar("T")


class Replanned(Generic[PlanT]):
    """The plan that `make` makes of a new listing. Used by several threads at once."""

    def __init__(self, ctx: TableContext, make: Callable[[], PlanT]) -> None:
        self._ctx = ctx
        self._make = make
        self._plan: PlanT | None = None
        self._is_begun = False
        self._lock = threads.lock()

    @classmethod
    def of(cls, ctx: TableContext, plan: PlanT) -> Replanned[PlanT]:
        """A plan that stays as it is."""
        found = cls(ctx, lambda: plan)
        found.bind(found.plan)
        return found

    @property
    def plan(self) -> PlanT:
        """The plan; raises what making it raises."""
        with self._lock:
            if self._plan is None:
                self._plan = self._make()
            return self._plan

    def batches(self, read: Callable[[PlanT], Generator[T, None, None]]) -> Iterator[T]:
        """What `read` gives of the plan, batch by batch. Raises ExpiredError if files of it go
        after the first batch was given."""
        listings = Listings(self._ctx)
        while True:
            plan = self.plan
            try:
                with closing(read(plan)) as found:
                    for batch in found:
                        if not self.bind(plan):
                            break
                        yield batch
                    else:
                        return
            except (ExpiredError, ObjectNotFoundError) as error:
                self._again(plan, listings, error)

    def value(self, read: Callable[[PlanT], T]) -> T:
        """The same of something that comes as a whole."""
        listings = Listings(self._ctx)
        while True:
            plan = self.plan
            try:
                found = read(plan)
            except (ExpiredError, ObjectNotFoundError) as error:
                self._again(plan, listings, error)
            else:
                if self.bind(plan):
                    return found

    def bind(self, plan: PlanT) -> bool:
        """Whether rows of this plan may be given: not if another thread has made a new one. No new
        one is made from then on."""
        with self._lock:
            if self._plan is plan:
                self._is_begun = True
            return self._plan is plan

    def _again(self, plan: PlanT, listings: Listings, error: ExpiredError | ObjectNotFoundError) -> None:
        """Returns once there is a newer plan with the same columns; raises `error` if there can be
        none."""
        with self._lock:
            if self._plan is not plan:
                return
            if self._is_begun:
                raise error
            listings.again(error)
            try:
                newer = self._make()
            except ExpiredError:
                raise error from None
            if newer.schema != plan.schema:
                raise error
            self._plan = newer
