"""The instances that are searched: processes on a first store, as functions of the guards that are
removed."""

from __future__ import annotations

from collections.abc import Iterable

from tests.model.ahead import AHEAD
from tests.model.beside import FOREIGN
from tests.model.compaction import Compactor, Executor, SecondAttempt
from tests.model.completion_cases import COMPLETIONS
from tests.model.deltas_by_completion import TIMED_METADATA
from tests.model.engine import InFlight, Instance
from tests.model.late import LATE
from tests.model.locked import LOCKED
from tests.model.metadata_cases import METADATA
from tests.model.parts import FIRST, ROWS, TWO_GROUPS, Maker, Parts
from tests.model.plans import PLANS
from tests.model.rollbacks import ROLLBACKS
from tests.model.services import SlowReader
from tests.model.store import Store
from tests.model.taken_back import TAKEN_BACK
from tests.model.turns import TURNS
from tests.model.upgrading import UPGRADES


def _past() -> Store:
    """Instants 2, 3 and 4 are in the chain, 2 and 3 are archived."""
    store: Store = {("c", 4): ((("d", "h", 4, 0),), (), ("h",)), ("r", 4): "old"}
    for slot, (instant, group) in enumerate(((2, "f"), (3, "g"), (4, "h")), 1):
        file = ("d", group, instant, 0)
        store[file] = 1 << (slot - 1)
        store[("h", slot)] = ("C", instant, ((file,), (), (group,)), (group,))
    return store


PAST = _past()
UNPUBLISHED: Store = {
    **PAST,
    ("c", 2): ((("d", "f", 2, 0),), (), ("f",)),
    ("r", 2): "W1",
    ("c", 3): ((("d", "g", 3, 0),), (), ("g",)),
    ("r", 3): "old",
}
"""Nothing archived yet; the writer of 2 is asleep between decision and publication, and a helper
has published."""


def k1(p: Parts) -> Instance:
    return Instance("two upserts of one group, skewed draws, recovery",
                    [p.writer("W1", 1, skew=2), p.writer("W2", 2, skew=2), p.recovery()], FIRST, ROWS)  # fmt: skip


def k2(p: Parts) -> Instance:
    clock = (2, 3, 4)
    return Instance("clocks that show any of three values, recovery",
                    [p.writer("W1", 1, clock=clock), p.writer("W2", 2, clock=clock), p.recovery()], FIRST, ROWS)  # fmt: skip


def k3(p: Parts) -> Instance:
    return Instance("upserts of two groups, recovery, archiver with trimming",
                    [p.writer("W1", 1), p.writer("W2", 2, ("g",)), p.recovery(), p.archiver(trim=True)], TWO_GROUPS, ROWS)  # fmt: skip


def k4(p: Parts) -> Instance:
    return Instance("a commit of two groups against an upsert of one, recovery",
                    [p.writer("W1", 1, ("f", "g")), p.writer("W2", 2), p.recovery()], TWO_GROUPS, {0: 1, 1: 2, 2: 1})  # fmt: skip


def k5(p: Parts) -> Instance:
    inserts = [
        p.writer("W1", 1, ("b0-u1",), touches=("bucket0",), rival="b0-u2"),
        p.writer("W2", 2, ("b0-u2",), touches=("bucket0",), rival="b0-u1"),
    ]
    return Instance("two inserts of one key into an empty bucket, recovery", [*inserts, p.recovery()], FIRST, ROWS,
                    duplicates=((1, 2),))  # fmt: skip


def k6(p: Parts) -> Instance:
    clustering = p.writer("W1", None, ("f",), touches=("f", "g"), replaces=("f", "g"))
    return Instance("clustering, two upserts, cleaner, archiver",
                    [clustering, p.writer("W2", 2), p.writer("W3", 3, ("h",)), p.cleaner(), p.archiver()],
                    FIRST, {0: 1, 2: 1, 3: 1}, lost_replies=0)  # fmt: skip


