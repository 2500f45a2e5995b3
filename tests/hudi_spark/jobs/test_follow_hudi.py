"""A `Continuous` driver that follows another Hudi table: it takes each commit in once, ends when it
is told to, and what it is killed amid is once in the table."""

from __future__ import annotations

import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hudi_table import create_table, upgrade_table, write_hudi
from hudi_table.errors import HudiError
from tests.support.chained import SCHEMA, Chain, rows_of
from tests.support.feeds import end_drivers
from tests.support.scale import scaled

FOLLOWING = {"mode": "Continuous", "commitIntervalSeconds": 0.3}
FOLLOWS = "it follows the other table"
SECONDS_MAX = 60.0


@pytest.fixture(autouse=True)
def no_driver_is_left() -> Iterator[None]:
    yield
    end_drivers()


@pytest.fixture
def chain(tmp_path: Path) -> Chain:
    found = Chain(tmp_path, version=9)
    found.begin()
    return found


def wait_for(found: Callable[[], bool], told: Callable[[], str]) -> None:
    until = time.monotonic() + SECONDS_MAX
    while not found():
        assert time.monotonic() < until, told()
        time.sleep(0.05)


def alike(chain: Chain) -> bool:
    try:
        return chain.shown(chain.below) == chain.shown(chain.above)
    except (HudiError, FileNotFoundError):
        return False


def wait_until_alike(chain: Chain, attempt: str) -> None:
    wait_for(lambda: alike(chain), lambda: chain.log(attempt))


def end(driver: subprocess.Popen[bytes]) -> None:
    driver.send_signal(signal.SIGTERM)
    assert driver.wait(30) == 0


def test_it_follows_writes_and_deletes_and_ends_when_told(chain: Chain) -> None:
    write_hudi(chain.above, rows_of(("a", "x", 1), ("b", "x", 2), ("c", "y", 3)))
    driver = chain.start("one", deletes="Delete", **FOLLOWING)
    wait_until_alike(chain, "one")
    write_hudi(chain.above, rows_of(("a", "x", 10), ("d", "y", 4)))
    wait_until_alike(chain, "one")
    chain.above.delete(rows_of(("b", "x", 0)))
    wait_until_alike(chain, "one")
    end(driver)
    done = chain.result("one")
    assert (done.outcome, done.figures["commits"], done.figures["recordsDeleted"]) == ("Succeeded", 3, 1)
    assert chain.follow("two", deletes="Delete").outcome == "NothingToDo", "a run in mode Once goes on from there"


def test_a_table_that_comes_to_be_later_is_followed_then(tmp_path: Path) -> None:
    chain = Chain(tmp_path)
    driver = chain.start("one", **FOLLOWING)
    wait_for(lambda: FOLLOWS in chain.log("one"), lambda: chain.log("one"))
    chain.begin()
    write_hudi(chain.above, rows_of(("a", "x", 1)))
    wait_until_alike(chain, "one")
    end(driver)


def test_it_gathers_for_as_long_as_it_is_told_unless_enough_wait(chain: Chain) -> None:
    write_hudi(chain.above, rows_of(("a", "x", 1)))
    driver = chain.start("one", maxInstants=2, **{**FOLLOWING, "commitIntervalSeconds": 600})
    wait_until_alike(chain, "one")
    write_hudi(chain.above, rows_of(("b", "x", 2)))
    time.sleep(3)
    assert len(chain.shown(chain.below)) == 1
    write_hudi(chain.above, rows_of(("c", "x", 3)))
    wait_until_alike(chain, "one")
    write_hudi(chain.above, rows_of(("d", "x", 4)))
    end(driver)
    assert [row[0] for row in chain.shown(chain.below)] == ["a", "b", "c"]


def test_a_table_that_was_made_anew_ends_it_with_a_condition(chain: Chain) -> None:
    write_hudi(chain.above, rows_of(("a", "x", 1)))
    driver = chain.start("one", **FOLLOWING)
    wait_until_alike(chain, "one")
    (chain.folder / "above").rename(chain.folder / "before")
    create_table(str(chain.folder / "above"), SCHEMA, record_key="id", partition_by=["city"], index={"type": "Simple"})
    write_hudi(chain.above, rows_of(("z", "x", 9)))
    assert driver.wait(60) != 0
    assert chain.result("one").error_class == "DataLoss", chain.log("one")


def test_a_table_that_another_version_takes_over_is_followed_on(tmp_path: Path) -> None:
    """The timeline lies elsewhere then."""
    chain = Chain(tmp_path, version=6)
    chain.begin()
    write_hudi(chain.above, rows_of(("a", "x", 1)))
    driver = chain.start("one", **FOLLOWING)
    wait_until_alike(chain, "one")
    upgrade_table(str(chain.folder / "above"), to=9)
    write_hudi(chain.above, rows_of(("b", "x", 2)))
    wait_until_alike(chain, "one")
    end(driver)


def test_two_drivers_of_one_ingest_do_not_double_a_row(chain: Chain) -> None:
    started = [chain.start(name, operation="Insert", **FOLLOWING) for name in ("one", "two")]
    for name in ("one", "two"):
        wait_for(lambda name=name: FOLLOWS in chain.log(name), lambda name=name: chain.log(name))  # type: ignore[misc]
    for number in range(scaled(6)):
        write_hudi(chain.above, rows_of((f"k{number}", "x", number)), operation="insert")
        time.sleep(0.3)
    wait_until_alike(chain, "one")
    for driver in started:
        end(driver)
    assert alike(chain)


def test_a_driver_that_is_killed_at_random_loses_and_doubles_nothing(chain: Chain) -> None:
    """Rows are inserted without a look for their keys: one that is taken twice is there twice."""
    draw, number = random.Random(7), 0
    for kill in range(scaled(4)):
        driver = chain.start(f"run-{kill}", operation="Insert", **FOLLOWING)
        until = time.monotonic() + draw.uniform(0.8, 3.0)
        while time.monotonic() < until:
            write_hudi(
                chain.above, rows_of((f"k{number}", "x", number), (f"l{number}", "y", number)), operation="insert"
            )
            number += 1
            time.sleep(0.1)
        driver.kill()
        driver.wait()
    driver = chain.start("last", operation="Insert", **FOLLOWING)
    wait_until_alike(chain, "last")
    end(driver)
    assert len(chain.shown(chain.below)) == 2 * number
