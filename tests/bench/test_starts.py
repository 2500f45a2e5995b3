"""The arithmetic of the bench of starts, of processes that are not started."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from bench import starts
from bench.starts import IMPORTS, RUNS, Start, measured_starts


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each command was run. Its walls are a slow first one, then some tenths of
    seconds in no order."""
    counts: Counter[str] = Counter()

    def once(command: list[str]) -> Start:
        name = command[-1]
        counts[name] += 1
        if counts[name] == 1:
            return Start(100.0, 100.0)
        tenths = (counts[name] * 4) % RUNS / 10
        return Start(0.5, 0.4) if not name else Start(0.1 + tenths, 0.6)

    monkeypatch.setattr(starts, "_once", once)
    monkeypatch.setattr(starts, "_table", lambda base: str(base))
    monkeypatch.setattr(starts, "_ingest", lambda folder: (folder / "made", ["python", "ingest"]))
    return counts


def test_each_command_is_run_in_every_round_and_its_median_is_told_without_the_first(
    taken: Counter[str], tmp_path: Path
) -> None:
    found = measured_starts(tmp_path)
    assert set(taken.values()) == {RUNS + 1}
    assert "" not in found
    assert set(found) == {*IMPORTS, "hudictl --help", "hudictl info", "hudictl query", "ingest"}
    assert found["ingest"].wall == pytest.approx(0.5)
    assert found["ingest"].cpu == pytest.approx(0.6)


def test_of_imports_the_bare_interpreter_is_deducted_and_nothing_is_below_zero(
    taken: Counter[str], tmp_path: Path
) -> None:
    found = measured_starts(tmp_path)
    assert taken
    for name in IMPORTS:
        assert found[name].wall == pytest.approx(0.0)
        assert found[name].cpu == pytest.approx(0.2)
