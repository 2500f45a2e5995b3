"""Bloom filters: the bytes of Hudi's classes, growth and overflow, lookups, refusals.

Aspects: every vector; filters of golden files rebuilt bit for bit from their keys; never a false
negative (hypothesis). Not here: when a file carries a filter (Parquet footer, write options).
"""

from __future__ import annotations

import base64
import struct
import zlib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_table.codec.bloom.filters import DYNAMIC, SIMPLE, BloomFilter, BloomFilterSpec
from hudi_table.codec.bloom.probe import PreparedKeys
from hudi_table.codec.parquet import read_batches, read_footer
from hudi_table.errors import CorruptTableError, InvalidDataError, InvalidOptionError, UnsupportedTableError
from tests.support.golden import unpack
from tests.support.scale import scaled
from tests.support.vectors import hash_vectors

VECTORS = hash_vectors()
SPECS = st.builds(
    BloomFilterSpec,
    type=st.sampled_from([SIMPLE, DYNAMIC]),
    num_entries=st.integers(1, 40),
    fpp=st.sampled_from([0.5, 0.1, 1e-3, 1e-9]),
    max_entries=st.integers(1, 100),
)
KEYS = st.lists(st.none() | st.text(st.characters(codec="utf-8"), min_size=1, max_size=15), max_size=60)


def numbered(count: int, stem: str = "key", digits: int = 3) -> pa.Array:
    return pa.array([f"{stem}{i:0{digits}d}" for i in range(count)], pa.string())


def spec_of(vector: dict) -> BloomFilterSpec:
    return BloomFilterSpec(vector["type"], vector["num_entries"], vector["fpp"], vector["max_entries"] or 1)


@pytest.mark.parametrize("vector", VECTORS["bloom_series"], ids=lambda v: f"{v['type']}-{v['num_entries']}-{v['keys']}")
def test_a_series_of_keys_gives_the_bytes_that_hudi_writes(vector: dict) -> None:
    keys = numbered(vector["keys"])
    assert BloomFilter.from_keys(keys, spec_of(vector)).to_base64() == vector["text"]


@pytest.mark.parametrize("step", [1, 7])
@pytest.mark.parametrize("vector", VECTORS["bloom_series"], ids=lambda v: f"{v['type']}-{v['num_entries']}-{v['keys']}")
def test_adding_in_steps_gives_the_same_bytes_as_adding_at_once(vector: dict, step: int) -> None:
    keys = numbered(vector["keys"])
    filter_ = BloomFilter.from_spec(spec_of(vector))
    for start in range(0, len(keys), step):
        filter_.add(keys.slice(start, step))
    assert filter_.to_base64() == vector["text"]


@pytest.mark.parametrize("vector", VECTORS["bloom_single_key"], ids=lambda v: ascii(v["key"]))
def test_keys_of_every_tail_length_and_alphabet_give_the_bytes_that_hudi_writes(vector: dict) -> None:
    assert (
        BloomFilter.from_keys(pa.array([vector["key"]]), BloomFilterSpec(SIMPLE, 100, 0.01)).to_base64()
        == vector["text"]
    )


def test_the_default_filter_has_the_size_and_bits_that_hudi_writes() -> None:
    vector = VECTORS["bloom_default"]
    filter_ = BloomFilter.from_keys(pa.array([vector["key"]]))
    text = filter_.to_base64()
    assert (filter_.bit_count, filter_.hash_count) == (vector["bits"], vector["hashes"])
    assert (len(base64.b64decode(text)), len(text)) == (vector["bytes"], vector["characters"])
    assert zlib.crc32(text.encode()) == vector["crc32"]


def test_false_positives_are_exactly_those_of_hudi() -> None:
    vector = VECTORS["bloom_false_positives"]
    filter_ = BloomFilter.from_keys(numbered(vector["keys"]), BloomFilterSpec(SIMPLE, *vector["spec"]))
    probes = numbered(vector["probes"], "other", 0)
    assert np.flatnonzero(filter_.might_contain(probes)).tolist() == vector["positive"]


