"""Taking completed instants back (section 2.3): decided as a plan of the whole table, carried out
by anybody."""

from __future__ import annotations

from typing import Any

from tests.model.engine import Env, Location
from tests.model.planner import Planner
from tests.model.rights import Guards
from tests.model.savepoints import going
from tests.model.services import may_still_appear
from tests.model.store import TABLE, Store, bases_in_view, timeline, view


class Restorer(Planner):
    """Takes back the newest instant, or all after the instant `to`."""

    touches = (TABLE,)

    def __init__(self, name: str = "U", without: Guards = frozenset(), *, to: int = 0):
        super().__init__(name, without)
        self.to = to

    def draft(self, store: Store, env: Env) -> Any:
        completed = timeline(store)[0]
        to = self.to or completed[-2:][0]
        targets = tuple(t for t in reversed(completed) if t > to)
        if not targets or not self._comes_back(store, targets):
            return None
        young = any(may_still_appear(target, env, store) for target in targets)
        if young and "H before taking back" not in self.without:
            return None
        before = {k: v for k, v in store.items() if k[0] != "c" or k[1] <= to}
        return targets, _shown(store) & ~_shown(before)

    def plan_entry(self, instant: int, draft: Any) -> Any:
        return ("P", instant, self.touches, draft, None, "z")

    def follows(self, instant: int, slot: int, draft: Any) -> Location:
        return ("undo", instant, 0, slot, ("done", instant))

    def _comes_back(self, store: Store, targets: tuple[int, ...]) -> bool:
        """Whether what the targets rewrote is there, and no pending clean takes it."""
        cleaned = set() if "pending cleans count as gone" in self.without else going(store)
        left = {k: v for k, v in store.items() if k not in cleaned and (k[0] != "c" or k[1] < targets[-1])}
        files = (file for target in targets for file in store[("c", target)][0])
        rewritten = [file[1] for file in files if store[file].bit_count() > 1]
        return all(on for on, _ in bases_in_view(left, rewritten))


def _shown(store: Store) -> int:
    found = 0
    for mask in view(store).values():
        found |= mask
    return found
