"""Source files of CSV and JSON lines: which value each text becomes, where the type is said and
where it is inferred."""

from __future__ import annotations

import json
import math
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_table.errors import InvalidDataError, InvalidSchemaError
from hudi_table.sources.files.source import FilesSource
from hudi_table.sources.files.text import BLOCK_BYTES
from hudi_table.table.store.opening import open_storage

LARGE = 12_345_678_901_234_567_890
NEW_YEAR = datetime(2020, 1, 1, tzinfo=UTC)
MOMENT = pa.timestamp("us", "UTC")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    found = tmp_path / "in"
    found.mkdir()
    return found


def read(folder: Path, known: pa.Schema | None = None, *, whole: bool = False) -> pa.Table:
    """All files, which are of one format."""
    (form,) = {path.suffix[1:] for path in folder.iterdir()}
    source = FilesSource(open_storage(f"file://{folder}"), form, "feed", "one", whole=whole)
    batch = source.plan(source.discover(), None)
    assert batch is not None
    return batch.read(known).batches.read_all()


def values(folder: Path, known: pa.DataType | None = None) -> list[Any]:
    """Of the column `v`."""
    return list(read(folder, pa.schema([("v", known)]) if known is not None else None).column("v").to_pylist())


def test_only_an_empty_field_of_a_csv_is_null(folder: Path) -> None:
    (folder / "1.csv").write_text('id,v\n1,NA\n2,"null"\n3,\n4,""\n5,NaN\n')
    assert values(folder) == ["NA", "null", None, "", "NaN"]


def test_an_empty_text_in_quotes_is_null_where_the_column_holds_no_text(folder: Path) -> None:
    (folder / "1.csv").write_text('"id","v","w"\n"1","",""\n"2","5","x"\n"3"," 7","2"\n')
    assert read(folder).to_pylist() == [
        {"id": 1, "v": None, "w": ""}, {"id": 2, "v": 5, "w": "x"}, {"id": 3, "v": 7, "w": "2"}
    ]  # fmt: skip


def test_a_word_is_no_number(folder: Path) -> None:
    (folder / "1.csv").write_text("id,v\n1,NaN\n2,-inf\n3,1.5\n")
    assert math.isnan(values(folder, pa.float64())[0])
    (folder / "1.csv").write_text("id,v\n1,NA\n")
    with pytest.raises(InvalidDataError, match=r"source file 1\.csv .* column v: .*'NA'"):
        values(folder, pa.int64())


@pytest.mark.parametrize("known", [None, MOMENT])
def test_moments_of_a_csv_without_a_zone_are_of_utc(folder: Path, known: pa.DataType | None) -> None:
    texts = ["2020-01-01 00:00:00", "2020-01-01T00:00:00.000000", "2020-01-01 00:00"]
    if known is not None:
        texts += ["2020-01-01", "2020-01-01T02:00:00+02:00", "2020-01-01 00:00:00.000000999z", ""]
    (folder / "1.csv").write_text("".join(f"{text},{number}\n" for number, text in enumerate(["v", *texts])))
    found = read(folder, pa.schema([("v", known)]) if known is not None else None).column("v")
    assert found.type == MOMENT
    assert set(found.to_pylist()) - {None} == {NEW_YEAR}


def test_dates_and_times_of_json_fill_their_columns(folder: Path) -> None:
    (folder / "1.json").write_text('{"d":"2020-01-01","o":{"d":"2020-01-02"},"at":"2020-01-01 00:00:00"}\n{}\n')
    known = pa.schema([("d", pa.date32()), ("o", pa.struct([("d", pa.date32())])), ("at", MOMENT)])
    assert read(folder, known).to_pylist() == [
        {"d": date(2020, 1, 1), "o": {"d": date(2020, 1, 2)}, "at": NEW_YEAR},
        {"d": None, "o": None, "at": None},
    ]


FORMS = {"csv": ("v\n", "{}\n"), "json": ("", '{{"v":{}}}\n')}


