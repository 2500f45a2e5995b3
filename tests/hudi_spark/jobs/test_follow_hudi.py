"""A `Continuous` driver that follows another Hudi table: it takes each commit in once, ends when it
is told to, and what it is killed amid is once in the table."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from hudi_operator.plan.schedule.runs import RetryPolicy
from hudi_operator.runtime.local import loop
from hudi_operator.runtime.local.loop import LocalRuntime
from hudi_table import create_table, upgrade_table, write_hudi
from hudi_table.errors import HudiError
from hudi_table.model.job.jobspec import MEMORY_BYTES
from hudi_table.table.store.clock import SystemClock
from hudi_table.table.timeline.active import load_timeline
from tests.support.chained import SCHEMA, Chain, rows_of
from tests.support.feeds import end_drivers
from tests.support.manifests import manifest
from tests.support.scale import scaled

QUICK = RetryPolicy(attempts_max=2, backoff_first_seconds=0.2, backoff_max_seconds=0.2)
FOLLOWING = {"mode": "Continuous", "commitIntervalSeconds": 0.3}
FOLLOWS = "it follows the other table"
SECONDS_MAX = 60.0


class OverError(Exception):
    """The test has seen enough."""


@pytest.fixture(autouse=True)
def no_driver_is_left() -> Iterator[None]:
    yield
    end_drivers()


@pytest.fixture
def chain(tmp_path: Path) -> Chain:
    found = Chain(tmp_path, version=9)
    found.begin()
    return found


def wait_for(found: Callable[[], bool], told: Callable[[], str], seconds: float = SECONDS_MAX) -> None:
    until = time.monotonic() + seconds
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


def test_it_ends_behind_the_commit_that_left_it_little_memory(chain: Chain) -> None:
    for number in range(2):
        write_hudi(chain.above, rows_of((f"k{number}", "x", number)))
        assert chain.start(f"n{number}", **FOLLOWING, **{MEMORY_BYTES: 1 << 20}).wait(60) == 0
        assert alike(chain)
        done = chain.result(f"n{number}")
        assert (done.outcome, done.figures["commits"], done.figures[MEMORY_BYTES]) == ("Succeeded", 1, 1 << 20)
        assert "ended for a successor to go on" in done.message


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
    for kill in range(scaled(4, quick=2)):
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


def test_an_operated_driver_is_replaced_by_one_and_tells_the_other_table_how_far_it_is(
    chain: Chain, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the other table's cleaning waits for is the position in the status."""
    monkeypatch.setattr(loop, "RUN_RECHECK_SECONDS", 3.0)
    source = {"type": "Hudi", "hudi": {"location": f"file://{chain.folder}/above", "deletes": "Delete"}}
    asked = {"name": "feed", "mode": "Continuous", "commitInterval": "300ms", "source": source}
    spec: dict[str, Any] = {"location": f"file://{chain.folder}/below", "recordKey": ["id"], "partitionBy": [{"field": "city", "type": "Simple"}]}  # fmt: skip
    (chain.folder / "manifest.yaml").write_text(yaml.safe_dump(manifest("orders", ingest=[asked], **spec)))
    over, lines, state = threading.Event(), list[str](), chain.folder / "state"
    attempts, seen = state / "attempts", dict[str, Any]()

    class Clock(SystemClock):
        def sleep(self, seconds: float) -> None:
            if over.is_set():
                raise OverError
            super().sleep(min(seconds, 0.1))

    def told() -> dict[str, Any]:
        found = json.loads((state / "resources" / "HudiTable.default.orders.json").read_text())
        (ingest,) = found["status"]["ingest"]
        return dict(ingest)

    def newest() -> str:
        return load_timeline(chain.above.context).commits[-1].time

    def life() -> None:
        try:
            write_hudi(chain.above, rows_of(("a", "x", 1), ("b", "x", 2)))
            wait_for(lambda: alike(chain), lambda: str(lines))
            (first,) = attempts.glob("*/process.json")
            os.kill(json.loads(first.read_text())["pid"], signal.SIGKILL)
            write_hudi(chain.above, rows_of(("c", "y", 3)))
            chain.above.delete(rows_of(("a", "x", 0)))
            wait_for(lambda: alike(chain), lambda: str(lines))
            seen["drivers"] = len(list(attempts.glob("*/process.json")))
            # At the next look of the operator.
            wait_for(lambda: told().get("position") == newest(), lambda: str(told()), 2 * SECONDS_MAX)
        finally:
            over.set()

    other = threading.Thread(target=life)
    other.start()
    try:
        LocalRuntime([chain.folder / "manifest.yaml"], state, Clock(), lines.append, QUICK, watch=True).run()
    except OverError:
        pass
    finally:
        other.join()
    assert seen["drivers"] == 2, lines
    assert alike(chain)
    assert told()["position"] == newest(), lines
