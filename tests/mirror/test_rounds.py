"""Our writer goes through every schedule of the mirror, on both kinds of table, and is fine."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.mirror.engines import TABLE_KINDS, Engine, engine
from tests.mirror.proxy import before
from tests.mirror.reader import Reader
from tests.mirror.rounds import FINE, Bench, Round
from tests.mirror.schedules import SCHEDULES, How, Schedule
from tests.support.versitygw import running_versitygw
from tests.support.zookeeper import running_zookeeper

pytestmark = [pytest.mark.s3, pytest.mark.at_scale(2)]
ROOMY = [schedule for schedule in SCHEDULES if schedule.how is not How.FULL]
"""All but the one that needs a volume of its own, which only root can have."""


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Bench, Engine]]:
    folder = tmp_path_factory.mktemp("mirror")
    with ExitStack() as stack:
        near = stack.enter_context(running_versitygw(folder / "store"))
        store = stack.enter_context(before(near))
        zookeeper = stack.enter_context(running_zookeeper(folder / "zookeeper")).address
        reader = Reader(near)
        stack.callback(reader.close)
        ours = engine("ours", store.far, folder / "store", folder)
        stack.callback(ours.close)
        yield Bench(store, reader, folder, zookeeper, random.Random(20)), ours


@pytest.mark.parametrize("kind", TABLE_KINDS)
@pytest.mark.parametrize("schedule", ROOMY, ids=lambda schedule: schedule.name)
def test_a_round_of_ours_is_fine(bench: tuple[Bench, Engine], schedule: Schedule, kind: str, figure) -> None:
    number = 1 + ROOMY.index(schedule) * len(TABLE_KINDS) + TABLE_KINDS.index(kind)
    found = Round(*bench, schedule, kind, number).run()
    assert (found["verdict"], found["reads failed"], found["reads wrong"]) == (FINE, 0, 0), found
    assert found["fired"] or schedule.how is How.AT_A_TIME
    figure(1, "rounds of the mirror")
