"""Nobody starves: a write that has lost an attempt is let go first by those that began later.

The library's own code in simulated hours, without faults but a death: beside `w` other writers a
write commits with attempt 2 + w at the latest.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hudi_table.table.commit.beside.turns import Place
from tests.simulation.fairness import long_delete
from tests.simulation.script import HOUR
from tests.support.scale import scaled

SUSPECTED_AFTER = 900.0
LATE = 120.0
"""An attempt of an ingest, and what its requests take."""


def test_a_delete_of_two_hours_beside_ingests_of_every_half_hour_commits(figure: Callable[[int, str], None]) -> None:
    race = long_delete(1)
    race.run()
    [deleted] = race.of("delete")
    assert (deleted.committed, deleted.attempts) == (True, 2)
    assert deleted.ended < 4.1 * HOUR
    assert all(each.committed for each in race.done)
    figure(deleted.attempts, "attempts of a delete of two hours beside ingests of every half hour")


def test_without_turns_it_loses_every_attempt_beside_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Place, "refuse_before_others", lambda *_: None)
    race = long_delete(1, retries=5)
    race.run()
    [deleted] = race.of("delete")
    assert (deleted.committed, deleted.attempts) == (False, 6)


@pytest.mark.parametrize("others", [1, 2, 4])
def test_beside_others_no_write_takes_more_attempts_than_two_and_one_for_each(
    others: int, figure: Callable[[int, str], None]
) -> None:
    most = 0
    for seed in range(1, 1 + scaled(2, quick=1)):
        race = long_delete(seed, ingests=others)
        race.run()
        assert len(race.done) == 1 + 24 * others
        assert all(each.committed for each in race.done)
        most = max(most, *(each.attempts for each in race.done))
    assert most <= 2 + others
    figure(most, f"attempts of a write at the most, beside {others} others")


def test_a_writer_that_dies_with_a_turn_holds_others_up_no_longer_than_it_seems_alive() -> None:
    race = long_delete(1, dies_at=2)
    race.run()
    ingests = race.of("ingest0")
    assert len(ingests) == 24
    assert all(each.committed and each.ended - each.begun < SUSPECTED_AFTER + LATE for each in ingests)
