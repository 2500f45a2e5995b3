"""Instances of a table with a metadata table: writers, its compaction, its building."""

from __future__ import annotations

from tests.model.deltas import ListedCleaner, ListedRecovery, ListedWriter
from tests.model.dropping import BuilderBesideDrops, Dropper
from tests.model.engine import Instance, Process
from tests.model.listing import READY
from tests.model.metadata_plans import BuildingExecutor, MetadataBuilder, MetadataCompactor, MetadataExecutor
from tests.model.parts import FIRST, ROWS, Maker, Parts
from tests.model.plans import TWICE
from tests.model.store import Store

LISTED: Store = {**FIRST, ("mp",): READY, ("mb", 0): (("d", "f", 1, 0),), ("mc", 0): 1}
"""A metadata table without logs."""
LOGGED: Store = {
    **LISTED,
    ("c", 2): ((("d", "e", 2, 0),), (), ("e",)),
    ("r", 2): "old",
    ("d", "e", 2, 0): 0,
    ("h", 1): ("C", 2, ((("d", "e", 2, 0),), (), ("e",)), ("e",)),
    ("mt", 2): 1,
    ("ml", 0, 2): (("d", "e", 2, 0),),
}
"""One with the log of instant 2, which may be compacted."""


def _writer(p: Parts, number: int, group: str = "f") -> Process:
    return ListedWriter(f"W{number}", number, (group,), p.without)


def _recovery(p: Parts) -> Process:
    return ListedRecovery("B", p.without)


def d1(p: Parts) -> Instance:
    return Instance("metadata table: upsert, compaction of it, recovery",
                    [_writer(p, 1), MetadataCompactor("M", p.without), _recovery(p)], LOGGED, ROWS, lost_replies=0)  # fmt: skip


def d2(p: Parts) -> Instance:
    return Instance("metadata table: upserts of two groups, compaction of it",
                    [_writer(p, 1), _writer(p, 2, "g"), MetadataCompactor("M", p.without)], LOGGED, ROWS, lost_replies=0)  # fmt: skip


def d3(p: Parts) -> Instance:
    return Instance("metadata table: upsert, building of it, recovery",
                    [_writer(p, 1), MetadataBuilder("I", p.without), _recovery(p)], FIRST, ROWS, lost_replies=0)  # fmt: skip


def d4(p: Parts) -> Instance:
    return Instance("metadata table: upsert, compaction of it, second executor, recovery",
                    [_writer(p, 1), MetadataCompactor("M", p.without), MetadataExecutor("X", p.without), _recovery(p)],
                    LOGGED, ROWS)  # fmt: skip


def d5(p: Parts) -> Instance:
    return Instance("metadata table: upsert, building of it, second executor, compaction",
                    [_writer(p, 1), MetadataBuilder("I", p.without), BuildingExecutor("X", p.without),
                     MetadataCompactor("M", p.without)], FIRST, ROWS, lost_replies=0)  # fmt: skip


def d6(p: Parts) -> Instance:
    return Instance("metadata table: upserts of two groups, building of it",
                    [_writer(p, 1), _writer(p, 2, "g"), MetadataBuilder("I", p.without)], FIRST, ROWS, lost_replies=0)  # fmt: skip


def d7(p: Parts) -> Instance:
    """The file of f at 1 is superseded by that at 2, whose log may be compacted."""
    store: Store = {**TWICE, ("mp",): READY, ("mb", 0): (("d", "f", 1, 0),), ("mc", 0): 1, ("mt", 2): 1}
    store["ml", 0, 2] = (("d", "f", 2, 0),)
    return Instance("metadata table: clean, compaction of it, upsert of another group",
                    [ListedCleaner("K", p.without), MetadataCompactor("M", p.without), _writer(p, 2, "h")], store, ROWS,
                    lost_replies=0, acked=0b11)  # fmt: skip


def d8(p: Parts) -> Instance:
    return Instance("metadata table: upsert, its dropping, building of it",
                    [_writer(p, 1), Dropper("D", p.without), BuilderBesideDrops("I", p.without)], LISTED, ROWS, lost_replies=0)  # fmt: skip


def d9(p: Parts) -> Instance:
    """A building is under way when the drop begins, so it meets what is half-built."""
    return Instance("metadata table: upsert, building of it, its dropping",
                    [_writer(p, 1), BuilderBesideDrops("I", p.without), Dropper("D", p.without)], FIRST, ROWS,
                    lost_replies=0)  # fmt: skip


METADATA: dict[str, Maker] = {maker.__name__.upper(): maker for maker in (d1, d2, d3, d4, d5, d6, d7, d8, d9)}
