"""Every expression that a transform may hold without Spark gives the values that Spark gives, and
of its types, on rows that are chosen to tell the two apart."""

from __future__ import annotations

import pytest
import sqlglot
from pyspark.sql import SparkSession
from sqlglot import exp

from hudi_table.services.transforming.dialect import TAKEN
from hudi_table.services.transforming.duckdb import Database
from tests.support.alike import differences, of_statement, ours, theirs
from tests.support.scale import scale

pytestmark = pytest.mark.spark

CASTS = [
    f"cast({column} as {kind})"
    for column in ["y", "i", "l", "f", "d", "m", "s", "w", "z", "t", "n", "e", "b"]
    for kind in ("smallint", "int", "bigint", "double", "decimal(12,2)", "string", "boolean", "date", "timestamp", "timestamp_ntz")
]  # fmt: skip
ARITHMETIC = [
    f"{one} {operator} {other}2"
    for one, other in [*((x, y) for x in "yhild" for y in "yhild"), ("m", "d"), ("d", "m")]
    for operator in ("+", "-", "*", "/", "%", "=", "<", "<=>")
]
OF_EACH = [
    form.format(column)
    for column in ["y", "i", "l", "d", "m", "s", "w", "z", "t", "n", "e", "b", "v"]
    for form in (
        "{0}", "{0} is null", "{0} is not null", "{0} <=> {0}2", "{0} = {0}2", "{0} <> {0}2", "{0} > {0}2", "{0} <= {0}2", "{0} >= {0}2",
        "coalesce({0}, {0}2)", "greatest({0}, {0}2)", "least({0}, {0}2)", "nullif({0}, {0}2)", "if(b, {0}, {0}2)", "case when b then {0} end",
        "{0} in ({0}2, null)", "{0} between {0}2 and {0}", "named_struct('q', {0})", "to_date({0})", "to_timestamp({0})", "timestamp({0})",
    )
]  # fmt: skip
OTHERS = [
    *(f"{function}({column})" for function in ("year", "month", "day") for column in "tnesz"),
    *(f"timestamp_{unit}({column})" for unit in ("seconds", "millis", "micros") for column in "yldmsb"),
    *(f"date_format({column}, '{form}')" for column in "tnez" for form in ("yyyyMMddHH", "yyyy-MM-dd HH:mm:ss", "dd/MM/yyyy")),
    *(f"{function}(s)" for function in ("upper", "lower", "length", "char_length", "md5")), "sha2(s, 256)", "sha2(v, 256)", "md5(v)",
    "to_timestamp('2024-01-01T10:00:00+02:00')", "timestamp'2024-01-01 10:00:00-08:00'", "date'2024-02-29'", "cast(' 12 ' as int)",
    "y + 1", "h + 1", "i + 1", "l * 2", "y % 3", "-i", "-y", "- (i + 1)", "abs(i)", "abs(d)", "abs(m)", "i / 2", "i - -1", "cast(0.1 + 0.2 as decimal(5,2))", "1 / 3", "-7 % 3",
    "coalesce(y, 0)", "greatest(y, 1)", "least(i, 5)", "if(b, y, 0)", "case when i > 0 then 'p' when i < 0 then 'n' end", "case i when 1 then 'a' end",
    "d > 1", "i in (1, -7)", "i not in (1, null)", "i in (1, 2.5)", "i between 0 and 5", "nullif(i, 1)", "nvl(s, 'none')", "greatest(i, null)",
    "b and b2", "b or b2", "not b", "b and i > 0", "s like 'a%'", "s like '%é_'", "s like '_'", "s not like 'a_'", "t = e", "t < n", "n = e", "s || w", "s || i",
    "concat(s, '-', i)", "concat(s, t)", "concat(e, b)", "concat_ws('-', s, i, null, e)", "concat_ws(s, s2, w)", "replace(s, 'a', 'xx')", "replace(s, '', 'x')",
    "substring(s, 0, 2)", "substring(s, 2, 2)", "substring(s, 3)", "substr(s, 2, 0)", "struct(i, s)", "named_struct('k', i, 'o', s)", "r.x", "r.z", "named_struct('q', i).q", "r", "a", "g",
    *(f"{function}({column})" for function in ("hour", "minute", "second", "quarter", "dayofweek") for column in "tnez"),
    *(f"{function}({column})" for function in ("trim", "ltrim", "rtrim") for column in "swz"), "trim(leading from s)", "size(a)", "size(g)",
    *(f"{function}({both})" for function in ("startswith", "endswith", "contains") for both in ("s, s2", "s, 'a'", "s, ''", "s, 'é'", "v, v2", "a, a2")),
    "m * k", "k * l", "cast(m * i as decimal(20,2))", "coalesce(i, 'a')", "if(b, m, 'a')", "true", "null", "1", "1.5", "1.50", "3000000000", "1e3", "'a'", "'a\\nb'", '"q"', "1L", "1.5D", "cast(null as int)", "cast(m as decimal(4,1))",
    "cast(w as decimal(5,2))", "cast(l as float)", "cast(v as string)", "cast(t as varchar(3))", "current_timestamp() > t", "(i)", "f", "cast(f as double) + 1", "f + 1", "cast(i as float) / 2",
]  # fmt: skip
EXPRESSIONS = [*CASTS, *ARITHMETIC, *OF_EACH, *OTHERS]
QUICK = [*CASTS[::3], *ARITHMETIC[::3], *OF_EACH[::4], *OTHERS]
"""What `make test` asks Spark: of each product a part in which each column meets other forms, as
many as there are of each."""
STATEMENTS = [
    "select a.* except (v) from source a where i > 0",
    "select * except (a, v) from source where b",
    "select i, explode(a) e from source",
    "select b, count(*) n, min(l) low, max(s) high, count(i) m from source group by b having count(*) > 0",
    "select i from (select *, row_number() over (partition by b order by i desc, id) nr from source) where nr = 1",
    "select i from source qualify row_number() over (partition by b order by i, id) = 1",
    "with x as (select distinct b from source) select b from x union all select null",
    "select I from SOURCE where S = 'aB'",
    "select s, i from source order by s, i",
    "select id, max(l) over (partition by b order by id rows between 1 preceding and current row) high from source",
]


def _nodes(sql: str) -> set[type[exp.Expr]]:
    return {type(node) for node in sqlglot.parse_one(sql, dialect="spark").walk()}


def test_what_is_translated_is_compared_with_spark() -> None:
    compared = set[type[exp.Expr]]().union(
        *(_nodes(f"select {each} o from source") for each in EXPRESSIONS), *map(_nodes, STATEMENTS)
    )
    assert compared >= TAKEN, {node.__name__ for node in TAKEN - compared}


def test_expressions_give_what_spark_gives_or_are_refused(spark: SparkSession) -> None:
    database = Database()
    answers = [(each, ours(each, database)) for each in (EXPRESSIONS if scale() > 1 else QUICK)]
    database.close()
    answered = [(each, answer) for each, answer in answers if not answer.refused]
    found = {each: said for each, mine, other in theirs(spark, answered) if (said := differences(mine, other))}
    assert not found, "\n".join(f"{each}: {said[:3]}" for each, said in found.items())


@pytest.mark.parametrize("sql", STATEMENTS)
def test_a_statement_gives_the_rows_that_spark_gives(spark: SparkSession, sql: str) -> None:
    mine, other = of_statement(spark, sql)
    assert mine == other