@pytest.mark.parametrize("name", ["wide", "nopart", "bktcow", "evo", "clust", "tskg"])
def test_the_filter_in_a_golden_file_is_rebuilt_bit_for_bit_from_its_keys(name: str, tmp_path: Path) -> None:
    table = unpack(name, tmp_path)
    files = [
        path for path in sorted(table.base.rglob("*.parquet")) if ".hoodie" not in path.relative_to(table.base).parts
    ]
    assert files
    for path in files:
        footer = read_footer(str(path))
        batches = list(read_batches(str(path), ["_hoodie_record_key"]))
        keys = pa.chunked_array([batch.column(0) for batch in batches], type=pa.string())
        parsed = footer.bloom()
        assert parsed is not None
        assert parsed.might_contain(keys).all()
        assert parsed.to_base64() == footer.bloom_text
        assert BloomFilter.from_keys(keys).to_base64() == footer.bloom_text


@settings(max_examples=scaled(100))
@given(SPECS, KEYS, st.integers(1, 60))
def test_an_added_key_is_always_found_again_also_after_parsing(spec: BloomFilterSpec, keys: list, step: int) -> None:
    filter_ = BloomFilter.from_spec(spec)
    array = pa.array(keys, pa.string())
    for start in range(0, len(array), step):
        filter_.add(array.slice(start, step))
    parsed = BloomFilter.parse(filter_.to_base64(), spec.type)
    expected = [key is not None for key in keys]
    found, found_parsed = filter_.might_contain(array), parsed.might_contain(array)
    assert found[expected].all()
    assert found_parsed.tolist() == found.tolist()
    assert parsed.to_bytes() == filter_.to_bytes()


@given(SPECS, KEYS, KEYS, st.data())
def test_prepared_keys_find_what_the_keys_themselves_find_also_between_two_places(
    spec: BloomFilterSpec, added: list, asked: list, data: st.DataObject
) -> None:
    filter_ = BloomFilter.from_keys(pa.array(added, pa.string()), spec)
    keys = pa.array([*asked, *added, ""], pa.string())
    start = data.draw(st.integers(0, len(keys)))
    stop = data.draw(st.integers(start, len(keys)))
    prepared = PreparedKeys.of(keys)
    expected = filter_.might_contain(keys)
    assert filter_.might_contain_prepared(prepared).tolist() == expected.tolist()
    assert filter_.might_contain_prepared(prepared, start, stop).tolist() == expected[start:stop].tolist()


def test_blocks_of_keys_of_many_lengths_side_by_side_or_not_find_what_single_keys_find() -> None:
    """More keys of one length than a block holds, in runs and scattered among others, nulls between
    them."""
    numbers = np.arange(60_000)
    keys = pa.array([None if n % 11 == 5 else f"{n:0{5 + (n // 30_000) * (n % 3)}d}" for n in numbers], pa.string())
    filter_ = BloomFilter.from_keys(keys.filter(pa.array(numbers % 2 == 0)), BloomFilterSpec(SIMPLE, 30_000, 1e-6))
    found = filter_.might_contain(keys)
    assert found[(numbers % 2 == 0) & (numbers % 11 != 5)].all()
    assert found.sum() - len(keys.filter(pa.array(numbers % 2 == 0)).drop_null()) < 20
    some = np.flatnonzero(numbers % 997 == 0)
    assert [bool(filter_.might_contain(keys.slice(n, 1))[0]) for n in some] == found[some].tolist()
    assert (
        filter_.might_contain_prepared(PreparedKeys.of(keys), 20_000, 50_000).tolist() == found[20_000:50_000].tolist()
    )


@pytest.mark.parametrize("length", [1, 4, 7, 1_001])
def test_a_key_sets_the_same_bits_alone_and_among_many_of_its_length(length: int) -> None:
    keys = pa.array([f"{n:03d}" * length for n in range(12)])
    spec = BloomFilterSpec(SIMPLE, 50, 1e-6)
    alone = BloomFilter.from_spec(spec)
    for n in range(12):
        alone.add(keys.slice(n, 1))
    assert alone.to_base64() == BloomFilter.from_keys(keys, spec).to_base64()


