"""Tests that a run leaves out, told to pytest so that its summary counts them; and which cases of a
matrix stand for all of it in `make test`.

`@pytest.mark.thinned("pairs")`: as many cases that each value of an axis meets each value of each
other axis that it meets in the whole product. `"values"`: as many that each value is met, and all
values of an axis about equally often. The other cases are for a larger scale, as those of
`at_scale(2)`. An axis is an argument of the test or of its fixtures, or a part of one that is a
tuple. Of a case that is named alone there is nothing to leave out.
"""

from __future__ import annotations

import itertools
import zlib
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import pytest

STRENGTHS = {"values": 1, "pairs": 2}
"""How many axes have to be met with each other."""
FULL = 2
"""The scale from which on all cases run."""
Met = tuple[tuple[Hashable, Hashable], ...]
SEEN = pytest.StashKey[bool]()
"""Of a case that was chosen or left already."""


def deselect(config: pytest.Config, items: list[pytest.Item], left: Iterable[pytest.Item]) -> None:
    """Take `left` out of the collected `items`."""
    gone = set(left)
    if gone:
        config.hook.pytest_deselected(items=list(gone))
        items[:] = [item for item in items if item not in gone]


def mark_thinned(items: Iterable[pytest.Item]) -> None:
    """Mark the cases that are for a larger scale alone; once, and no case that is so already."""
    by_test: dict[tuple[str, str], list[pytest.Item]] = defaultdict(list)
    for item in items:
        mark = item.get_closest_marker("thinned")
        if mark is None or SEEN in item.stash:
            continue
        item.stash[SEEN] = True
        if not any(each.args[0] >= FULL for each in item.iter_markers("at_scale")):
            by_test[item.nodeid.partition("[")[0], mark.args[0]].append(item)
    for (name, how), cases in by_test.items():
        # Each test begins elsewhere: of two that are alike one meets an index with logs, one without.
        first = zlib.crc32(name.encode()) % len(cases) if how == "values" else 0
        kept = covering([_axes_of(item) for item in cases], STRENGTHS[how], first=first)
        for number, item in enumerate(cases):
            if number not in kept:
                item.add_marker(pytest.mark.at_scale(FULL))


def covering(cases: Sequence[Mapping[Any, Hashable]], strength: int, *, first: int = 0) -> set[int]:
    """Numbers of cases, each the values by their axes, that together meet all combinations of
    values of `strength` axes that the cases hold. The same cases give the same numbers: each the
    first, from case `first` on, of those that add most, and, for single values, were chosen least.
    """
    axes = [axis for axis in dict.fromkeys(axis for case in cases for axis in case)
            if len({case.get(axis) for case in cases}) > 1]  # fmt: skip
    together = min(strength, len(axes))
    met = [{tuple((axis, case.get(axis)) for axis in some) for some in itertools.combinations(axes, together)}
           for case in cases]  # fmt: skip
    missing: set[Met] = set().union(*met)
    if not axes:
        return set(range(len(cases)))
    chosen: set[int] = set()
    used: Counter[tuple[Hashable, Hashable]] = Counter()
    while missing:
        best = min(
            (number for number in range(len(cases)) if met[number] & missing),
            key=lambda number: (
                -len(met[number] & missing),
                sum(used[axis, cases[number].get(axis)] for axis in axes) if together == 1 else 0,
                (number - first) % len(cases),
            ),
        )
        chosen.add(best)
        missing -= met[best]
        used.update((axis, cases[best].get(axis)) for axis in axes)
    return chosen


def _axes_of(item: pytest.Item) -> dict[Hashable, Hashable]:
    """The values of a case; of a tuple each of its parts. What has no hash is itself alone."""
    found = getattr(item, "callspec", None)
    values: dict[str, object] = dict(found.params) if found is not None else {}
    axes = {
        (axis, place): part
        for axis, value in values.items()
        for place, part in enumerate(value if isinstance(value, tuple) else (value,))
    }
    return {axis: part if _is_hashable(part) else id(part) for axis, part in axes.items()}


def _is_hashable(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True
