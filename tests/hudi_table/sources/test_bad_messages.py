"""Which of many messages are bad: found by halves, or by what came before them."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pyarrow as pa
import pytest

from hudi_table.model.job.positions import Positions, TopicPositions
from hudi_table.sources.formats.decoder import UndecodableError, without_bad
from hudi_table.sources.formats.json import JsonDecoder
from hudi_table.sources.formats.values import errors_most

KNOWN = pa.schema([("n", pa.int64())])


def decoded(messages: Sequence[bytes], most: int = 1000) -> tuple[list[int], list[int]]:
    good, bad = without_bad(messages, lambda some: JsonDecoder().decode(some, KNOWN), most)
    return (good["n"].to_pylist() if good is not None else []), [place for place, _ in bad]


@pytest.mark.parametrize("seed", range(20))
def test_just_the_bad_ones_are_left_out_wherever_they_stand(seed: int) -> None:
    draw = random.Random(seed)
    wanted = sorted(draw.sample(range(200), draw.choice([1, 2, 7, 50, 200])))
    messages = [draw.choice([b"{", b"[]", b"", b'{"n":"x"}']) if n in wanted else b'{"n":%d}' % n for n in range(200)]
    good, bad = decoded(messages)
    assert (good, bad) == ([n for n in range(200) if n not in wanted], wanted)


def test_of_two_that_contradict_each_other_the_later_one_is_bad() -> None:
    messages = [b'{"n":1}', b'{"n":{"a":1}}', b'{"n":2}', b'{"n":[1]}']
    good, bad = without_bad(messages, lambda some: JsonDecoder().decode(some, None), 4)
    assert good is not None
    assert (good["n"].to_pylist(), [place for place, _ in bad]) == ([1, 2], [1, 3])


def test_too_many_are_an_error_that_names_one() -> None:
    assert decoded([b"{"] * 3 + [b'{"n":1}'], most=3) == ([1], [0, 1, 2])
    with pytest.raises(UndecodableError) as caught:
        decoded([b"{"] * 4 + [b'{"n":1}'], most=3)
    assert caught.value.place == 3


def test_how_many_may_be_refused() -> None:
    assert [errors_most(count, 0.05) for count in (0, 1, 200, 1000)] == [10, 10, 10, 50]


def test_positions_count_what_was_refused_and_say_so_only_then() -> None:
    none = Positions("c", {"t": TopicPositions("i", {0: 1})})
    some = Positions("c", {"t": TopicPositions("i", {0: 1})}, refused=3)
    assert "refused" not in none.to_text()
    assert [Positions.from_text(each.to_text()) for each in (none, some)] == [none, some]
    assert none.batch == some.batch