def test_fill_and_error_of_a_filter_are_those_of_its_bits() -> None:
    filter_ = BloomFilter.from_keys(numbered(11), BloomFilterSpec(DYNAMIC, 10, 0.1, 30))
    bits = [np.unpackbits(np.frombuffer(filter_.to_bytes()[at : at + 6], np.uint8)).sum() for at in (38, 57)]
    assert filter_.fill_ratios() == tuple(count / 48 for count in bits)
    assert filter_.false_positive_rate() == pytest.approx(1 - (1 - (bits[0] / 48) ** 4) * (1 - (bits[1] / 48) ** 4))
    assert BloomFilter.from_spec(BloomFilterSpec()).false_positive_rate() == 0


@given(SPECS, KEYS)
def test_a_dynamic_filter_grows_by_whole_rows_up_to_its_bound(spec: BloomFilterSpec, keys: list) -> None:
    filter_ = BloomFilter.from_keys(pa.array(keys, pa.string()), spec)
    added = sum(key is not None for key in keys)
    rows_max = 1 if spec.type == SIMPLE else max(1, -(-spec.max_entries // spec.num_entries))
    assert filter_.row_count == min(rows_max, max(1, -(-added // spec.num_entries)))


def test_nulls_and_empty_keys_are_never_contained() -> None:
    full = BloomFilter.from_keys(numbered(50), BloomFilterSpec(SIMPLE, 1, 0.5))
    assert full.might_contain(pa.array([None, "", "key001"])).tolist() == [False, False, True]
    assert full.might_contain(pa.chunked_array([], pa.string())).tolist() == []


def test_an_empty_key_is_refused_and_nothing_is_added() -> None:
    filter_ = BloomFilter.from_spec(BloomFilterSpec(SIMPLE, 10, 0.1))
    before = filter_.to_bytes()
    with pytest.raises(InvalidDataError, match="empty record key"):
        filter_.add(pa.chunked_array([["a", "b"], ["c", ""]]))
    assert filter_.to_bytes() == before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"type": "HUGE"}, "HUGE"),
        ({"num_entries": 0}, "0 entries"),
        ({"fpp": 1.0}, r"1\.0"),
        ({"fpp": 0.0}, r"0\.0"),
    ],
)
def test_a_filter_that_cannot_be_sized_is_refused_with_the_value(change: dict, message: str) -> None:
    with pytest.raises(InvalidOptionError, match=message):
        BloomFilterSpec(**change)


@pytest.mark.parametrize("kind", [SIMPLE, DYNAMIC])
def test_any_cut_or_lengthened_filter_is_corrupt(kind: str) -> None:
    body = BloomFilter.from_keys(numbered(25), BloomFilterSpec(kind, 10, 0.1, 30)).to_bytes()
    for damaged in [body[:size] for size in range(len(body))] + [body + b"\0"]:
        with pytest.raises(CorruptTableError, match=kind):
            BloomFilter.parse(base64.b64encode(damaged), kind)


@pytest.mark.parametrize("text", ["not base64!", "é", base64.b64encode(b"\0" * 40).decode()])
def test_text_that_is_no_filter_is_corrupt(text: str) -> None:
    with pytest.raises(CorruptTableError, match="SIMPLE"):
        BloomFilter.parse(text, SIMPLE)


def test_an_unknown_kind_of_filter_is_named() -> None:
    with pytest.raises(UnsupportedTableError, match="DYNAMIC_V9"):
        BloomFilter.parse("", "DYNAMIC_V9")


@pytest.mark.parametrize("rows", [0, -(1 << 31)])
def test_a_filter_of_no_rows_is_refused(rows: int) -> None:
    body = struct.pack(">iibi", -1, 4, 1, 8) + struct.pack(">iii", 255, 4, rows)
    with pytest.raises(CorruptTableError, match="rows"):
        BloomFilter.parse(base64.b64encode(body), "DYNAMIC_V0")
