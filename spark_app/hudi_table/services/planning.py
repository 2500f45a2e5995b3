"""How the plan of any table service gets onto the timeline: chosen on a snapshot, decided in the
chain, published.

Nothing is claimed if there is nothing to do. A dry run writes nothing: its plan is made in memory
and named by its digest. The plan of one state of a table is the same each time, byte for byte, so
an approval makes it again: of the state now, or of an earlier one if others have written since.
What is published is the plan that was approved, or nothing.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from hudi_table.errors import AccessDeniedError, HudiError, ObjectNotFoundError, UnavailableError, WriteConflictError
from hudi_table.model.names import CHAIN, join
from hudi_table.model.service.services import ServicePlan
from hudi_table.model.timeline.instants import Action, Instant
from hudi_table.services.late_plans import decide_late
from hudi_table.table.commit.transaction import Transaction, planning
from hudi_table.table.store import threads
from hudi_table.table.store.at_once import at_once
from hudi_table.table.store.ports import Names, Objects, Storage
from hudi_table.table.timeline import chain
from hudi_table.table.timeline.active import confirm, load_timeline, unconfirmed_timeline
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.relisting import Listings, relists
from hudi_table.table.timeline.timeline import Timeline
from hudi_table.table.view.file_system_view import FileSlice, FileSystemView

_LOG = logging.getLogger("hudi_table.planning")

ATTEMPTS_MAX = 10
STATES_MAX = 50
"""So many instants may complete between a dry run and its approval; after more of them a new dry
run is wanted."""
SAVED = join(CHAIN, "plans")
"""Where releases before this one kept the plans of dry runs."""
_DIGEST_LENGTH = 16


@dataclass(frozen=True, slots=True)
class Draft:
    """A plan that is not published: the content of its file, what it touches, and what it says of
    itself. `completes`: the instant whose completed file it is, if it is not the requested file of
    the plan's own."""

    body: bytes
    conflict_keys: frozenset[str]
    plan: ServicePlan
    completes: Instant | None = None


Choose = Callable[[FileSystemView], Draft | None]
"""Makes a plan of a snapshot; None if there is nothing to do. Called again on a newer one if the
plan was overtaken."""

Leaves = Callable[[Timeline], Callable[[FileSlice], bool] | None]
"""Which slices a plan leaves to others, by a listing of the timeline: `FileSystemView.leaves`."""


def leaves_nothing(_: Timeline) -> None:
    """Of most plans."""
    return


@dataclass(frozen=True, slots=True)
class Look:
    """A first look at the table: a snapshot, and whether there is something to do."""

    view: FileSystemView
    is_due: bool


def looked(
    ctx: TableContext, timeline: Timeline, choose: Choose, leaves: Leaves = leaves_nothing, *, is_whole: bool = False
) -> Look:
    """A first look by a timeline, which need not be confirmed (`is_whole`: it is). While the
    folders are listed, which is not done for nothing, it is, and the end of the chain is read: a
    claim needs it next. Where there is nothing to do, nobody needs either.

    Raises ObjectNotFoundError if the table was archived meanwhile: list again.
    """
    listing, known = threads.event(), threads.event()
    telling = replace(ctx, storage=_Telling(ctx.storage, listing, known))
    view = FileSystemView(telling, timeline, leaves=leaves(timeline))

    def chosen() -> bool:
        try:
            return choose(view) is not None
        finally:
            known.set()

    def whole() -> None:
        if not is_whole:
            confirm(ctx, timeline)

    def tail() -> None:
        # What fails is asked again by the claim.
        with suppress(HudiError):
            chain.known_tail(ctx)

    def ahead() -> None:
        known.wait()
        if listing.is_set():
            at_once(ctx.storage, whole, tail)

    is_due, _ = at_once(ctx.storage, chosen, ahead)
    if is_due and not listing.is_set():
        whole()
    return Look(replace(view, ctx=ctx), is_due)


def publish(
    ctx: TableContext, action: Action, choose: Choose, first: Look | None = None, leaves: Leaves = leaves_nothing
) -> ServicePlan | None:
    """Publish a plan as `T.<action>.requested`, by an entry of the chain. None, and no claim, if
    there is nothing to do. `first`: a `Look` that was taken just now.

    Raises WriteConflictError if others kept moving what it touches, CommitStateUnknownError, and
    what `choose` raises.
    """
    listings, left = Listings(ctx), ATTEMPTS_MAX
    while True:
        try:
            look = first or looked(ctx, unconfirmed_timeline(ctx), choose, leaves)
            first = None
            planned = _attempt(ctx, action, choose, look.view, leaves) if look.is_due else None
            _LOG.debug("%s: %s", action.value, f"planned at {planned.instant}" if planned else "nothing to plan")
            return planned
        except ObjectNotFoundError as missing:
            listings.again(missing)
        except WriteConflictError:
            left -= 1
            if left == 0:
                raise


