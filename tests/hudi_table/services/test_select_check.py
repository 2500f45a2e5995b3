"""What a transform may be: one SELECT over `source` that reaches nothing else."""

from __future__ import annotations

import pytest

from hudi_table.errors import InvalidRequestError
from hudi_table.services.select_check import LENGTH_MAX, check_select

GOOD = [
    "select *, concat_ws('-', carrier, flight, date_format(time_hour, 'yyyyMMddHH')) flight_id from source",
    "with a as (select * from source) select * from a join source s on a.x = s.x",
    "select explode(x) from source lateral view explode(y) t as z",
    "select * except (a) from source",
    "select x from SOURCE where a in (select b from source)",
    "select transform(arr, x -> x + 1) from source",
    "select * from source qualify row_number() over (partition by a order by b desc) = 1",
    "select named_struct('a', 1), s.*, current_timestamp() from source s union all select 1, 2, 3 from source",
    "select 'reflect(1) from parquet.`/x`' text -- reflect()\nfrom source",
    "select `reflect` from source;",
]
BAD = [
    ("", "0 statements"),
    ("select 1; select 2", "2 statements"),
    ("drop table source", "DROP"),
    ("insert into t select * from source", "INSERT"),
    ("create table x as select 1", "CREATE"),
    ("add jar x", "only one SELECT"),
    ("set a=b", "SET"),
    ("cache table source", "CACHE"),
    ("select * from", "no SQL that Spark reads"),
    ("select * from other", "reads other"),
    ("select * from db.source", "reads db.source"),
    ("select * from parquet.`/etc/passwd`", "may read only source"),
    ("select * from source where exists (select 1 from csv.`/y`)", "may read only source"),
    ("with source as (select * from json.`/x`) select * from source", "may read only source"),
    ("select * from range(10)", "may read only source"),
    ("select * from identifier('parquet.`/x`')", "may read only source"),
    ("from other select *", "reads other"),
    ("select reflect('java.lang.System', 'exit', 0) from source", "calls reflect"),
    ("select `reflect`('a', 'b') from source", "calls reflect"),
    ("select system.builtin.reflect('a', 'b') from source", "calls reflect"),
    ("select builtin.java_method('a', 'b') from source", "calls java_method"),
    ("select try_reflect('a', 'b') from source", "calls try_reflect"),
    ("select reflect/**/('a') from source", "calls reflect"),
    ("select r'\\', reflect('a', 'b'), '\\'' from source", "calls reflect"),
    ("select transform(a) using 'cat' from source", "not allowed"),
    ("select identifier('reflect')('a') from source", "no SQL that Spark reads"),
    ("select '${env:AWS_SECRET_ACCESS_KEY}' from source", "${…}"),
    ("select :x from source", "not allowed"),
    ("execute immediate 'drop table x'", "only one SELECT"),
    ("select 1 -- \r, reflect('a')\n from source", "control characters"),
    (f"select '{'x' * LENGTH_MAX}' from source", "characters"),
    ("select " + "(" * 3_000 + "1" + ")" * 3_000 + " from source", "no SQL that Spark reads"),
]


@pytest.mark.parametrize("sql", GOOD)
def test_a_select_over_the_source_is_taken(sql: str) -> None:
    check_select(sql)


@pytest.mark.parametrize(("sql", "words"), BAD)
def test_everything_else_is_refused_by_name(sql: str, words: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        check_select(sql)
    assert words in str(caught.value)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("word", ["struct", "date", "Decimal", "string", "timestamp", "boolean"])
def test_no_statement_takes_its_parser_for_ever(word: str) -> None:
    """The operator of all tenants reads them."""
    deep = f"{word}(" * 40 + "a" + ")" * 40
    with pytest.raises(InvalidRequestError, match="nests 40 calls"):
        check_select(f"select {deep} x from source")
    check_select(
        f"select {f'{word}(' * 8 + 'a' + ')' * 8} x, {word}(a) y, concat('((((((((((', ({word}(b))) from source"
    )


@pytest.mark.parametrize("sql", ["select map(a) x from source", "select map(a, b, c) x from source"])
def test_what_the_parser_falls_over_is_refused_and_no_fault_of_ours(sql: str) -> None:
    with pytest.raises(InvalidRequestError, match="no SQL that Spark reads"):
        check_select(sql)
