"""Java's hashes and Hudi's buckets.

Aspects: every vector that Hudi's classes printed; a scalar oracle written from the definition
(hypothesis); slices, chunks, nulls, dictionaries, layouts; both colon rules. Not here: which file a
bucket maps to (names, index).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from hudi_table.codec.hashes.javahash import (
    bucket_ids,
    bucket_of,
    file_group_index,
    file_id_hash,
    java_string_hash,
    name_id,
)
from hudi_table.errors import InvalidOptionError
from tests.support.scale import scaled
from tests.support.vectors import hash_vectors

VECTORS = hash_vectors()
ALL_HASHES = 2**31 - 1  # as many buckets as there are masked hashes, but one
TEXT = st.text(st.characters(codec="utf-8"), max_size=20)
KEY_TEXT = st.text(st.sampled_from("ab1:,é😀_"), max_size=12)


def scalar_hash(text: str) -> int:
    hashed = 0
    for unit in memoryview(text.encode("utf-16-le")).cast("H"):
        hashed = (31 * hashed + unit) & 0xFFFFFFFF
    return hashed - (1 << 32) if hashed >> 31 else hashed


def scalar_list_hash(values: Sequence[str | None]) -> int:
    hashed = 1
    for value in values:
        hashed = (31 * hashed + (0 if value is None else scalar_hash(value))) & 0xFFFFFFFF
    return hashed


def one_bucket(key: str, buckets: int, fields: Sequence[str], rule: str = "0.15") -> int:
    return int(bucket_ids(pa.array([key]), buckets, record_key_fields=fields, colon_rule=rule)[0])


@pytest.mark.parametrize("vector", VECTORS["bucket_simple"], ids=lambda v: ascii(v["key"]))
def test_a_single_key_lies_in_the_bucket_that_hudi_gives_it(vector: dict) -> None:
    keys = pa.array([vector["key"]])
    for buckets, expected in vector["buckets"].items():
        assert bucket_of([keys], int(buckets)).tolist() == [expected]
        for rule in ("0.15", "1.x"):
            assert one_bucket(vector["key"], int(buckets), ["id"], rule) == expected
    assert bucket_of([keys], ALL_HASHES).tolist() == [vector["list_hash"] & ALL_HASHES]


@pytest.mark.parametrize("rule", ["0.15", "1.x"])
@pytest.mark.parametrize("vector", VECTORS["bucket_composite"], ids=lambda v: f"{v['key']}-{v['hash_fields']}")
def test_a_composite_key_lies_in_the_bucket_that_each_generation_of_hudi_gives_it(vector: dict, rule: str) -> None:
    if rule not in vector:
        assert rule == "1.x", "every key was run through 0.15"
        return
    for buckets, expected in vector[rule]["buckets"].items():
        assert one_bucket(vector["key"], int(buckets), vector["hash_fields"], rule) == expected
    if "list_hash" in vector[rule]:
        whole = one_bucket(vector["key"], ALL_HASHES, vector["hash_fields"], rule)
        assert whole == vector[rule]["list_hash"] & ALL_HASHES


def test_the_two_rules_differ_for_the_keys_that_the_format_notes_name() -> None:
    differing = {
        v["key"]
        for v in VECTORS["bucket_composite"]
        if "1.x" in v and v["0.15"]["buckets"]["256"] != v["1.x"]["buckets"]["256"]
    }
    assert differing == {"a:b", "2024-01-01 10:00:00", "id:k000", "id:a,b,name:z"}


@pytest.mark.parametrize("vector", VECTORS["metadata_file_group"], ids=lambda v: ascii(v["key"]))
def test_a_metadata_key_lies_in_the_file_group_that_hudi_gives_it(vector: dict) -> None:
    for groups, expected in vector["groups"].items():
        assert file_group_index(pa.array([vector["key"]]), int(groups)).tolist() == [expected]


@pytest.mark.parametrize("vector", VECTORS["metadata_ids"], ids=lambda v: f"{v['kind']}-{v['name']}")
def test_ids_in_metadata_keys_are_those_of_hudi(vector: dict) -> None:
    make = file_id_hash if vector["kind"] == "file" else name_id
    assert make(vector["name"]) == vector["base64"]


@given(st.lists(st.none() | TEXT, max_size=30), st.integers(0, 5))
def test_the_hash_is_java_s_for_any_text_and_any_slice(values: list[str | None], start: int) -> None:
    expected = [0 if value is None else scalar_hash(value) for value in values]
    array = pa.array(values, pa.string())
    assert java_string_hash(array).tolist() == expected
    assert java_string_hash(array.slice(start)).tolist() == expected[start:]
    assert java_string_hash(array.dictionary_encode()).tolist() == expected
    for layout in (pa.large_string(), pa.string_view()):
        assert java_string_hash(array.cast(layout).slice(start)).tolist() == expected[start:]
    chunked = pa.chunked_array([array, array.slice(start)], type=pa.string())
    assert java_string_hash(chunked).tolist() == expected + expected[start:]


def test_texts_longer_than_a_block_hash_like_short_ones() -> None:
    values = ["x" * 200_000, "", "é" * 70_000 + "😀", *(str(i) for i in range(50_000)), "y" * 65_536]
    assert java_string_hash(pa.array(values)).tolist() == [scalar_hash(value) for value in values]


def test_bytes_under_a_null_do_not_count() -> None:
    full = pa.array(["abc", "def"])
    masked = pa.Array.from_buffers(pa.string(), 2, [pa.py_buffer(b"\x02"), *full.buffers()[1:]])
    assert masked.to_pylist() == [None, "def"]
    assert java_string_hash(masked).tolist() == [0, scalar_hash("def")]


def test_hashing_no_rows_gives_no_hashes() -> None:
    assert java_string_hash(pa.array([], pa.string())).dtype == np.int32
    assert java_string_hash(pa.chunked_array([], pa.string())).tolist() == []
    assert bucket_ids(pa.chunked_array([], pa.string()), 4, record_key_fields=["a"]).tolist() == []


@given(st.lists(st.tuples(st.none() | TEXT, st.none() | TEXT), min_size=1, max_size=20), st.integers(1, 300))
def test_columns_of_values_give_the_hash_of_their_list(rows: list[tuple[str | None, str | None]], n: int) -> None:
    columns = [pa.array([row[i] for row in rows], pa.string()) for i in range(2)]
    assert bucket_of(columns, n).tolist() == [(scalar_list_hash(row) & ALL_HASHES) % n for row in rows]


def values_015(key: str, fields: Sequence[str]) -> list[str | None]:
    """What 0.15 takes out of a key: split at commas (Java drops empty pieces at the end), then at
    the first colon."""
    if ":" not in key:
        return [key]
    pieces = [piece.split(":", 1) for piece in key.rstrip(",").split(",")]
    return [_placeholder(p[-1]) if len(p) == 2 else p[0] for p in pieces if len(p) == 1 or p[0] in fields]


def values_1x(key: str, fields: Sequence[str]) -> list[str | None]:
    """What 1.x takes out of a key: a pair ends at the last comma before the next pair's colon."""
    if ":" not in key or "," not in key:
        return [key]
    values: list[str | None] = []
    rest = key
    while rest:
        name, _, rest = rest.partition(":")
        value, rest = _until_next_pair(rest)
        if name in fields:
            values.append(_placeholder(value))
    return values or [key]