def write(folder: Path, form: str, name: str, *numbers: str) -> None:
    head, line = FORMS[form]
    (folder / f"{name}.{form}").write_text(head + "".join(line.format(number) for number in numbers))


@pytest.mark.parametrize("form", FORMS)
def test_whole_numbers_beyond_64_bits_keep_their_digits(folder: Path, form: str) -> None:
    write(folder, form, "1", str(LARGE), str(LARGE + 1))
    write(folder, form, "2", "5")
    assert values(folder) == [Decimal(LARGE), Decimal(LARGE + 1), 5]


@pytest.mark.parametrize("form", FORMS)
def test_whole_numbers_that_a_double_does_not_hold_are_refused_beside_fractions(folder: Path, form: str) -> None:
    """In one file, and in two."""
    write(folder, form, "1", str(2**53 + 1), "1.5")
    with pytest.raises(InvalidDataError, match=rf"source file 1\.{form} .*say its type in source\.columns"):
        values(folder)
    assert values(folder, pa.float64()) == [2.0**53, 1.5], "what is said is done"
    write(folder, form, "1", str(2**53 + 1))
    write(folder, form, "2", "1.5", "1e300")
    with pytest.raises(InvalidDataError, match=rf"source file 1\.{form} .*say its type in source\.columns"):
        values(folder)
    write(folder, form, "1", str(LARGE))
    with pytest.raises(InvalidSchemaError, match=r"source file .*no type holds the digits of both"):
        values(folder)
    write(folder, form, "1", "7")
    assert sorted(values(folder)) == [1.5, 7, 1e300]


def test_what_has_no_type_in_json_becomes_no_column(folder: Path) -> None:
    (folder / "1.json").write_text('{"id":1,"a":null,"l":[],"o":{"x":1,"e":{}}}\n')
    assert read(folder).to_pylist() == [{"id": 1, "o": {"x": 1}}]


def test_a_column_of_a_csv_that_is_empty_at_first_names_the_step_to_take(folder: Path) -> None:
    line = f"1,{'x' * 1000},\n"
    (folder / "1.csv").write_text("id,p,v\n" + line * 1100 + "2,y,seven\n")
    with pytest.raises(InvalidDataError, match=r"column v: it holds 'seven'; its first rows are null: say its type"):
        read(folder)


LATE = [
    ({"id": 2, "late": "x"}, "field late", {"id": 2, "v": None, "late": "x"}),
    ({"id": 2, "v": {"b": 1}}, r"field v\.b", {"id": 2, "v": {"a": None, "b": 1}}),
    ({"id": 2, "v": {"a": 1.5}}, "1.5", {"id": 2, "v": {"a": 1.5}}),
    ({"id": 2, "v": {"a": 1, "_": [], "n": None}}, "", {"id": 2, "v": {"a": 1}}),
]


@pytest.mark.parametrize(("row", "words", "stored"), LATE)
def test_what_comes_late_in_json_is_refused_or_found_where_all_rows_are_looked_at(
    folder: Path, row: dict[str, Any], words: str, stored: dict[str, Any]
) -> None:
    first = json.dumps({"id": 1, "v": {"a": 1}}) + "\n"
    count = BLOCK_BYTES // len(first) + 1
    (folder / "1.json").write_text(first * count + json.dumps(row) + "\n")
    if words:
        with pytest.raises(InvalidDataError, match=rf"source file 1\.json .*{words}"):
            read(folder)
    found = read(folder, whole=bool(words)).slice(count - 1).to_pylist()
    assert found[1] == stored
    assert found[0]["v"]["a"] == 1


def test_a_bad_row_of_json_is_told_by_its_number(folder: Path) -> None:
    first = '{"id":1}\n'
    count = BLOCK_BYTES // len(first) + 1
    (folder / "1.json").write_text(first * count + '{"id":2}\n{"id":\n')
    with pytest.raises(
        InvalidDataError, match=rf"source file 1\.json cannot be read: row {count + 2:,}: JSON parse error"
    ):
        read(folder)