def k7(p: Parts) -> Instance:
    return Instance("merge-on-read: two deltas, compaction, second executor",
                    [p.writer("W1", 1, logs=True), p.writer("W2", 2, logs=True), Compactor("C", p.without),
                     Executor("X", p.without)], FIRST, ROWS, lost_replies=0)  # fmt: skip


def k7b(p: Parts) -> Instance:
    return Instance("merge-on-read: delta, compaction, second executor, recovery, archiver",
                    [p.writer("W1", 1, logs=True), Compactor("C", p.without), Executor("X", p.without), p.recovery(),
                     p.archiver()], FIRST, {0: 1, 1: 1}, lost_replies=0)  # fmt: skip


def k8(p: Parts) -> Instance:
    return Instance("slow reader, two upserts, cleaner, archiver",
                    [p.writer("W1", 1), p.writer("W2", 2), p.cleaner(), SlowReader(), p.archiver()], FIRST, ROWS,
                    lost_replies=0)  # fmt: skip


def k9(p: Parts) -> Instance:
    return Instance("second attempt of a task, recovery, archiver with trimming",
                    [p.writer("W1", 1, ("n1",)), p.writer("W2", 2, ("g",)), SecondAttempt("Z", p.without), p.recovery(),
                     p.archiver(trim=True)], TWO_GROUPS, ROWS, lost_replies=0)  # fmt: skip


def k10(p: Parts, lost_replies: int = 1) -> Instance:
    return Instance("liveness: a retrying writer alone, recovery alone",
                    [p.writer("W1", 1), p.writer("F", 2, retry=True), p.recovery(chain_max=2)], FIRST, ROWS,
                    lost_replies=lost_replies, alone=(1, 2))  # fmt: skip


def k10s(p: Parts) -> Instance:
    return k10(p, 0)


def k11(p: Parts) -> Instance:
    return Instance("three upserts of one group", [p.writer("W1", 1), p.writer("W2", 2), p.writer("W3", 3)], FIRST,
                    {**ROWS, 3: 1})  # fmt: skip


def k13(p: Parts, store: Store = PAST) -> Instance:
    late = InFlight(("absent", ("r", 2), "old"), 0, waited=False)
    return Instance("late claim of an archived instant, upsert, recovery, archiver",
                    [p.writer("W1", 3), p.recovery(), p.archiver()], store, {**ROWS, 3: 1}, acked=0b111, flying=(late,))  # fmt: skip


def k13t(p: Parts) -> Instance:
    """As K13, and the chain entry of the archived instant is trimmed too."""
    return k13(p, {k: v for k, v in PAST.items() if k != ("h", 1)})


def k13s(p: Parts) -> Instance:
    store = dict(PAST)
    if "delete body first" in p.without:
        store[("b", 2)] = ((("d", "f", 2, 0),), (), ("f",))
    late = InFlight(("copy-absent", ("c", 2), ("b", 2)), 0)
    return Instance("strict: late publication of an archived instant, upsert, recovery",
                    [p.writer("W1", 3), p.recovery()], store, {**ROWS, 3: 1}, acked=0b111, flying=(late,))  # fmt: skip


def k14(p: Parts) -> Instance:
    return Instance("two upserts, two recoveries",
                    [p.writer("W1", 1), p.writer("W2", 2, ("g",)), p.recovery("B1"), p.recovery("B2")], TWO_GROUPS, ROWS,
                    lost_replies=0)  # fmt: skip


def k15(p: Parts) -> Instance:
    return Instance("two upserts, two archivers, recovery",
                    [p.writer("W1", 1), p.writer("W2", 2, ("g",)), p.archiver(), p.archiver("A2"), p.recovery()],
                    TWO_GROUPS, ROWS, lost_replies=0)  # fmt: skip


def k16(p: Parts) -> Instance:
    asleep = ("publish", 2, 1, (("d", "f", 2, 0),))
    return Instance("a writer asleep before publication, helped; upsert, recovery, archiver with trimming",
                    [p.writer("W1", 0, first=asleep), p.writer("W2", 3), p.recovery(), p.archiver(trim=True)],
                    UNPUBLISHED, {**ROWS, 3: 1}, acked=0b111)  # fmt: skip


