"""The museum: published faults of table formats that could be in our design, each as a mutant of
our code. The simulator finds every one.

Numbers are issues of apache/hudi; "Vanlightly" is Jack Vanlightly's model of Hudi's concurrency;
RFC-91 is Hudi's storage lock.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from hudi_table.errors import ObjectExistsError, OutcomeUnknownError, UnavailableError
from hudi_table.model.timeline.chain import ChainEntry, Kind
from hudi_table.table.commit import recovery
from hudi_table.table.commit.conflicts import Claimed
from hudi_table.table.commit.decision import Decider
from hudi_table.table.timeline import chain
from hudi_table.table.timeline.context import TableContext
from hudi_table.write.attempt import Attempt
from tests.simulation.store import SimStorage

Patch = pytest.MonkeyPatch


@dataclass(frozen=True)
class Mutant:
    """One fault: its name, where it was published, and what makes our code have it. `seed`: where
    it was found first."""

    name: str
    precedent: str
    infect: Callable[[Patch], None]
    seed: int


def _no_conflicts(patch: Patch) -> None:
    patch.setattr(Claimed, "excluded_by", lambda *_: False)


def _taken_slot_is_own(patch: Patch) -> None:
    real = chain.put_entry

    def put(ctx: TableContext, sequence: int, entry: ChainEntry) -> None:
        try:
            real(ctx, sequence, entry)
        except ObjectExistsError:
            ctx.entries[sequence] = entry

    patch.setattr(chain, "put_entry", put)


def _lost_reply_is_failure(patch: Patch) -> None:
    real = chain.put_entry

    def put(ctx: TableContext, sequence: int, entry: ChainEntry) -> None:
        try:
            real(ctx, sequence, entry)
        except OutcomeUnknownError as error:
            raise UnavailableError(str(error)) from error

    patch.setattr(chain, "put_entry", put)


def _recovery_without_chain(patch: Patch) -> None:
    blind = SimpleNamespace(
        find_decisions=lambda *_: {},
        read_tail=chain.read_tail,
        append_abort=chain.append_abort,
        find_decision=lambda *_: None,
    )
    patch.setattr(recovery, "chain", blind)

    def dead(ctx: TableContext, time: str, **_: Any) -> ChainEntry:
        chain.append_abort(ctx, chain.read_tail(ctx), time)
        return ChainEntry(Kind.ABORT, time, "recovery")

    patch.setattr(recovery, "_decide_dead", dead)


def _claims_overwrite(patch: Patch) -> None:
    real = SimStorage.put_if_absent

    def put(self: SimStorage, path: str, data: bytes) -> None:
        if path.endswith("commit.requested"):
            self.put(path, data)
        else:
            real(self, path, data)

    patch.setattr(SimStorage, "put_if_absent", put)


def _aborted_goes_on(patch: Patch) -> None:
    real = Decider._check

    def check(self: Decider, entry: ChainEntry, claimed: Claimed) -> None:
        if entry.kind is not Kind.ABORT:
            real(self, entry, claimed)

    patch.setattr(Decider, "_check", check)


def _inserts_name_no_keys(patch: Patch) -> None:
    real = Attempt._conflict_keys
    patch.setattr(
        Attempt,
        "_conflict_keys",
        lambda *given: {k for k in real(*given) if not k.startswith(("key:", "keys:", "partition:"))},
    )


MUTANTS = (
    Mutant("a writer looks for no conflict", "#9674, Vanlightly 1", _no_conflicts, 1),
    Mutant("a name that is taken counts as one's own", "RFC-91-2", _taken_slot_is_own, 1),
    Mutant("a lost reply counts as a failure", "RFC-91-2", _lost_reply_is_failure, 85),
    Mutant("a rollback does not look whether the write has committed", "#7826", _recovery_without_chain, 1),
    Mutant("two writers draw one instant", "#9212, Vanlightly 2", _claims_overwrite, 12),
    Mutant("a writer that was taken for dead commits", "#12522", _aborted_goes_on, 3),
    Mutant("one key is inserted twice", "Vanlightly 2 and 4", _inserts_name_no_keys, 14),
)
