"""Sorted runs of a key state agree with a dictionary of sets, however they are merged; marks are of
the key and of nothing else.

Matrix: random changes of a few groups, with runs in memory and in files, merged in one piece and in
many. Omitted: what a table makes of it (`test_index.py`).
"""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest

from hudi_table.index.keystate import runs
from hudi_table.index.keystate.marks import Marks, new_secret
from hudi_table.index.keystate.state import KeyState, Learnt, Place, numbered
from tests.support.scale import scaled

KEYS = [f"key-{number}" for number in range(60)]
SECRET = new_secret()


def marks(*keys: str) -> Marks:
    return Marks.of(pa.array(keys, pa.string()), SECRET)


@pytest.mark.parametrize("held", [0, 8, 1 << 16], ids=["files", "both", "memory"])
@pytest.mark.parametrize("piece", [1, 7, 1 << 20], ids=lambda size: f"pieces of {size}")
def test_random_changes_agree_with_a_dictionary(
    held: int, piece: int, monkeypatch: pytest.MonkeyPatch, figure: Callable[[int, str], None]
) -> None:
    monkeypatch.setattr(runs, "HELD_ENTRIES", held)
    monkeypatch.setattr(runs, "PIECE_ENTRIES", piece)
    chance, state = random.Random(f"{held}-{piece}"), KeyState()
    model: dict[Place, tuple[tuple[str, ...], set[str]]] = {}
    steps = scaled(600, quick=30)
    for step in range(steps):
        changes = []
        for group in chance.sample("abcde", chance.randrange(1, 4)):
            place, after = ("x", group), (f"file {step}",)
            before, keys = model.get(place, ((), set()))
            added, removed = (set(chance.sample(KEYS, chance.randrange(12))) for _ in range(2))
            whole = chance.random() < 0.2
            model[place] = after, set(added) if whole else keys - removed | added
            removed_marks = None if whole else marks(*removed)
            changes.append(Learnt(place, before, after, marks(*added), removed_marks))
        state.learn(changes)
        if chance.random() < 0.1:
            model.pop(("x", chance.choice("abcde")), None)
            state.keep(model.keys())
        assert held_keys(state, model) == {place: keys for place, (_, keys) in model.items()}, f"step {step}"
        assert len(state.runs) < 12
    figure(steps, "random changes of a key state")


def held_keys(state: KeyState, model: dict[Place, tuple[tuple[str, ...], set[str]]]) -> dict[Place, set[str]]:
    """What the state tells of each group."""
    places = list(model)
    code_of = numbered(state, [(place, model[place][0]) for place in places])
    found = state.find(marks(*KEYS))
    pairs = list(zip(found.rows.tolist(), found.numbers.tolist(), strict=True))
    assert len(set(pairs)) == len(pairs)
    told: dict[Place, set[str]] = {place: set() for place in places}
    for row, number in pairs:
        told[places[code_of[number]]].add(KEYS[row])
    return told


def test_a_change_of_files_that_are_not_known_is_left_out() -> None:
    state, place = KeyState(), ("x", "group")
    state.learn([Learnt(place, (), ("one",), marks("a"), None)])
    state.learn([Learnt(place, ("other",), ("two",), marks("b"), None)])
    assert state.known[place].files == ("one",)
    assert len(state.find(marks("b")).rows) == 0
    assert len(state.find(marks("a")).rows) == 1


def test_many_small_changes_leave_few_runs_and_no_entry_of_what_is_gone() -> None:
    state, count = KeyState(), 300
    for number in range(count):
        state.learn([Learnt(("x", "g"), (f"f{number - 1}",) if number else (), (f"f{number}",), marks("a"), None)])
        state.learn([Learnt(("x", f"g{number}"), (), ("f",), marks(*KEYS), None)])
        state.keep([("x", "g")])
    assert sum(map(len, state.runs)) < 10 * len(KEYS)
    assert len(state.find(marks("a", *KEYS)).rows) == 1


def test_marks_tell_keys_of_all_lengths_apart_wherever_they_lie_in_an_array() -> None:
    keys = [text * times for text in ("a", "b", "é", "\x00", "中") for times in (*range(1, 40), 1000, 70_000)] + [
        "",
        "ab",
    ]
    assert len(set(keys)) == len(keys)
    whole = Marks.of(pa.array(keys), SECRET)
    assert len(np.unique(whole.high)) == len(np.unique(whole.low)) == len(keys)
    pieces = pa.chunked_array([keys[:50], [], keys[50:]])
    large = pa.array(keys, pa.large_string())
    for other in (Marks.of(pieces, SECRET), Marks.of(large, SECRET), Marks.joined([marks(key) for key in keys])):
        assert other.high.tolist() == whole.high.tolist()
        assert other.low.tolist() == whole.low.tolist()
    shifted = Marks.of(pa.array(["x", *keys]).slice(1), SECRET)
    assert shifted.high.tolist() == whole.high.tolist()
