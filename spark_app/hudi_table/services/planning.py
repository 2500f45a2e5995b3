"""How the plan of any table service gets onto the timeline: chosen on a snapshot, decided in the chain, published.

Nothing is claimed if there is nothing to do. A dry run keeps its plan beside the chain, where an approval finds it: what
is published then is that plan, byte for byte, or nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from hudi_table.errors import (
    InvalidRequestError,
    ObjectNotFoundError,
    WriteConflictError,
)
from hudi_table.model.instants import Action
from hudi_table.model.names import CHAIN, bucket_of_file_id, join
from hudi_table.model.services import ServicePlan
from hudi_table.model.touches import bucket_touch, file_touch
from hudi_table.table import settle
from hudi_table.table.context import TableContext
from hudi_table.table.timeline import load_timeline
from hudi_table.table.transaction import planning
from hudi_table.table.view import FileSystemView

ATTEMPTS_MAX = 10
SAVED = join(CHAIN, "plans")
_DIGEST_LENGTH = 16


@dataclass(frozen=True, slots=True)
class Draft:
    """A plan that is not published: the content of its file, what it touches, and what it says of itself. `name`: of the
    timeline file, if it is not the requested file of the plan's instant."""

    body: bytes
    touches: frozenset[str]
    plan: ServicePlan
    name: str = ""


Choose = Callable[[FileSystemView], Draft | None]
"""Makes a plan of a snapshot; None if there is nothing to do. Called again on a newer one if the plan was overtaken."""


def publish(ctx: TableContext, action: Action, choose: Choose) -> ServicePlan | None:
    """Publish a plan as `T.<action>.requested`, by an entry of the chain. None, and no claim, if there is nothing to do.

    Raises WriteConflictError if others kept moving what it touches, CommitStateUnknownError, and what `choose` raises.
    """
    for left in range(ATTEMPTS_MAX, 0, -1):
        if choose(FileSystemView(ctx, load_timeline(ctx))) is None:
            return None
        try:
            return _attempt(ctx, action, choose)
        except WriteConflictError:
            if left == 1:
                raise
    raise AssertionError("unreachable")


def publish_approved(
    ctx: TableContext, action: Action, digest: str, approved: Callable[[bytes], Choose]
) -> ServicePlan | None:
    """Publish exactly the plan that a dry run kept; `approved` makes a choice of its content, which refuses it if the table has
    moved. Raises as `publish`, and InvalidRequestError if no such plan is kept."""
    planned = publish(ctx, action, approved(saved_plan(ctx, digest)))
    forget_plan(ctx, digest)
    return planned


def preview(ctx: TableContext, choose: Choose) -> ServicePlan | None:
    """A dry run: what would be planned now. The table does not change; the plan is kept for an approval by its digest."""
    draft = choose(FileSystemView(ctx, load_timeline(ctx)))
    if draft is None:
        return None
    digest = digest_of(draft.body)
    settle.put(ctx.storage, join(SAVED, digest), draft.body)
    return replace(draft.plan, digest=digest)


def saved_plan(ctx: TableContext, digest: str) -> bytes:
    """The content of a plan that a dry run kept. Raises InvalidRequestError if there is none of that digest."""
    try:
        return ctx.storage.get(join(SAVED, digest))
    except ObjectNotFoundError as error:
        raise InvalidRequestError(
            f"there is no plan {digest!r} to run; make one by a dry run, and approve its digest",
            base_path=ctx.base_path,
        ) from error


def forget_plan(ctx: TableContext, digest: str) -> None:
    """Drop a kept plan that was published or refused."""
    settle.delete(ctx.storage, join(SAVED, digest))


def digest_of(body: bytes) -> str:
    """By which a plan is approved."""
    return hashlib.sha256(body).hexdigest()[:_DIGEST_LENGTH]


def group_touches(groups: Iterable[tuple[str, str]]) -> frozenset[str]:
    """Conflict keys of (partition, file id) groups: the group, and its bucket if it is one's."""
    found = set()
    for partition, file_id in groups:
        found.add(file_touch(partition, file_id))
        bucket = bucket_of_file_id(file_id)
        if bucket is not None:
            found.add(bucket_touch(partition, bucket))
    return frozenset(found)


def _attempt(ctx: TableContext, action: Action, choose: Choose) -> ServicePlan | None:
    with planning(ctx, action) as txn:
        draft = choose(FileSystemView(ctx, txn.timeline))
        if draft is None:
            txn.withdraw()
            return None
        txn.plan(draft.body, draft.touches | {f"instant:{txn.time}"}, draft.name)
    return replace(draft.plan, instant=txn.time, digest=digest_of(draft.body))
