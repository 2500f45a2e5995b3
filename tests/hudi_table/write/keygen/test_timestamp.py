"""Partition paths of timestamps against what Apache Hudi 0.15.0 wrote for the same values."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_table.api import create_table
from hudi_table.errors import InvalidDataError, InvalidOptionError
from hudi_table.model.options.values import zone_name
from hudi_table.model.table.config import PartitionField
from hudi_table.model.table.properties import from_properties, to_properties, with_timebased
from hudi_table.write.keygen.columns import partition_paths, with_inputs
from hudi_table.write.keygen.timestamp import format_instants, path_texts
from tests.support.keys import config, instants, paths_of

MILLIS = [1709210096789, -1, 1735689599999, 1577836799000]


@pytest.mark.parametrize(
    ("values", "field", "expected"),
    [
        (MILLIS, instants(format="yyyy/MM/dd", input="EPOCHMILLISECONDS"), "2024/02/29 1969/12/31 2024/12/31 2019/12/31"),
        (
            [value // 1000 for value in MILLIS],
            instants(format="yyyy-MM-dd-HH-mm-ss.SSS", input="UNIX_TIMESTAMP"),
            "2024-02-29-12-34-56.000 1969-12-31-23-59-59.000 2024-12-31-23-59-59.000 2019-12-31-23-59-59.000",
        ),
        (
            MILLIS,
            instants(format="yyyyMMddHHmm", input="EPOCHMILLISECONDS", timezone="GMT+8:00"),
            "202402292034 197001010759 202501010759 202001010759",
        ),
        (
            MILLIS,
            instants(format="yyyyMMddHHmm", input="EPOCHMILLISECONDS", timezone="America/New_York"),
            "202402290734 196912311859 202412311859 201912311859",
        ),
        (
            MILLIS,
            instants(format="'year='yyyy/'month='MM/'day='dd", input="EPOCHMILLISECONDS"),
            "year=2024/month=02/day=29 year=1969/month=12/day=31 year=2024/month=12/day=31 year=2019/month=12/day=31",
        ),
        (
            MILLIS[2:3],
            instants(
                format="yy-M-d-H-h-hh-a-E-EEEE-D-w-xxxx-MMM-MMMM-k-K-m-s-S-SS-Z-'ZZ'-e-YYYY",
                input="EPOCHMILLISECONDS",
            ),
            "24-12-31-23-11-11-PM-Tue-Tuesday-366-1-2025-Dec-December-23-11-59-59-9-99-+0000-ZZ-2-2024",
        ),
        ([10096, 99999, 89599, 36799], instants(format="yyyy/MM/dd", input="SCALAR", unit="days"), "1997/08/23 2243/10/16 2215/04/26 2070/10/02"),
        (
            [10096, 99999],
            instants(format="yyyy/MM/dd-HH-mm-ss", input="EPOCHMILLISECONDS"),
            "1970/01/01-00-00-10 1970/01/01-00-01-39",
        ),
        (
            [1709210096789.0, -1.0],
            instants(format="yyyy/MM/dd-HH-mm-ss.SSS", input="EPOCHMILLISECONDS"),
            "2024/02/29-12-34-56.789 1969/12/31-23-59-59.999",
        ),
        (
            [Decimal("1709210096789.000")],
            instants(format="yyyy/MM/dd-HH-mm-ss.SSS", input="EPOCHMILLISECONDS"),
            "2024/02/29-12-34-56.789",
        ),
        ([1709210096789, None], instants(format="yyyy/MM/dd", input="EPOCHMILLISECONDS"), "2024/02/29 1970/01/01"),
    ],
)  # fmt: skip
def test_instants_become_the_path_that_hudi_gives_them(values: list[Any], field: PartitionField, expected: str) -> None:
    assert paths_of({"p": values}, field) == expected.split(" ")


EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


@given(
    st.lists(st.integers(-(2**45), 2**45)),
    st.sampled_from(["yyyy/MM/dd", "yyyyMMddHH", "HH:mm", "HH:mm:ss", "SSS", "yyyy-ww"]),
    st.sampled_from(
        ["UTC", "Europe/Amsterdam", "Asia/Kathmandu", "Africa/Monrovia", "Australia/Lord_Howe", "GMT-03:30"]
    ),
)
def test_formatting_few_instants_for_many_gives_each_its_own_text(values: list[int], pattern: str, zone: str) -> None:
    field = instants(format=pattern, input="EPOCHMILLISECONDS", timezone=zone)
    millis = pa.array(values, pa.int64())
    texts = path_texts(millis, field)
    assert texts.to_pylist() == format_instants(millis, pattern, zone_name(zone)).to_pylist()


ZONES = ["UTC", "America/New_York", "Europe/Amsterdam", "Australia/Lord_Howe", "Asia/Kathmandu", "Africa/Casablanca"]


@given(st.lists(st.integers(2**40, 253_402_000_000_000), min_size=1), st.sampled_from(ZONES))
def test_summer_time_goes_on_in_later_years(values: list[int], zone: str) -> None:
    moments = [EPOCH + dt.timedelta(milliseconds=value) for value in values]
    expected = [moment.astimezone(ZoneInfo(zone)).strftime("%Y/%m/%d-%H:%M %z") for moment in moments]
    texts = format_instants(pa.array(values, pa.int64()), "yyyy/MM/dd-HH:mm Z", zone)
    assert texts.to_pylist() == expected
    named = {"input_format": "yyyy/MM/dd-HH:mm Z", "timezone": "UTC"}
    shown = instants(format="yyyyMMddHHmm", input="DATE_STRING", **named)
    assert path_texts(texts, shown).to_pylist() == [f"{moment:%Y%m%d%H%M}" for moment in moments]


def test_texts_and_instants_of_years_that_no_calendar_of_python_has_keep_summer_time() -> None:
    text = instants(
        format="yyyyMMdd-HH",
        input="DATE_STRING",
        input_format="yyyy-MM-dd HH",
        input_timezone="America/New_York",
        timezone="UTC",
    )
    assert path_texts(pa.array(["2050-07-01 00", "2050-01-01 00", "9999-07-01 00", None]), text).to_pylist() == [
        "20500701-04", "20500101-05", "99990701-04", "19700101-00",
    ]  # fmt: skip
    far = pa.array([253_402_300_800_000 + 182 * 86_400_000], pa.int64())
    assert format_instants(far, "yyyy-MM-dd HH", "America/New_York").to_pylist() == ["10000-06-30 20"]


PLAIN = ["2024-02-29 12:34:56", "1969-12-31 23:59:59", "2024-12-31 23:59:59", "2019-12-31 01:02:03", None]
ZONED = [
    "2024-02-29T12:34:56.789+0200",
    "1969-12-31T23:59:59.999Z",
    "2024-12-31T23:59:59.999-0500",
    "2019-12-31T01:02:03.000+0000",
]


@pytest.mark.parametrize(
    ("values", "settings", "expected"),
    [
        (PLAIN, {"input_format": "yyyy-MM-dd HH:mm:ss"}, ["2024/02/29-12", "1969/12/31-23", "2024/12/31-23", "2019/12/31-01", "1970/01/01-00"]),
        (
            PLAIN[:4],
            {"input_format": "yyyy-MM-dd HH:mm:ss", "input_timezone": "Asia/Tokyo"},
            ["2024/02/29-03", "1969/12/31-14", "2024/12/31-14", "2019/12/30-16"],
        ),
        (
            PLAIN[:4],
            {"input_format": "yyyy-MM-dd HH:mm:ss", "timezone": "GMT+8:00"},
            ["2024/02/29-12", "1969/12/31-23", "2024/12/31-23", "2019/12/31-01"],
        ),
        (
            ZONED,
            {"input_format": "yyyy-MM-dd'T'HH:mm:ss.SSSZ", "timezone": ""},
            ["2024/02/29-12", "1969/12/31-23", "2024/12/31-23", "2019/12/31-01"],
        ),
        (
            ZONED,
            {"input_format": "yyyy-MM-dd'T'HH:mm:ssZ,yyyy-MM-dd'T'HH:mm:ss.SSSZ", "timezone": ""},
            ["2024/02/29-12", "1969/12/31-23", "2024/12/31-23", "2019/12/31-01"],
        ),
        (ZONED, {"input_format": "yyyy-MM-dd'T'HH:mm:ss.SSSZ"}, ["2024/02/29-10", "1969/12/31-23", "2025/01/01-04", "2019/12/31-01"]),
        (["20240229", "19700101"], {"input_format": "yyyyMMdd"}, ["2024/02/29-00", "1970/01/01-00"]),
        (["7/4/2024 3:05 PM"], {"input_format": "M/d/yyyy h:mm a"}, ["2024/07/04-15"]),
    ],
)  # fmt: skip
def test_text_is_read_by_the_input_format(values: list[Any], settings: dict[str, str], expected: list[str]) -> None:
    field = instants(format="yyyy/MM/dd-HH", input="DATE_STRING", **settings)
    assert paths_of({"p": values}, field) == expected


@pytest.mark.parametrize("text", ["2024-02-30", "2024-13-01", "yesterday", "2024-02-29 ", ""])
def test_text_that_does_not_fit_is_refused_with_count_and_row(text: str) -> None:
    field = instants(format="yyyy", input="DATE_STRING", input_format="yyyy-MM-dd")
    with pytest.raises(InvalidDataError, match=r"partition field 'p' has text .* in 2 rows, the first at row 1: '"):
        paths_of({"p": ["2024-02-29", text, None, text]}, field)


def test_dates_and_timestamps_need_no_input() -> None:
    days = pa.array([dt.date(2024, 2, 29), dt.date(1969, 12, 31)])
    assert paths_of({"p": days}, instants(format="yyyy/MM/dd")) == ["2024/02/29", "1969/12/31"]
    moments = pa.array([1709210096789000, -1, None], pa.timestamp("us", "UTC"))
    field = instants(format="yyyy/MM/dd-HH.SSS", timezone="Asia/Tokyo")
    # The microsecond before 1970 is cut towards zero, as Java does.
    assert paths_of({"p": moments}, field) == ["2024/02/29-21.789", "1970/01/01-09.000", "1970/01/01-09.000"]
    resolved = with_inputs(config("k", field), pa.schema({"k": pa.string(), "p": moments.type}))
    stored = to_properties(resolved)
    assert stored["hoodie.keygen.timebased.timestamp.type"] == "SCALAR"
    assert stored["hoodie.keygen.timebased.timestamp.scalar.time.unit"] == "microseconds"
    assert from_properties(stored).partition_by == resolved.partition_by


@pytest.mark.parametrize("pattern", ["%Y/%m", "yyyy/%m", "day=%d"])
def test_pythons_notation_of_a_date_is_refused_where_a_table_is_created(pattern: str, tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.string()), ("at", pa.timestamp("us", "UTC"))])
    field = {"field": "at", "type": "Timestamp", "format": pattern}
    with pytest.raises(InvalidOptionError, match=r"is Python's notation: write Java's, e\.g\. yyyy/MM/dd"):
        create_table(tmp_path / "t", schema, record_key="id", partition_by=field)
    assert not (tmp_path / "t").exists()
    create_table(tmp_path / "t", schema, record_key="id", partition_by=field | {"format": "yyyy'%Y'"})


@pytest.mark.parametrize(
    ("kind", "field", "message"),
    [
        (pa.int64(), instants(format="yyyy"), "say what it counts"),
        (pa.int64(), instants(input="EPOCHMILLISECONDS"), "give its format"),
        (pa.int64(), instants(format="yyyy", input="EPOCHS"), "'EPOCHS'"),
        (pa.int64(), instants(format="yyyy", input="SCALAR", unit="fortnights"), "'fortnights'"),
        (pa.string(), instants(format="yyyy"), "DATE_STRING"),
        (pa.string(), instants(format="yyyy", input="EPOCHMILLISECONDS", input_format="yyyy"), "DATE_STRING"),
        (pa.date32(), instants(format="yyyy", input="EPOCHMILLISECONDS"), "would misread it"),
        (pa.timestamp("us"), instants(format="yyyy", input="UNIX_TIMESTAMP"), "would misread it"),
    ],
)
def test_settings_that_would_misread_a_column_are_refused(
    kind: pa.DataType, field: PartitionField, message: str
) -> None:
    with pytest.raises(InvalidOptionError, match=message):
        with_inputs(config("k", field), pa.schema({"k": pa.string(), "p": kind}))


@pytest.mark.parametrize(
    ("field", "message"),
    [
        (instants(format="yyyy'", input="EPOCHMILLISECONDS"), "unbalanced quote"),
        (instants(format="yyyy-qq", input="EPOCHMILLISECONDS"), "'qq'"),
        (instants(format="yyyy", input="EPOCHMILLISECONDS", timezone="Mars/Olympus"), "'Mars/Olympus'"),
    ],
)
def test_patterns_and_zones_that_nobody_knows_are_refused(field: PartitionField, message: str) -> None:
    with pytest.raises(InvalidOptionError, match=message):
        paths_of({"p": [0]}, field)


def test_options_tell_what_hudi_did_not_store() -> None:
    """Hudi 0.15.0 stores of its timestamp key generator nothing but the output format."""
    stored = to_properties(config("k", instants(format="yyyy/MM/dd", timezone="")))
    assert [key for key in stored if "timebased" in key] == ["hoodie.keygen.timebased.output.dateformat"]
    foreign = from_properties(stored)
    rows = pa.table({"k": ["1"], "p": [MILLIS[0]]})
    with pytest.raises(InvalidOptionError, match="say what it counts"):
        partition_paths(rows, foreign)
    told = with_timebased(foreign, {"hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS"})
    assert partition_paths(rows, told).to_pylist() == ["2024/02/29"]
    with pytest.raises(InvalidOptionError, match="'yyyy/MM/dd', not 'yyyy'"):
        with_timebased(foreign, {"hoodie.keygen.timebased.output.dateformat": "yyyy"})
