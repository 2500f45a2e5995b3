"""The store of an external index: how much of a table it has, whether what it has is right, and
taking the table in anew."""

from __future__ import annotations

from dataclasses import dataclass

from hudi_table.errors import InvalidRequestError
from hudi_table.index.keystore.external import ExternalIndex, external_of, is_recorded, missing_keys
from hudi_table.table.engine.local_engine import LocalEngine
from hudi_table.table.timeline.context import TableContext
from hudi_table.write.checks.request import resolve_index
from hudi_table.write.index_learn import snapshot


@dataclass(frozen=True, slots=True)
class StoreState:
    """File groups of the table, those whose newest slice the store has, and its (key, group) pairs.
    `missing`: keys that it should have and lacks, by (partition, file id); None if nobody
    looked."""

    file_groups: int
    recorded: int
    keys: int
    missing: dict[tuple[str, str], int] | None = None


def store_state(ctx: TableContext, *, check: bool = False) -> StoreState:
    """What the store has. `check` reads every key of the recorded slices. Raises
    InvalidRequestError for another index."""
    index, lookup = _external(ctx), snapshot(ctx, LocalEngine())
    with index.store(lookup) as store:
        recorded = store.recorded()
        known = sum(is_recorded(item, recorded) for item in lookup.slices)
        keys = store.key_count()
    missing = dict(missing_keys(index, lookup)) if check else None
    return StoreState(len(lookup.slices), known, keys, missing)


def rebuild_store(ctx: TableContext) -> StoreState:
    """Make the store forget the table and take it in anew. Writers may go on: what the store lacks
    they read from the files."""
    index = _external(ctx)
    index.rebuild(snapshot(ctx, LocalEngine()))
    return store_state(ctx)


def _external(ctx: TableContext) -> ExternalIndex:
    found = None if ctx.config.index is None else external_of(resolve_index(ctx.config, {})[0])
    if found is not None:
        return found
    raise InvalidRequestError(
        f"table {ctx.config.name!r} has no external index; its index keeps nothing beside the files",
        base_path=ctx.base_path,
    )
