"""A failing script made short: what can be left out of it, so that it fails in the same way, is
left out."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

from tests.simulation.earlier import PRESENT
from tests.simulation.run import play
from tests.simulation.script import Script
from tests.simulation.store import WHOLE

_PLAIN_CAST: list[dict[str, Any]] = [{"skew": 0.0}, {"jumps": []}, {"threads": 1}, {"code": PRESENT}]


def signature(anomaly: str) -> str:
    """The kind of an anomaly: its words, without names and numbers."""
    last = anomaly.strip().rpartition("\n")[2]
    words = re.sub(r"(writer|reader|keeper|last)\d*(\.\d+)?\w?|\d[\d.]*|\{.*|\[.*|'.*'|p\d\S*", "", last)
    return " ".join(words.split())[:80]


def shrunk(script: Script, told: Callable[[str], None] = lambda _: None, plays_max: int = 400) -> Script:
    """The shortest script found that fails as this one does. Raises ValueError if it does not
    fail."""
    found = play(script).anomalies
    if not found:
        raise ValueError(f"the script of seed {script.seed} does not fail")
    wanted, left = signature(found[0]), plays_max

    def fails(candidate: Script) -> bool:
        nonlocal left
        left -= 1
        return left >= 0 and any(signature(each) == wanted for each in play(deepcopy(candidate)).anomalies)

    while left > 0:
        before = _size(script)
        for step in (_sooner_over, _without_processes, _without_faults, _without_operations, _simpler):
            for candidate in step(script):
                if left > 0 and _size(candidate) < _size(script) and fails(candidate):
                    script = candidate
                    told(f"{script.operations} operations, {script.faults} faults")
        if _size(script) == before:
            break
    return script


def _size(script: Script) -> tuple[int, int, int, int]:
    """What is to become less: operations, faults, processes, and settings that are not the plain
    ones."""
    settings = [script.page != WHOLE, script.order != "ascending", script.spread > 0, script.table["partitions"] > 1]
    settings += [
        bool(cast.skew) + bool(cast.jumps) + (cast.threads > 1) + (cast.code != PRESENT) for cast in script.cast
    ]
    settings += [any(operation.think for operation in cast.operations) for cast in script.cast]
    return script.operations, script.faults, len(script.cast), sum(map(int, settings))


def _sooner_over(script: Script) -> Iterator[Script]:
    """Every process does the first of its operations alone: so the plays that follow are short."""
    for share in (8, 4, 2):
        smaller = deepcopy(script)
        for cast in smaller.cast:
            cast.operations = cast.operations[: -(-len(cast.operations) // share)]
        yield smaller


def _without_processes(script: Script) -> Iterator[Script]:
    for cast in list(script.cast):
        smaller = deepcopy(script)
        smaller.cast = [other for other in smaller.cast if other.name != cast.name]
        yield smaller


def _without_faults(script: Script) -> Iterator[Script]:
    for cast in script.cast:
        for part in _parts(sorted(cast.faults)):
            smaller = deepcopy(script)
            mine = next(other for other in smaller.cast if other.name == cast.name)
            mine.faults = {number: fault for number, fault in mine.faults.items() if number not in part}
            yield smaller


def _without_operations(script: Script) -> Iterator[Script]:
    """The last ones first: without them what comes before stays as it is."""
    for cast in script.cast:
        for part in reversed(list(_parts(range(len(cast.operations))))):
            smaller = deepcopy(script)
            mine = next(other for other in smaller.cast if other.name == cast.name)
            mine.operations = [each for number, each in enumerate(mine.operations) if number not in part]
            yield smaller


def _simpler(script: Script) -> Iterator[Script]:
    plain: list[dict[str, Any]] = [{"page": WHOLE}, {"order": "ascending"}, {"spread": 0.0}]
    for change in plain:
        smaller = deepcopy(script)
        for name, value in change.items():
            setattr(smaller, name, value)
        yield smaller
    smaller = deepcopy(script)
    smaller.table["partitions"] = 1
    yield smaller
    for number in range(len(script.cast)):
        for own in _PLAIN_CAST:
            smaller = deepcopy(script)
            for name, value in own.items():
                setattr(smaller.cast[number], name, value)
            yield smaller


def _parts(items: range | list[int]) -> Iterator[set[int]]:
    """All of them, halves, quarters, and so on down to single ones."""
    whole = list(items)
    size = len(whole)
    while size:
        for start in range(0, len(whole), size):
            yield set(whole[start : start + size])
        size //= 2
