"""xxHash32 of record keys: vectors that Hudi's own class printed, and any text against the
algorithm byte by byte."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_table.codec.hashes import xxhash
from hudi_table.codec.hashes.key_values import joined_values
from hudi_table.codec.hashes.xxhash import ring_hashes, xxh32
from tests.support.scale import scaled

# Printed by the classes in the jar of Apache Hudi 0.15.0.
PLACES = {
    "": 46947589,
    "a": 1426945110,
    "k000": 683933002,
    "k001": 2015037072,
    "uuid-1234": 388418130,
    "\u00e9\u4e2d": 820831835,
    "\U0001f600": 1127825596,
    "polygenelubricants": 1996923932,
    "12": 1412794799,
    "1": 921487538,
}
_MASK = 0xFFFFFFFF
_PRIMES = (2654435761, 2246822519, 3266489917, 668265263, 374761393)


def test_places_on_the_ring_are_those_of_hudi() -> None:
    assert ring_hashes(pa.array(PLACES)).tolist() == list(PLACES.values())


def test_a_seed_gives_other_hashes() -> None:
    assert xxh32(pa.array(["abc"])).tolist() == [852579327]
    assert xxh32(pa.array(["abc"]), 0xDABADABA).tolist() == [817578349]


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())]
)
def test_every_layout_of_text_hashes_alike(kind: pa.DataType) -> None:
    values = pa.array([*PLACES, None], pa.string()).cast(kind)
    assert ring_hashes(values).tolist() == [*PLACES.values(), PLACES[""]]
    assert ring_hashes(values.slice(3, 4)).tolist() == list(PLACES.values())[3:7]
    assert ring_hashes(pa.chunked_array([values, values])).tolist()[-1] == PLACES[""]


@settings(max_examples=scaled(150), deadline=None)
@given(st.lists(st.text(max_size=90), max_size=20), st.integers(0, _MASK))
def test_any_texts_hash_as_they_do_byte_by_byte(texts: list[str], seed: int) -> None:
    assert xxh32(pa.array(texts, pa.string()), seed).tolist() == [_one(text.encode(), seed) for text in texts]


@pytest.mark.parametrize("long_ones", [1, 9])
def test_a_few_long_texts_among_short_ones_hash_as_they_do_byte_by_byte(long_ones: int) -> None:
    texts = [f"{n}" * (16 + n % 40) for n in range(60)] + [f"{n}" * (5_000 + 700 * n) for n in range(long_ones)]
    assert xxh32(pa.array(texts[::-1])).tolist() == [_one(text.encode(), 0) for text in texts[::-1]]


def test_one_long_text_costs_by_its_own_bytes_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """No step of the long one touches the others."""
    words: list[int] = []
    real = xxhash._words

    def counted(data: Any, at: Any) -> Any:
        words.append(len(at))
        return real(data, at)

    monkeypatch.setattr(xxhash, "_words", counted)
    texts = ["sixteen letters." for _ in range(1_000)]
    xxh32(pa.array([*texts, "x" * 400_000]))
    assert sum(words) < 20_000


# Each key with the text that Apache Hudi 0.15.0 hashed: told by the file group in which it put the row, of 64.
@pytest.mark.parametrize(
    ("key", "fields", "text"),
    [
        ("a:1,b:2", ("a", "b"), "12"),
        ("a:__null__,b:n", ("a", "b"), "nulln"),
        ("a:__empty__,b:e", ("a", "b"), "e"),
        ("a:p,q,b:r", ("a", "b"), "pqr"),
        ("a:x:y,b:w", ("b",), "w"),
        ("a:p,q,b:r", ("b",), "qr"),
        ("a:z,b:__null__", ("b",), "null"),
        ("a:b", ("id",), ""),
        ("id:k", ("id",), "k"),
        ("2024-01-01 10:00:00", ("id",), ""),
        ("a,b", ("id",), "a,b"),
    ],
)
def test_hash_fields_are_taken_out_of_a_key_as_0_15_does(key: str, fields: tuple[str, ...], text: str) -> None:
    assert joined_values(pa.array([key, "plain", key]), fields, "0.15").to_pylist() == [text, "plain", text]


@pytest.mark.parametrize(
    ("key", "fields", "text"),
    [
        ("a:1,b:2", ("a", "b"), "12"),
        ("a:p,q,b:r", ("a", "b"), "p,qr"),
        ("a:p,q,b:r", ("b",), "r"),
        ("id:__null__,name:z", ("id", "name"), "nullz"),
        ("id:__empty__,name:z", ("id", "name"), "z"),
        ("x,id:4,name:5", ("id", "name"), "5"),
        ("q:1,w:2", ("id",), "q:1,w:2"),
        ("a:b", ("id",), "a:b"),
        ("id:k", ("id",), "id:k"),
    ],
)
def test_hash_fields_are_taken_out_of_a_key_as_1_x_does(key: str, fields: tuple[str, ...], text: str) -> None:
    assert joined_values(pa.array([key, "plain", key]), fields, "1.x").to_pylist() == [text, "plain", text]


def _one(data: bytes, seed: int) -> int:
    at = 0
    if len(data) >= 16:
        lanes = [
            (seed + _PRIMES[0] + _PRIMES[1]) & _MASK,
            (seed + _PRIMES[1]) & _MASK,
            seed,
            (seed - _PRIMES[0]) & _MASK,
        ]
        while at <= len(data) - 16:
            for lane in range(4):
                word = int.from_bytes(data[at : at + 4], "little")
                lanes[lane] = _turned((lanes[lane] + word * _PRIMES[1]) & _MASK, 13) * _PRIMES[0] & _MASK
                at += 4
        total = sum(_turned(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True))
    else:
        total = seed + _PRIMES[4]
    total = (total + len(data)) & _MASK
    while at <= len(data) - 4:
        word = int.from_bytes(data[at : at + 4], "little")
        total = _turned((total + word * _PRIMES[2]) & _MASK, 17) * _PRIMES[3] & _MASK
        at += 4
    for byte in data[at:]:
        total = _turned((total + byte * _PRIMES[4]) & _MASK, 11) * _PRIMES[0] & _MASK
    total = (total ^ total >> 15) * _PRIMES[1] & _MASK
    total = (total ^ total >> 13) * _PRIMES[2] & _MASK
    return total ^ total >> 16


def _turned(value: int, bits: int) -> int:
    return (value << bits | value >> (32 - bits)) & _MASK
