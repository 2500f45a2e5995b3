"""Columns out of Avro records: any of the fields alone, numbers of every width, texts of every
length, record after record."""

from __future__ import annotations

import contextlib
import io
import json
from decimal import Decimal
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_table.codec.avro import decode
from hudi_table.codec.avro.decode import MalformedError, decode_flat
from hudi_table.codec.avro.types import flat_fields
from tests.support.scale import scaled

FIELDS: list[tuple[str, Any]] = [
    ("long", "long"),
    ("long_or_none", ["null", "long"]),
    ("none_or_int", ["int", "null"]),
    ("text", "string"),
    ("text_or_none", ["null", "string"]),
    ("bytes_or_none", ["null", "bytes"]),
    ("amount_or_none", ["null", {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 2}]),
    ("flag_or_none", ["null", "boolean"]),
    ("double", "double"),
    ("double_or_none", ["null", "double"]),
    ("fixed", {"type": "fixed", "name": "f", "size": 3}),
    ("inside", ["null", {"type": "record", "name": "r", "fields": [{"name": "n", "type": ["null", "long"]}]}]),
    ("last", "int"),
]
SCHEMA = {"type": "record", "name": "t", "fields": [{"name": name, "type": kind} for name, kind in FIELDS]}
LONGS = st.integers(0, 63).flatmap(lambda bits: st.integers(-(2**bits), 2**bits - 1))
INTS = st.integers(0, 31).flatmap(lambda bits: st.integers(-(2**bits), 2**bits - 1))
TEXTS = st.text(max_size=3) | st.integers(60, 9000).map(lambda size: "x" * size)
RECORDS = st.fixed_dictionaries(
    {
        "long": LONGS,
        "long_or_none": st.none() | LONGS,
        "none_or_int": st.none() | INTS,
        "text": TEXTS,
        "text_or_none": st.none() | TEXTS,
        "bytes_or_none": st.none() | st.binary(max_size=70),
        "amount_or_none": st.none() | st.integers(-(10**27), 10**27).map(lambda n: Decimal(n).scaleb(-2)),
        "flag_or_none": st.none() | st.booleans(),
        "double": st.floats(allow_nan=False),
        "double_or_none": st.none() | st.floats(allow_nan=False),
        "fixed": st.binary(min_size=3, max_size=3),
        "inside": st.none() | st.fixed_dictionaries({"n": st.none() | LONGS}),
        "last": INTS,
    }
)


def written(records: list[dict[str, Any]]) -> tuple[pa.Buffer, Any, Any]:
    """The records one after the other, as in a block, and where each one starts and stops."""
    sink, places = io.BytesIO(), [0]
    for record in records:
        fastavro.schemaless_writer(sink, fastavro.parse_schema(SCHEMA), record)
        places.append(sink.tell())
    ends = np.array(places, dtype=np.int64)
    return pa.py_buffer(sink.getvalue()), ends[:-1], ends[1:]


def decoded(content: tuple[pa.Buffer, Any, Any], wanted: set[str]) -> pa.Table:
    fields = flat_fields(json.dumps(SCHEMA))
    assert fields is not None
    return decode_flat(*content, fields, wanted)


@settings(max_examples=scaled(60), deadline=None)
@given(
    st.lists(RECORDS, max_size=12),
    st.sets(st.sampled_from([name for name, _ in FIELDS])),
    st.sampled_from([1, 400, 1 << 20]),
)
def test_wanted_fields_are_those_of_the_records(records: list[dict[str, Any]], wanted: set[str], near: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decode, "_NEAR_BYTES", near)
        found = decoded(written(records), wanted)
    assert len(found) == len(records)
    assert found.column_names == [name for name, _ in FIELDS if name in wanted]
    assert found.to_pylist() == [{name: record[name] for name, _ in FIELDS if name in wanted} for record in records]


@settings(max_examples=scaled(60), deadline=None)
@given(RECORDS, st.data(), st.sets(st.sampled_from([name for name, _ in FIELDS])))
def test_changed_bytes_are_values_or_an_error_and_never_a_look_beyond(
    record: dict[str, Any], data: st.DataObject, wanted: set[str]
) -> None:
    content, starts, stops = written([record, record])
    damaged = bytearray(content)
    damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(MalformedError, pa.ArrowInvalid):
        assert len(decoded((pa.py_buffer(bytes(damaged)), starts, stops), wanted)) == 2


@pytest.mark.parametrize("wanted", [set(), {"long"}, {"last"}], ids=str)
def test_a_record_that_ends_too_soon_is_malformed(wanted: set[str]) -> None:
    record = {"long": -(2**63), "text": "x" * 100, "double": 1.0, "fixed": b"abc", "last": 2**31 - 1}
    content, starts, stops = written([record])
    for cut in range(len(content)):
        with pytest.raises(MalformedError):
            decoded((content.slice(0, cut), starts, np.minimum(stops, cut)), wanted)