def _until_next_pair(rest: str) -> tuple[str, str]:
    colon = rest.find(":")
    while colon >= 0:
        comma = rest.rfind(",", 0, colon)
        if comma >= 0:
            return rest[:comma], rest[comma + 1 :]
        colon = rest.find(":", colon + 1)
    return rest, ""


def _placeholder(value: str) -> str | None:
    return {"__null__": None, "__empty__": ""}.get(value, value)


@settings(max_examples=scaled(300))
@given(st.lists(KEY_TEXT, min_size=1, max_size=10), st.sampled_from([["a"], ["b"], ["a", "b"], ["a", "1"]]))
def test_any_key_with_colons_and_commas_is_taken_apart_by_each_rule(keys: list[str], fields: list[str]) -> None:
    for rule, oracle in (("0.15", values_015), ("1.x", values_1x)):
        got = bucket_ids(pa.array(keys), ALL_HASHES, record_key_fields=fields, colon_rule=rule)
        assert got.tolist() == [scalar_list_hash(oracle(key, fields)) % 2**31 % ALL_HASHES for key in keys], rule


@given(st.lists(st.tuples(TEXT.filter(bool), TEXT.filter(bool)), min_size=1, max_size=10))
def test_keys_and_columns_agree_when_values_hold_no_separators_and_are_no_placeholders(
    rows: list[tuple[str, str]],
) -> None:
    assume(all(_placeholder(value) == value for row in rows for value in row))
    rows = [(a.replace(":", "").replace(",", "") or "x", b.replace(":", "").replace(",", "") or "y") for a, b in rows]
    keys = pa.array([f"a:{a},b:{b}" for a, b in rows])
    columns = [pa.array([a for a, _ in rows]), pa.array([b for _, b in rows])]
    for rule in ("0.15", "1.x"):
        got = bucket_ids(keys, 64, record_key_fields=["a", "b"], colon_rule=rule)
        assert got.tolist() == bucket_of(columns, 64).tolist()
        subset = bucket_ids(keys, 64, record_key_fields=["a", "b"], hash_fields=["b"], colon_rule=rule)
        assert subset.tolist() == bucket_of(columns[1:], 64).tolist()


def test_a_placeholder_counts_as_null_or_empty_only_if_it_is_the_whole_value() -> None:
    null, empty = "a:__null__,b:x", "a:__empty__,b:x"
    for rule in ("0.15", "1.x"):
        assert one_bucket(null, 256, ["a", "b"], rule) == one_bucket(empty, 256, ["a", "b"], rule)
    longer = "a:__null__,z,b:x"
    assert one_bucket(longer, ALL_HASHES, ["a"], "1.x") == scalar_list_hash(["__null__,z"]) & ALL_HASHES


@pytest.mark.parametrize("buckets", [0, -4])
def test_a_number_of_buckets_below_one_is_refused(buckets: int) -> None:
    with pytest.raises(InvalidOptionError, match=str(buckets)):
        bucket_of([pa.array(["a"])], buckets)


def test_an_unknown_colon_rule_is_refused_by_name() -> None:
    with pytest.raises(InvalidOptionError, match=r"'2\.0'.*0\.15, 1\.x"):
        bucket_ids(pa.array(["a"]), 4, record_key_fields=["id"], colon_rule="2.0")


def test_a_bucket_of_no_fields_is_refused() -> None:
    with pytest.raises(InvalidOptionError, match="at least one"):
        bucket_of([], 4)
