"""Writers beside each other at a small size: each has its bucket, nothing is lost, and the report
tells who is too slow."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.report import markdown
from bench.writers import Written, measured_writers, writers_record
from tests.bench.test_race import MACHINE


@pytest.mark.at_scale(2)
def test_two_writers_lose_nothing_to_each_other(tmp_path: Path) -> None:
    said: list[str] = []
    found = measured_writers(tmp_path / "store", 5.0, said.append, (1, 2))
    assert list(found) == [1, 2]
    assert found[1].commits >= 1
    assert (found[2].lost, found[2].fewest > 0) == (0, True)


def test_the_report_tells_who_is_slow_and_what_is_lost() -> None:
    found = {1: Written(10.0, 20, 0, 20), 8: Written(10.0, 79, 11, 5)}
    text = markdown({"writers": {"machine": MACHINE} | writers_record(found)})
    assert "| 8 | 79 | 7.90 | 5 | 11 | 12.2% |" in text
    assert "| commits of 8 writers beside those of one | at least 4 × | 4.0 × | **no** |" in text
    assert "| attempts of 8 writers that end with a conflict | at most 10% | 12% | **no** |" in text
