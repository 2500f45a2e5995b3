"""What is decoded while more is read gives the rows, the refusals and the errors that all values
together give, however they come."""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hudi_table.errors import HudiError
from hudi_table.sources.formats import values as parts
from hudi_table.sources.formats.decoder import UndecodableError
from hudi_table.sources.formats.json import JsonDecoder
from hudi_table.sources.formats.values import Early, Fault, Values

WANTED = pa.schema(
    [("id", pa.string()), ("n", pa.int64()), ("day", pa.date32()), ("at", pa.struct([("x", pa.int64())]))]
)
VALUES: st.SearchStrategy[object] = st.one_of(
    st.integers(0, 9).map(lambda n: {"id": f"k{n}", "n": n, "day": "2026-01-01", "at": {"x": n}}),
    st.sampled_from(
        [
            None,
            {},
            {"id": "a", "more": 1},
            {"id": "a", "more": 1.5},
            {"id": "a", "more": "text"},
            {"at": {"x": 1, "y": 2}},
            {"at": {"x": 1, "y": "text"}},
            {"n": "no number"},
            {"day": "no day"},
            [],
        ]
    ),
)
Outcome = tuple[object, list[int], list[Fault]] | str


class Counted(JsonDecoder):
    """Counts the messages that it is given."""

    def __init__(self) -> None:
        self.messages = 0

    def decode(self, messages: Sequence[bytes], known: pa.Schema | None) -> pa.Table:
        self.messages += len(messages)
        return super().decode(messages, known)


def read(values: list[bytes | None], ratio: float | None, begun: Early | None, wanted: pa.Schema = WANTED) -> Outcome:
    """What comes of the values of one commit."""
    decoder = begun.decoder if begun is not None else JsonDecoder()
    kept = np.array([place for place, value in enumerate(values) if value is not None], np.int64)
    faults: list[Fault] = []
    try:
        rows, places = Values(decoder, "json", str, ratio).rows(values, kept, wanted, faults, begun)
    except HudiError as error:
        return f"{type(error).__name__}: {error}"
    return (rows.schema, rows.to_pylist()), places.tolist(), faults


def as_they_come(values: list[bytes | None], cuts: list[int], pool: ThreadPoolExecutor) -> Early:
    begun = Early(Counted(), WANTED, pool.submit)
    for cut in sorted({min(cut, len(values)) for cut in cuts}):
        begun.more(values[:cut], sum(len(value or b"") for value in values[:cut]))
    return begun


@given(st.lists(VALUES, max_size=30), st.lists(st.integers(0, 30), max_size=6), st.sampled_from([None, 0.0, 0.5]))
@example([{"id": "k0", "n": 0, "day": "2026-01-01", "at": {"x": 0}}, {"n": "no number"}], [1], None)
def test_values_that_come_bit_by_bit_are_the_rows_of_all_together(
    made: list[object], cuts: list[int], ratio: float | None
) -> None:
    values = [None if value is None else json.dumps(value).encode() for value in made]
    with pytest.MonkeyPatch.context() as patched, ThreadPoolExecutor(1) as pool:
        patched.setattr(parts, "EARLY_BYTES", 40)
        assert read(values, ratio, as_they_come(values, cuts, pool)) == read(values, ratio, None)


def values_of(count: int) -> list[bytes | None]:
    return [json.dumps({"id": f"k{n}", "n": n, "day": "2026-01-01", "at": {"x": n}}).encode() for n in range(count)]


def test_no_value_is_decoded_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "EARLY_BYTES", 1)
    values = values_of(100)
    with ThreadPoolExecutor(1) as pool:
        begun = as_they_come(values, [30, 60, 90], pool)
        assert read(values, None, begun) == read(values, None, None)
        assert isinstance(begun.decoder, Counted)
        assert begun.decoder.messages == 100


def test_what_was_decoded_into_other_columns_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "EARLY_BYTES", 1)
    values, wanted = values_of(10), WANTED.append(pa.field("more", pa.string()))
    with ThreadPoolExecutor(1) as pool:
        assert read(values, None, as_they_come(values, [5], pool), wanted) == read(values, None, None, wanted)


def test_little_is_left_for_all_together() -> None:
    values = [None]
    with ThreadPoolExecutor(1) as pool:
        begun = Early(JsonDecoder(), WANTED, pool.submit)
        begun.more(values, parts.EARLY_BYTES - 1)
        assert begun.made(WANTED) == []


def test_a_fault_of_a_part_is_told_by_who_decodes_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "EARLY_BYTES", 1)
    values = [*values_of(5), b"bad", *values_of(5)]
    with ThreadPoolExecutor(1) as pool:
        begun = as_they_come(values, [3, 8, 11], pool)
        assert [stop for stop, _ in begun.made(WANTED)] == [3]
        with pytest.raises(UndecodableError):
            begun.decoder.decode([b"bad"], WANTED)
