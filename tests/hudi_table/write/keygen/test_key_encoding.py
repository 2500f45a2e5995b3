"""Complex keys of one field: `v` or `field:v`, told by the properties, by what the files hold, or
refused.

Matrix: {copy-on-write, merge-on-read} × {`v`, `field:v`} × {simple, bucket index}; tables as Hudi
leaves them, whose properties do not tell. Omitted: tables that Hudi itself made
(`tests/interop/test_key_generators.py`).
"""

from __future__ import annotations

import uuid
from typing import Any

import pyarrow as pa
import pytest

from hudi_table.api import HudiTable, create_table
from hudi_table.errors import InvalidOptionError, InvalidRequestError, UnsupportedTableError
from hudi_table.model.service.findings import Check
from hudi_table.model.table.properties import KEY_ENCODING
from hudi_table.model.table.version_properties import GENERATOR_TYPE
from hudi_table.table.timeline.properties import replace_properties
from tests.support.beside import seen_anew

SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("q", pa.string()), ("v", pa.int64())])
CLASS = "hoodie.table.keygenerator.class"
CHECK = "hoodie.write.complex.keygen.validation.enable"
OPTION = {"Raw": "true", "FieldPrefixed": "false"}
BUCKET = {"type": "Bucket", "buckets": 1}


def rows(*keys: str, v: int = 1) -> pa.Table:
    return pa.Table.from_pylist([{"id": key, "p": "x", "q": "y", "v": v} for key in keys], schema=SCHEMA)


def table_of(encoding: str, *, kind="CopyOnWrite", index: Any = "Simple", release: str = "1.x") -> HudiTable:
    """A table as a release of Hudi leaves it: nothing tells how its keys are written, but the
    generator's class or type."""
    table = create_table(
        f"memory://{uuid.uuid4().hex}/t", SCHEMA, record_key="id", partition_by=["p", "q"], type=kind, index=index,
        options={KEY_ENCODING: OPTION[encoding]}, version=6 if release == "0.15.0" else None,
    )  # fmt: skip
    return forgotten(table, release)


def forgotten(table: HudiTable, release: str = "1.x") -> HudiTable:
    said: dict[str, str | None] = {KEY_ENCODING: None, CHECK: None}
    if release == "1.x":
        said |= {CLASS: None, GENERATOR_TYPE: "COMPLEX"}
    replace_properties(table.context, said)
    return seen_anew(table)


def keys(table: HudiTable) -> list[str]:
    found = seen_anew(table).scan(meta=True).to_arrow()
    return sorted(found["_hoodie_record_key"].to_pylist())


@pytest.mark.parametrize("index", ["Simple", BUCKET], ids=["simple", "bucket"])
@pytest.mark.parametrize("kind", ["CopyOnWrite", "MergeOnRead"])
@pytest.mark.parametrize("encoding", ["Raw", "FieldPrefixed"])
def test_an_upsert_takes_the_encoding_of_the_stored_keys(encoding: str, kind: str, index: Any) -> None:
    table = table_of(encoding, kind=kind, index=index)
    told = {KEY_ENCODING: OPTION[encoding]}
    table.upsert(rows("a", "b"), options=told)
    table.upsert(rows("a", v=2), options=told)
    forgotten(table).upsert(rows("a", "c", v=3))
    prefix = "id:" if encoding == "FieldPrefixed" else ""
    assert keys(table) == [f"{prefix}{key}" for key in "abc"]
    assert seen_anew(table).scan().to_arrow().sort_by("id")["v"].to_pylist() == [3, 1, 3]


def test_a_text_that_begins_with_the_field_is_not_taken_for_an_encoding() -> None:
    table = table_of("Raw")
    table.upsert(rows("id:a", "b"), options={KEY_ENCODING: "true"})
    seen_anew(table).upsert(rows("id:a", "b", v=2))
    assert keys(table) == ["b", "id:a"]


@pytest.mark.parametrize(("encoding", "other"), [("Raw", "false"), ("FieldPrefixed", "true")])
def test_an_option_that_the_stored_keys_contradict_is_refused(encoding: str, other: str) -> None:
    table = table_of(encoding)
    table.upsert(rows("a"), options={KEY_ENCODING: OPTION[encoding]})
    shown = {"Raw": "`v`", "FieldPrefixed": "`id:v`"}
    (option,) = set(shown) - {encoding}
    said = f"{KEY_ENCODING}={other} writes keys as {shown[option]}, and table .* has them as {shown[encoding]}: .*would come twice"
    with pytest.raises(InvalidOptionError, match=said):
        seen_anew(table).upsert(rows("a"), options={KEY_ENCODING: other})
    with pytest.raises(InvalidOptionError, match="neither 'true' nor 'false'"):
        seen_anew(table).upsert(rows("a"), options={KEY_ENCODING: "maybe"})


def test_a_table_with_keys_of_both_kinds_is_refused_and_the_doctor_counts_them() -> None:
    table = table_of("Raw")
    table.upsert(rows("a", "b", "c"), options={KEY_ENCODING: "true"})
    replace_properties(table.context, {KEY_ENCODING: "false"})
    seen_anew(table).upsert(rows("a"))
    table = forgotten(table)
    assert keys(table) == ["a", "b", "c", "id:a"]
    with pytest.raises(UnsupportedTableError, match="two encodings, 'a' and 'id:a'"):
        table.upsert(rows("a"))
    (found,) = [finding for finding in table.doctor(keys=True) if finding.check is Check.WRONG_KEY]
    assert found.message.startswith("1 row with another record key")
    assert "'id:a' for 'a'" in found.message


def test_the_doctor_finds_nothing_where_keys_are_those_of_their_rows() -> None:
    for encoding in ("Raw", "FieldPrefixed"):
        table = table_of(encoding)
        table.upsert(rows("a", "b"), options={KEY_ENCODING: OPTION[encoding]})
        assert not seen_anew(table).doctor(keys=True)


def test_an_empty_table_of_1x_takes_the_option_and_nothing_else() -> None:
    with pytest.raises(UnsupportedTableError, match=f"give {KEY_ENCODING}"):
        table_of("Raw").upsert(rows("a"))
    table = table_of("Raw")
    table.upsert(rows("a"), options={KEY_ENCODING: "false"})
    assert keys(table) == ["id:a"]


def test_an_empty_table_of_0_15_0_gets_its_keys_unless_the_option_says_otherwise() -> None:
    table = table_of("Raw", release="0.15.0")
    table.upsert(rows("a"))
    assert keys(table) == ["a"]
    table = table_of("Raw", release="0.15.0")
    table.upsert(rows("a"), options={KEY_ENCODING: "false"})
    assert keys(table) == ["id:a"]


def test_a_table_of_ours_tells_its_encoding() -> None:
    table = create_table(
        "memory://encoding/t", SCHEMA, record_key="id", partition_by=["p", "q"], options={KEY_ENCODING: "false"}
    )
    table.upsert(rows("a"))
    assert keys(table) == ["id:a"]
    with pytest.raises(InvalidRequestError, match="key encoding FieldPrefixed, not Raw"):
        create_table("memory://encoding/t", SCHEMA, record_key="id", partition_by=["p", "q"], if_exists="open")
