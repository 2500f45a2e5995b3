"""Options of `format("hudi")` as Spark hands them over: sorted, checked, and Hudi's in our
terms."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql.types import StructType

from hudi_spark.datasource.format_options import READ_KEYS, FormatOptions, ReadRequest, format_options
from hudi_spark.datasource.source import HudiDataSource
from hudi_spark.datasource.stream_writes import BatchWriter
from hudi_spark.datasource.writes import RowsWriter
from hudi_table.api import create_table
from hudi_table.errors import InvalidOptionError, InvalidRequestError
from tests.support.options import refused

INCREMENTAL = {"hoodie.datasource.query.type": "incremental"}
BEGIN, END = "hoodie.datasource.read.begin.instanttime", "hoodie.datasource.read.end.instanttime"


def of(options: dict[str, str], *, streaming: bool = False) -> ReadRequest:
    return ReadRequest.of(format_options(options), streaming=streaming)


def test_options_are_sorted_and_get_back_the_case_that_spark_has_taken_from_them() -> None:
    given = format_options(
        {
            "PATH": "/t",
            "hoodie.datasource.streaming.startoffset": "latest",
            "storage.region": "here",
            "fullScan": "true",
        }
    )
    assert given == FormatOptions(
        {"path": "/t", "fullscan": "true"}, {"hoodie.datasource.streaming.startOffset": "latest"}, {"region": "here"}
    )
    with pytest.raises(InvalidRequestError, match="no path"):
        _ = format_options({}).path


@pytest.mark.parametrize(
    ("option", "told"),
    [
        ("asoff", "did you mean 'asof'"),
        ("header", "remove it"),
        ("versionAsOf", "give as.of.instant"),
        ("paths", "load one path"),
    ],
)
def test_an_unknown_option_is_refused_by_name_with_the_next_step(option: str, told: str) -> None:
    with pytest.raises(InvalidOptionError, match=option.lower()) as raised:
        format_options({"path": "/t", option: "1"})
    assert told in raised.value.message


def test_a_table_of_sparks_catalog_is_refused_where_spark_asks() -> None:
    with pytest.raises(InvalidOptionError, match="a name without a table behind it"):
        format_options({"path": "/t", "owner": "me", "location": "/t", "provider": "hudi"})


@pytest.mark.parametrize("name", ["asOf", "as.of.instant", "timestampAsOf"])
def test_a_moment_has_three_names(name: str) -> None:
    assert of({name: "20260101"}).as_of == "20260101"
    with pytest.raises(InvalidOptionError, match="the moment is given twice"):
        of({name: "20260101", "asOf" if name != "asOf" else "timestampAsOf": "20260102"})


def test_hudis_query_types_and_bounds_are_ours() -> None:
    assert of({}).query == "snapshot"
    assert of({"hoodie.datasource.query.type": "READ_OPTIMIZED"}).query == "read_optimized"
    assert of({"hoodie.datasource.view.type": "read_optimized"}).query == "read_optimized"
    found = of(INCREMENTAL | {BEGIN: "20260101000000", END: "20260102000000"})
    assert (found.query, found.since, found.until) == ("incremental", "20260101000000", "20260102000000")
    for begin in ("0", "000", "00000000000000"):
        assert of(INCREMENTAL | {BEGIN: begin}).since == "earliest"
    changes = of(INCREMENTAL | {BEGIN: "000", "hoodie.datasource.query.incremental.format": "cdc"})
    assert changes.query == "cdc"
    assert of(INCREMENTAL | {BEGIN: "0", "hoodie.datasource.read.incr.fallback.fulltablescan.enable": "true"}).full_scan
    assert not of({"hoodie.datasource.read.incr.fallback.fulltablescan.enable": "true"}).full_scan


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (INCREMENTAL, "needs hoodie.datasource.read.begin.instanttime"),
        ({"hoodie.datasource.query.type": "all"}, "'all' is none of snapshot"),
        (
            INCREMENTAL | {BEGIN: "0", "hoodie.datasource.query.incremental.format": "avro"},
            "'avro' is none of latest_state",
        ),
        (INCREMENTAL | {"query": "snapshot", BEGIN: "0"}, "the query is given twice"),
        (
            {"hoodie.datasource.query.incremental.format": "cdc"},
            "=cdc goes with hoodie.datasource.query.type=incremental",
        ),
        ({"hoodie.datasource.merge.type": "skip_merge"}, "is refused with the value 'skip_merge'"),
        ({"hoodie.datasource.read.incr.path.glob": "/2026/*"}, "is refused with the value '/2026/*'"),
        ({"hoodie.datasource.query.typ": "snapshot"}, "did you mean 'hoodie.datasource.query.type'"),
        ({"meta": "yes"}, "neither 'true' nor 'false'"),
        ({"pushFilters": "1"}, "neither 'true' nor 'false'"),
    ],
)
def test_what_cannot_be_read_so_is_refused(options: dict[str, str], told: str) -> None:
    with pytest.raises(InvalidOptionError) as raised:
        of(options)
    assert told in raised.value.message


def test_a_stream_takes_a_begin_and_nothing_that_would_make_it_a_batch() -> None:
    assert of({"hoodie.datasource.streaming.startOffset": "latest"}, streaming=True).since == "latest"
    assert of({"since": "earliest", "fullScan": "true"}, streaming=True).full_scan
    assert of(INCREMENTAL, streaming=True).query == "incremental"
    for strange in ({BEGIN: "0"}, {END: "20260101"}, {"until": "20260101"}, {"asOf": "20260101"}, {"query": "cdc"}):
        with pytest.raises(InvalidOptionError, match="does not go with a stream"):
            of(strange, streaming=True)


@pytest.mark.parametrize("name", ["maxInstantsPerTrigger", "hoodie.datasource.streaming.startOffset"])
def test_what_a_stream_is_told_is_refused_by_a_batch(name: str, tmp_path: Path) -> None:
    """It did nothing. Spark asks for the schema before it says which of both it reads."""
    path = str(tmp_path / "t")
    create_table(path, pa.schema([("id", pa.string())]), record_key="id")
    source = HudiDataSource({"path": path, name.lower(): "5"})
    schema = source.schema()
    with pytest.raises(InvalidOptionError, match=f"{name} goes with readStream"):
        source.reader(schema)


def test_hudis_columns_come_unless_they_are_left_out() -> None:
    assert (of({}).meta, of({"meta": "false"}).meta, of({"meta": "TRUE"}).meta) == (None, False, True)
    assert of({"columns": "id, ts"}).columns == ("id", "ts")


def test_every_refused_option_is_refused_by_reads_and_writes_but_for_what_reads_act_on(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    schema = StructType().add("id", "string")
    create_table(path, pa.schema([("id", pa.string())]), record_key="id")
    for key, value in refused().items():
        if key == "as.of.instant":
            continue  # a name of our own as well
        for streaming in (False, True):
            if key not in READ_KEYS:
                with pytest.raises(InvalidOptionError, match=re.escape(key)):
                    of({key.lower(): value}, streaming=streaming)
        for writer in (RowsWriter, BatchWriter):
            with pytest.raises(InvalidOptionError, match=re.escape(key)):
                writer(format_options({"path": path, key.lower(): value}), schema, False)