def k17(p: Parts) -> Instance:
    """The group that a second attempt also writes is clustered away, and everything is archived."""
    file = ("d", "n1", 2, 0)
    store = {**TWO_GROUPS, ("r", 2): "W1", file: 2}
    clustering = p.writer("W3", None, ("n1",), touches=("n1", "n2"), replaces=("n1", "n2"))
    return Instance("second attempt of a task, clustering of its group, cleaner, archiver, one more upsert",
                    [p.writer("W1", 1, ("n1",), first=("decide", 2, 0, (file,), (1,), 0)), SecondAttempt("Z", p.without),
                     clustering, p.writer("W2", 2, ("g",)), p.cleaner(), p.archiver()], store, ROWS, lost_replies=0)  # fmt: skip


def k18(p: Parts) -> Instance:
    """An abort is trimmed while a writer that started before it sleeps."""
    return Instance("two upserts of one group, one retrying, recovery, archiver with trimming",
                    [p.writer("W1", 1, retry=True), p.writer("W2", 2), p.recovery(chain_max=1), p.archiver(trim=True)],
                    FIRST, ROWS, lost_replies=0)  # fmt: skip


def k19(p: Parts) -> Instance:
    """A commit of two files that is aborted between them."""
    return Instance("a commit of two groups against an upsert of one, recovery, archiver",
                    [p.writer("W1", 1, ("f", "g")), p.writer("W2", 2), p.recovery(chain_max=1), p.archiver()], TWO_GROUPS,
                    {0: 1, 1: 2, 2: 1}, lost_replies=0)  # fmt: skip


def k20(p: Parts) -> Instance:
    """Compaction 2 is archived, a delta on its slice is not; the older slice is cleaned."""
    base, log = ("d", "f", 2, 0), ("l", "f", 2, 3)
    store: Store = {base: 1, log: 2, ("r", 3): "old", ("c", 3): ((log,), (), ("f",))}
    store[("h", 1)] = ("P", 2, ("f",), ("f",), (1, ()))
    store[("h", 2)] = ("C", 2, ((base,), (), ("f",)), ("compaction",))
    store[("h", 3)] = ("C", 3, ((log,), (), ("f",)), ("f",))
    return Instance("an archived compaction, an executor, a delta, recovery, archiver",
                    [p.writer("W2", 2, logs=True), Executor("X", p.without), p.recovery(), p.archiver()], store, ROWS,
                    acked=0b11)  # fmt: skip


def k3s(p: Parts) -> Instance:
    return Instance("strict: upserts of two groups, recovery, archiver, no assumption about time",
                    [p.writer("W1", 1), p.writer("W2", 2, ("g",)), p.recovery(), p.archiver()], TWO_GROUPS, ROWS)  # fmt: skip


INSTANCES: dict[str, Maker] = {
    maker.__name__.replace("k", "K"): maker
    for maker in (
        k1,
        k2,
        k3,
        k3s,
        k4,
        k5,
        k6,
        k7,
        k7b,
        k8,
        k9,
        k10,
        k10s,
        k11,
        k13,
        k13s,
        k13t,
        k14,
        k15,
        k16,
        k17,
        k18,
        k19,
        k20,
    )
} | PLANS
INSTANCES |= METADATA | TIMED_METADATA
INSTANCES |= ROLLBACKS
INSTANCES |= FOREIGN
INSTANCES |= TAKEN_BACK
INSTANCES |= LOCKED | LATE | AHEAD
INSTANCES |= COMPLETIONS
INSTANCES |= UPGRADES | TURNS


def instance(
    name: str, without: Iterable[str] = (), *, strict: bool = False, lost_replies: int | None = None
) -> Instance:
    """The named instance with some guards removed."""
    made = INSTANCES[name](Parts(without, strict=strict))
    if lost_replies is not None:
        made.lost_replies = lost_replies
    return made
