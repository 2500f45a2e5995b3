"""What every test shares: the rule on skips, the share of the work between processes, figures in
the summary."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import suppress

import hypothesis
import pytest

from tests.support.ci_skips import pytest_make_collect_report, pytest_runtest_makereport
from tests.support.processors import pytest_sessionfinish, pytest_testnodedown, told
from tests.support.scale import scale
from tests.support.selection import deselect, mark_thinned
from tests.support.sharing import pytest_xdist_make_scheduler

__all__ = [
    "pytest_make_collect_report",
    "pytest_runtest_makereport",
    "pytest_sessionfinish",
    "pytest_testnodedown",
    "pytest_xdist_make_scheduler",
]

# A slow machine is no bug: pytest-timeout bounds each test. A failure prints the line that replays it.
hypothesis.settings.register_profile("hudi", deadline=None, print_blob=True)
hypothesis.settings.load_profile("hudi")

FIGURE = "figure"


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Iterator[None]:
    """What is collected stays to the end: looking for garbage in it takes a third of the
    collection, and is no use later either."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "thinned(how): cases that hold all pairs, or all values, of its axes stand for all in `make test`"
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    mark_thinned(items)
    long = [item for item in items if any(scale() < mark.args[0] for mark in item.iter_markers("at_scale"))]
    deselect(config, items, long)


@pytest.fixture(scope="session", autouse=True)
def cleans_leave_nothing_to_readers() -> Iterator[None]:
    """A clean of a test deletes what was superseded just now, as Hudi's does: what it leaves to
    readers for a minute is for the tests of that."""
    with pytest.MonkeyPatch.context() as patched:
        # Of a mutant that cannot be imported its tests tell.
        with suppress(Exception):
            patched.setattr("hudi_table.services.cleaning.policy.READERS_SECONDS", 0.0)
        yield


@pytest.fixture
def figure(request: pytest.FixtureRequest) -> Callable[[int, str], None]:
    """`figure(412, "crash points")` puts a count into the summary of the run, and into its total
    for that unit."""

    def note(count: int, unit: str) -> None:
        request.node.user_properties.append((FIGURE, [count, unit]))

    return note


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    totals: dict[str, list[int]] = {}
    for outcome in ("passed", "failed"):
        for report in terminalreporter.stats.get(outcome, []):
            if isinstance(report, pytest.TestReport) and report.when == "call":
                for name, value in report.user_properties:
                    if name == FIGURE and isinstance(value, list):
                        totals.setdefault(value[1], []).append(value[0])
    if totals:
        terminalreporter.section("figures")
        for unit, counts in sorted(totals.items()):
            terminalreporter.write_line(f"{sum(counts):,} {unit} ({len(counts)} tests)")
    used = told()
    if used is not None:
        terminalreporter.write_line(used)
