"""Transforms without Spark: what goes through a chain, and what is refused before a row is read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from importlib import metadata
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_table.api import create_table, open_table, write_hudi
from hudi_table.errors import InvalidDataError, InvalidRequestError, InvalidSchemaError
from hudi_table.services.transforming.chain_check import check_chain
from hudi_table.services.transforming.dialect import to_duckdb
from hudi_table.services.transforming.steps import GROUP, Chain, Transforms, transformed

ROWS = pa.table({"id": ["a", "b"], "n": [1, 7], "at": [{"x": 1, "y": {"z": "p"}}, None]})


def through(*chain: Mapping[str, Any], rows: pa.Table = ROWS, known: pa.Schema | None = None) -> pa.Table:
    with transformed(rows, chain, known) as found:
        return found.read_all()


def test_each_step_takes_what_the_one_before_gives() -> None:
    found = through(
        {"sql": "select *, n * 2 m from source"},
        {"flatten": {}},
        {"sql": "select * except (n) from source where m > 2"},
    )
    assert found.to_pylist() == [{"id": "b", "at_x": None, "at_y_z": None, "m": 14}]


def test_flatten_gives_each_field_a_column_and_refuses_two_of_one_name() -> None:
    found = through({"flatten": {"separator": "__"}})
    assert found.to_pylist()[0] == {"id": "a", "n": 1, "at__x": 1, "at__y__z": "p"}
    with pytest.raises(InvalidSchemaError, match="'at_x' twice: choose another separator"):
        through({"flatten": {}}, rows=ROWS.append_column("at_x", pa.array([1, 2])))


def test_a_function_of_ones_own_is_found_by_its_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    def found(**_: Any) -> list[metadata.EntryPoint]:
        return [metadata.EntryPoint(name, f"{__name__}:{name}", GROUP) for name in ("upper_ids", "breaks", "no_table")]

    monkeypatch.setattr(metadata, "entry_points", found)
    assert through({"function": "upper_ids"})["id"].to_pylist() == ["A", "B"]
    with pytest.raises(InvalidDataError, match="'breaks' fails: KeyError"):
        through({"function": "breaks"})
    with pytest.raises(InvalidRequestError, match="gives a str: it is to give"):
        through({"function": "no_table"})
    with pytest.raises(
        InvalidRequestError,
        match=r"function .other. installed: entry points of hudi_table.transforms are breaks, no_table, upper_ids",
    ):
        through({"function": "other"})


def upper_ids(rows: pa.Table) -> pa.Table:
    return rows.set_column(0, "id", pa.array([each.upper() for each in rows["id"].to_pylist()]))


def breaks(rows: pa.Table) -> pa.Table:
    return rows.select(["absent"])


def no_table(rows: pa.Table) -> str:
    return str(rows)


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("select round(n, 1) r from source", "uses ROUND"),
        ("select foo(n) r from source", "uses FOO"),
        ("select instr(id, 'a') r from source", "uses INSTR,"),
        ("select sort_array(l) r from source", "uses SORT_ARRAY,"),
        ("select split(id, ',') r from source", "uses SPLIT,"),
        ("select from_unixtime(n) r from source", "uses FROM_UNIXTIME,"),
        ("select get_json_object(id, '$.a') r from source", "uses GET_JSON_OBJECT,"),
        ("select l[0] r from source", "uses l[0],"),
        ("select id rlike 'a' r from source", "uses id RLIKE 'a',"),
        ("select cast(n as binary) r from source", "CAST to BINARY"),
        ("select try_cast(n as int) r from source", "TRY_CAST which gives null"),
        ("select substring(id, n) r from source", "SUBSTRING with a start"),
        ("select date_format(n, 'yyyyDDD') r from source", "DATE_FORMAT with a pattern"),
        ("select sha2(id, 512) r from source", "of another length than 256"),
        ("select id like '\\\\%' r from source", "backslashes"),
        ("select upper(explode(n)) r from source", "within another expression"),
        ("select s.id from source s join source t on s.id = t.id", "uses JOIN"),
        ("select id from source limit 1", "uses LIMIT"),
        ("drop table source", "DROP"),
    ],
)
def test_what_spark_does_otherwise_is_refused_by_name(sql: str, words: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        to_duckdb(sql)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("sql", "error", "words"),
    [
        ("select colour from source", InvalidRequestError, "colour"),
        ("select upper(n) u from source", InvalidRequestError, "upper"),
        ("select n, N from source", InvalidRequestError, "'n' twice"),
        ("select cast(id as int) x from source", InvalidDataError, "a is no whole number"),
        ("select 1 / (n - 7) x from source", InvalidDataError, "division by zero"),
        ("select cast(n * 300 as tinyint) x from source", InvalidDataError, "fails on some row"),
    ],
)
def test_what_does_not_fit_the_rows_is_told(sql: str, error: type[Exception], words: str) -> None:
    with pytest.raises(error) as caught:
        through({"sql": sql})
    assert words in str(caught.value)


def test_columns_that_differ_by_case_alone_are_refused() -> None:
    with pytest.raises(InvalidSchemaError, match="twice, in other letters"):
        through({"sql": "select * from source"}, rows=ROWS.append_column("ID", ROWS["id"]))


def test_no_file_is_reached(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x\n1\n")
    with pytest.raises(InvalidRequestError, match="may read only source"):
        through({"sql": f"select * from `{tmp_path}/a.csv`"})


def test_a_column_that_is_null_throughout_has_the_known_type_or_is_left_out() -> None:
    rows = ROWS.append_column("z", pa.nulls(2))
    step = {"sql": "select id, z from source"}
    assert through(step, rows=rows).column_names == ["id"]
    assert through(step, rows=rows, known=pa.schema([("z", pa.date32())])).schema.field("z").type == pa.date32()


def test_a_text_is_read_as_the_table_has_it_where_the_chain_hands_it_on() -> None:
    known = pa.schema([("id", pa.string()), ("n", pa.int32()), ("m", pa.date32()), ("at_x", pa.int8())])

    def read_as(*chain: Mapping[str, Any], **columns: str) -> Any:
        found = Chain(Transforms.of(chain), columns).read_as(known)
        return {field.name: str(field.type) for field in found or ()}

    assert read_as() == {"id": "string", "n": "int32", "m": "date32[day]", "at_x": "int8"}
    assert read_as({"sql": "select *, n + 1 m from source"}) == {"id": "string", "n": "int32", "at_x": "int8"}
    assert read_as({"sql": "select id, cast(n as int) n from source"}) == {"id": "string"}
    assert read_as({"sql": "select s.id, at.n, S.m M from source s"}) == {"id": "string", "m": "date32[day]"}
    assert read_as({"sql": "select * except (n) from source"}, {"sql": "select id, n from source"}) == {"id": "string"}
    assert read_as({"sql": "select id, cast(n as int) n from source"}, n="decimal(10,2)") == {
        "n": "decimal128(10, 2)",
        "id": "string",
    }
    with pytest.raises(InvalidRequestError, match=r"says .whole. of n, which is no type"):
        read_as(n="whole")


@pytest.mark.parametrize(
    ("sql", "keeps"),
    [
        ("select id, n + 1 m from source where n > 1", True),
        ("select explode(l) e from source", True),
        ("select distinct id from source", False),
        ("select id from source order by n", False),
        ("select max(id) id from source", False),
        ("select id from (select id from source)", False),
        ("select id from source union all select id from source", False),
    ],
)
def test_which_statements_keep_the_order_of_a_stream(sql: str, keeps: bool) -> None:
    if keeps:
        check_chain([{"sql": sql}], arrival_decides=True)
        return
    with pytest.raises(InvalidRequestError, match="transform 1 groups, sorts, unites or nests"):
        check_chain([{"sql": sql}], arrival_decides=True)
    check_chain([{"sql": sql}], arrival_decides=False)


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("select * from source", ""),
        ("select id, day, _hoodie_is_deleted, n + 1 m from source where n > 0 or _hoodie_is_deleted", ""),
        ("select * from source where n > 0", "may leave out rows that delete others"),
        ("select *, explode(l) e from source", "may leave out rows that delete others"),
        ("select id, day from source", "does not hand on _hoodie_is_deleted as it is"),
        ("select * except (day), 'mo' day from source", "does not hand on day as it is"),
    ],
)
def test_which_statements_keep_tombstones(sql: str, words: str) -> None:
    try:
        check_chain([{"sql": sql}], arrival_decides=True, deletes=["id", "day"])
        said = ""
    except InvalidRequestError as error:
        said = str(error)
    assert (words in said) if words else not said


def test_a_function_beside_deletes_is_refused_for_the_reason_that_holds() -> None:
    def refused(**how: str) -> str:
        with pytest.raises(InvalidRequestError) as caught:
            check_chain([{"function": "mine"}], arrival_decides=False, deletes=["id"], **how)  # type: ignore[arg-type]
        return caught.value.message

    assert "beside kafka.tombstones Delete might lose deletes" in refused()
    of_events = refused(setting="")
    assert "change events delete rows" in of_events
    assert "tombstones" not in of_events


@pytest.mark.parametrize(
    "sql",
    ["select trim(both '-' from id) id from source", "select id, split(id, '-')[0] p from source where id rlike 'a'"],
)
def test_a_statement_of_spark_keeps_order_and_deletes_as_any_other(sql: str) -> None:
    with pytest.raises(InvalidRequestError, match="not done without Spark"):
        check_chain([{"sql": sql}], arrival_decides=True)
    check_chain([{"sql": sql}], arrival_decides=True, by_spark=True)
    with pytest.raises(InvalidRequestError, match=r"may leave out rows|does not hand on"):
        check_chain([{"sql": sql}], arrival_decides=True, deletes=["id"], by_spark=True)


@pytest.mark.parametrize(
    "sql",
    [
        "select avg(n) n from source",
        "select * from source limit 3",
        "select * from source sort by n",
        "select s.* from source s join source t on s.id = t.id",
        "select id, n from source except select id, n from source",
        "select id, rank() over (order by n) r from source",
        "select * from source tablesample (10 percent)",
    ],
)
def test_a_statement_of_spark_that_loses_order_is_refused(sql: str) -> None:
    with pytest.raises(InvalidRequestError, match="groups, sorts, unites or nests"):
        check_chain([{"sql": sql}], arrival_decides=True, by_spark=True)


def test_a_moment_that_is_written_with_its_zone_is_that_moment() -> None:
    rows = pa.table({"s": ["2024-01-01T10:00:00+02:00", None]})
    for words in ("to_timestamp(s)", "timestamp(s)", "cast(s as timestamp)"):
        found = through({"sql": f"select {words} at from source"}, rows=rows)
        assert found.schema.field("at").type == pa.timestamp("us", "UTC")
        assert found["at"].to_pylist() == [datetime(2024, 1, 1, 8, tzinfo=UTC), None]


def test_a_float_beside_other_values_is_refused_by_its_name() -> None:
    rows = pa.table({"f": pa.array([0.1], pa.float32()), "n": [1]})
    for sql in (
        "select f + n x from source",
        "select q > 1 x from (select f as q from source)",
        "select coalesce(f, 0) x from source",
    ):
        with pytest.raises(InvalidRequestError, match=r"column f \(float\) beside other values.*CAST\(f AS DOUBLE\)"):
            through({"sql": sql}, rows=rows)
    assert (
        through({"sql": "select f, cast(f as double) + n x from source where f is not null"}, rows=rows).num_rows == 1
    )


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("coalesce(n, 'none')", "column n (int64) beside a text"),
        ("if(n > 1, n, 'few')", "column n (int64) beside a text"),
        ("case when n > 1 then 'many' else n end", "column n (int64) beside a text"),
        ("n + '1'", "column n (int64) beside a text"),
        ("m * n", "m * n, a decimal of up to 51 digits"),
        ("(m + 1) * -(m - 2)", "a decimal of up to 63 digits"),
        ("case when n > 1 then 'many' end", ""),
        ("cast(m as decimal(12,2)) * n", ""),
        ("m + 1", ""),
        ("n = '1'", ""),
    ],
)
def test_values_whose_types_decide_otherwise_are_refused_by_name(value: str, words: str) -> None:
    rows = pa.table({"n": [1], "m": pa.array([Decimal(1)], pa.decimal128(30, 10))})
    if not words:
        assert through({"sql": f"select {value} x from source"}, rows=rows).num_rows == 1
        return
    with pytest.raises(InvalidRequestError) as caught:
        through({"sql": f"select {value} x from source"}, rows=rows)
    assert words in caught.value.message


def test_rows_go_in_order_through_a_chain_of_any_length() -> None:
    rows = pa.table({"n": range(300_000)})
    found = through(
        {"sql": "select n, n % 7 k from source where n % 3 = 0"}, {"sql": "select n from source where k > 2"}, rows=rows
    )
    wanted = [n for n in range(300_000) if n % 3 == 0 and n % 7 > 2]
    assert found["n"].to_pylist() == wanted


def test_write_hudi_takes_a_chain(tmp_path: Path) -> None:
    table = create_table(tmp_path / "t", pa.schema([("id", pa.string()), ("m", pa.int64())]), record_key=["id"])
    done = write_hudi(
        table, ROWS, operation="upsert", transform=[{"sql": "select id, n * 2 m from source where n > 1"}]
    )
    assert done.rows_inserted == 1
    assert open_table(tmp_path / "t").scan(columns=["id", "m"]).to_arrow().to_pylist() == [{"id": "b", "m": 14}]


@pytest.fixture
def streamed() -> Iterator[pa.RecordBatchReader]:
    return pa.RecordBatchReader.from_batches(ROWS.schema, iter(ROWS.to_batches(max_chunksize=1)))


def test_a_stream_may_be_read_twice_by_one_statement(streamed: pa.RecordBatchReader) -> None:
    with transformed(streamed, [{"sql": "select id from source union all select id from source"}], None) as found:
        assert sorted(found.read_all()["id"].to_pylist()) == ["a", "a", "b", "b"]