def publish_approved(
    ctx: TableContext,
    action: Action,
    digest: str,
    makes: Callable[[TableContext], Sequence[Choose]],
    approved: Callable[[bytes], Choose],
) -> ServicePlan | None:
    """Publish exactly the plan of a dry run, made again by one of the choices of `makes`;
    `approved` makes a choice of its content, which refuses it if what it names has moved. Raises as
    `publish`, and WriteConflictError if no state of the table gives that plan any more."""
    draft = _made_again(ctx, digest, makes)
    if draft is None:
        raise WriteConflictError(
            f"the plan {digest!r} cannot be made again: what it names has changed since the plan was made, it was run, or other "
            "options were given; make a new plan and approve that",
            base_path=ctx.base_path,
        )
    return publish(ctx, action, approved(draft.body))


@relists
def preview(ctx: TableContext, choose: Choose) -> ServicePlan | None:
    """A dry run: what would be planned now. Nothing is written; the digest names the plan for an
    approval."""
    draft = choose(FileSystemView(ctx, load_timeline(ctx)))
    return None if draft is None else replace(draft.plan, digest=digest_of(draft.body))


@relists
def published_as(ctx: TableContext, digest: str) -> str | None:
    """The instant, pending or completed, whose plan has a digest; the newest of several, None if
    none has."""
    names = sorted((name for name in load_timeline(ctx).files if name.endswith(".requested")), reverse=True)
    for name in names:
        if digest_of(ctx.storage.get(ctx.layout.timeline_path(name))) == digest:
            return name.partition(".")[0]
    return None


def _made_again(ctx: TableContext, digest: str, makes: Callable[[TableContext], Sequence[Choose]]) -> Draft | None:
    """The plan of that digest: of the table as it is, or as it was before one of its newest
    instants."""
    timeline = load_timeline(ctx)
    times = [instant.time for instant in reversed(timeline.completed)][:STATES_MAX]
    listed = replace(ctx, storage=_ListedOnce(ctx.storage))
    choices = makes(listed)
    for past in (timeline, *(timeline.before(time) for time in times)):
        for choose in choices:
            try:
                draft = choose(FileSystemView(listed, past))
            except (AccessDeniedError, UnavailableError):
                # Of a store that does not answer nothing is known.
                raise
            except HudiError:
                # A state of which no plan can be made is not the one that was approved.
                continue
            if draft is not None and digest_of(draft.body) == digest:
                return draft
    return None


class _ListedOnce:
    """A storage that lists every folder once: the states of a table differ in what counts, not in
    what is there."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._known: dict[tuple[str, str], Any] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._storage, name)

    def list(self, prefix: str = "", **more: Any) -> Objects:
        """As `Storage.list`; whole listings are remembered."""
        if more:
            return self._storage.list(prefix, **more)
        found: Objects = self._once("list", prefix)
        return found

    def list_dir(self, prefix: str = "") -> tuple[Names, Objects]:
        """As `Storage.list_dir`."""
        found: tuple[Names, Objects] = self._once("list_dir", prefix)
        return found

    def _once(self, method: str, prefix: str) -> Any:
        if (method, prefix) not in self._known:
            self._known[method, prefix] = getattr(self._storage, method)(prefix)
        return self._known[method, prefix]


def digest_of(body: bytes) -> str:
    """By which a plan is approved."""
    return hashlib.sha256(body).hexdigest()[:_DIGEST_LENGTH]


class _Telling:
    """A storage that tells when the base folder is about to be listed."""

    def __init__(self, storage: Storage, listing: threads.Event, known: threads.Event) -> None:
        self._storage, self._listing, self._known = storage, listing, known

    def __getattr__(self, name: str) -> Any:
        return getattr(self._storage, name)

    def list_dir(self, prefix: str = "") -> tuple[Names, Objects]:
        """As `Storage.list_dir`."""
        if not prefix:
            self._listing.set()
            self._known.set()
        return self._storage.list_dir(prefix)


def _attempt(
    ctx: TableContext, action: Action, choose: Choose, seen: FileSystemView, leaves: Leaves
) -> ServicePlan | None:
    with planning(ctx, ctx.layout.planned_as(action)) as txn:
        draft = choose(replace(_under(seen, txn), leaves=leaves(txn.timeline)))
        if draft is None:
            txn.withdraw()
            return None
        made = draft

        def decide() -> None:
            txn.plan(made.body, made.conflict_keys | {f"instant:{txn.time}"}, made.completes)

        decide_late(txn, draft.conflict_keys, decide)
    return replace(draft.plan, instant=txn.time, digest=digest_of(draft.body))


def _under(seen: FileSystemView, txn: Transaction) -> FileSystemView:
    """The view of the claim's snapshot. Its files are those that were listed before the claim, if
    nothing on the timeline has begun or ended since the listing before that one."""
    others = {name: age for name, age in txn.timeline.files.items() if name != txn.right.claim}
    moved = others != seen.timeline.files
    return FileSystemView(txn.ctx, txn.timeline) if moved else replace(seen, timeline=txn.timeline)
