"""The metadata table of versions 8 and 9 (sections 2.4 and 2.8): slices go by when a delta
completed on its timeline. That is behind every compaction which its writer saw there; behind a plan
that is found later the delta is published anew, and its log stays as it is. What is built begins
before every write."""

from __future__ import annotations

from collections.abc import Iterator

from tests.model.deltas import ListedCleaner, ListedRecovery, ListedWriter
from tests.model.engine import Env, Instance, Location, Process, Step
from tests.model.listing import READY, place
from tests.model.metadata_cases import LOGGED
from tests.model.metadata_plans import BuildingExecutor, MetadataBuilder, MetadataCompactor
from tests.model.parts import FIRST, ROWS, Maker, Parts
from tests.model.plans import TWICE
from tests.model.store import Store

EARLY = 0
"""The base of what is built."""


def _moment(store: Store, instant: int) -> int:
    """When a delta completes that is published by what the store shows now."""
    return 2 * max(instant, *(key[1] for key in store if key[0] == "mk"), 0) + 1


class TimedListedWriter(ListedWriter):
    """A writer whose delta tells when it completed. The last item of its locations is that
    moment."""

    def at_mlist(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        for step in super().at_mlist(at, store, env):
            if step.to[0] == "mprops" and place(store) is not None:
                step.to = (*step.to[:-1], _moment(store, at[1]))
            yield step

    def at_mtime(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        for step in super().at_mtime(at, store, env):
            if step.to[0] == "mlog":
                step.writes = ((("mt", at[1]), at[7]),)
            yield step

    def at_mlog(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        yield from super().at_mlog((*at[:-1], 0), store, env)


class TimedListedCleaner(ListedCleaner):
    """The same of a clean."""

    def at_mlist(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        yield Step("LIST metadata", ("mlog", *at[1:], _moment(store, at[1])))

    def at_mlog(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        _, instant, files, _, moment = at
        tombstones = tuple(("gone", file) for file in files)
        writes = ((("mt", instant), moment), (("ml", 0, instant), tombstones))
        yield Step(f"PUT tombstones of {instant}, which complete at {moment}", ("mdrop", *at[1:-1], 0), writes)


class EarlyBuilder(MetadataBuilder):
    """Builds what begins before every write."""

    def at_skeleton(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        yield Step("PUT metadata, an empty log", ("name", *at[1:]), ((("ml", EARLY, 0), ()),))

    def at_fill(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        yield Step("PUT metadata base", ("publish_base", at[1]), ((("mb", EARLY), at[2]),))

    def at_publish_base(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        yield Step("PUT metadata/early.deltacommit", ("ready", at[1]), ((("mc", EARLY), 1),))


class EarlyBuildingExecutor(EarlyBuilder, BuildingExecutor):
    """Finishes any building that is planned."""


TIMED_LOGGED: Store = {**LOGGED, ("mt", 2): 5}


def _writer(p: Parts, number: int, group: str = "f") -> Process:
    return TimedListedWriter(f"W{number}", number, (group,), p.without)


def d10(p: Parts) -> Instance:
    return Instance("metadata table of versions 8 and 9: upsert, compaction of it, recovery",
                    [_writer(p, 1), MetadataCompactor("M", p.without), ListedRecovery("B", p.without)], TIMED_LOGGED, ROWS,
                    lost_replies=0)  # fmt: skip


def d11(p: Parts) -> Instance:
    return Instance("metadata table of versions 8 and 9: upsert, building of it, recovery",
                    [_writer(p, 1), EarlyBuilder("I", p.without), ListedRecovery("B", p.without)], FIRST, ROWS,
                    lost_replies=0)  # fmt: skip


def d12(p: Parts) -> Instance:
    return Instance("metadata table of versions 8 and 9: upsert, building of it, second executor, compaction",
                    [_writer(p, 1), EarlyBuilder("I", p.without), EarlyBuildingExecutor("X", p.without),
                     MetadataCompactor("M", p.without)], FIRST, ROWS, lost_replies=0)  # fmt: skip


def d13(p: Parts) -> Instance:
    """The file of f at 1 is superseded by that at 2, whose log may be compacted."""
    store: Store = {**TWICE, ("mp",): READY, ("mb", 0): (("d", "f", 1, 0),), ("mc", 0): 1, ("mt", 2): 5}
    store["ml", 0, 2] = (("d", "f", 2, 0),)
    return Instance("metadata table of versions 8 and 9: clean, compaction of it, upsert of another group",
                    [TimedListedCleaner("K", p.without), MetadataCompactor("M", p.without), _writer(p, 2, "h")], store, ROWS,
                    lost_replies=0, acked=0b11)  # fmt: skip


TIMED_METADATA: dict[str, Maker] = {maker.__name__.upper(): maker for maker in (d10, d11, d12, d13)}
