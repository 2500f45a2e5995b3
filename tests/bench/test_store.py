"""The arithmetic of the bench of object stores: chains of requests, medians, ratios and the tables
that tell them, of figures that were recorded."""

from __future__ import annotations

from typing import Any

from bench.far_store import Sent, in_sequence
from bench.store import DELAYS, LIMITS, STEPS, Figures, store_lines, store_record

WALLS = {"upsert, merge-on-read": 0.84, "upsert, copy-on-write": 0.98, "merge": 1.05}


def figures(wall: float) -> dict[float, Figures]:
    """Of each delay three walls, of which `wall` is the middle one at 30 ms."""
    return {
        delay: Figures(9 + number, 3 + number, [wall * 3, wall + number - 1, 0.0])
        for number, delay in enumerate(DELAYS)
    }


def recorded() -> dict[str, Any]:
    return store_record(3, {step: figures(WALLS.get(step.name, 2.0)) for step in STEPS})


def sent(begun: float, ended: float) -> Sent:
    return Sent(begun, ended, "GET x")


def test_the_longest_chain_counts_requests_that_begin_when_another_has_ended() -> None:
    at_once = [sent(0.0, 1.0), sent(0.1, 1.2), sent(0.2, 0.9)]
    assert in_sequence(at_once) == 1
    assert in_sequence([*at_once, sent(1.2, 2.0), sent(0.9, 1.5), sent(2.0, 3.0)]) == 3
    assert in_sequence([]) == 0


def test_a_record_has_the_counts_at_30_ms_and_the_median_wall_of_each_delay() -> None:
    record = recorded()
    steps = record["steps"]
    assert list(steps) == [step.name for step in STEPS]
    step = steps["upsert, merge-on-read"]
    assert (step["by"], step["requests"], step["sequence"]) == ("ours", 10, 4)
    assert step["walls"] == {"0": 0.0, "30": 0.84, "100": 1.84}


def test_targets_are_ratios_of_walls_at_30_ms_and_met_up_to_their_limit() -> None:
    found = [(each["step"], each["ratio"], each["met"]) for each in recorded()["targets"]]
    assert found == [("upsert, merge-on-read", 0.8, True), ("upsert, copy-on-write", 0.93, True)]
    slow = store_record(3, {step: figures({"merge": 1.0}.get(step.name, 1.01)) for step in STEPS})
    assert [each["met"] for each in slow["targets"]] == [False, False]
    assert [each["limit"] for each in slow["targets"]] == [limit for *_, limit in LIMITS]


def test_the_section_has_a_line_for_each_step_and_target() -> None:
    text = store_lines(recorded(), ["Measured on a machine."])
    assert "| upsert, merge-on-read | ours | 10 | 4 | 0.0 s | 0.84 s | 1.84 s |" in text
    assert "| upsert, copy-on-write | merge | 1.0 | 0.93 | yes |" in text
    assert text[2] == "Measured on a machine."
    assert sum(line.startswith("| ") and "---" not in line for line in text) == len(STEPS) + len(LIMITS) + 2
