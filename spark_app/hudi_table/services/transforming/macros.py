"""Macros of DuckDB that mean what a function or a cast of Spark means.

Where that differs by the type of a value, which only the rows tell, they ask for its type. What
would be another value is an error.
"""

from __future__ import annotations

_WHOLE = r"'^[+-]?[0-9]+$'"
_INTEGER = """CREATE MACRO spark_{name}(x) AS CASE
  WHEN typeof(x) IN ('DOUBLE', 'FLOAT') THEN CAST(trunc(TRY_CAST(x AS DOUBLE)) AS {kind})
  WHEN typeof(x) LIKE 'DECIMAL%' THEN CAST(split_part(CAST(x AS VARCHAR), '.', 1) AS {kind})
  WHEN typeof(x) = 'VARCHAR' THEN CASE WHEN regexp_matches(trim(CAST(x AS VARCHAR)), {whole}) THEN CAST(trim(CAST(x AS VARCHAR)) AS {kind})
    WHEN x IS NULL THEN NULL ELSE error(concat(CAST(x AS VARCHAR), ' is no whole number')) END
  WHEN typeof(x) LIKE '%INT' OR typeof(x) IN ('INTEGER', 'BOOLEAN') THEN CAST(TRY_CAST(x AS HUGEINT) AS {kind})
  WHEN x IS NULL THEN NULL
  ELSE error(concat('a ', typeof(x), ' is not cast to {name}')) END"""
_NUMBERS = "TINYINT|SMALLINT|INTEGER|BIGINT|FLOAT|DOUBLE|BOOLEAN|DECIMAL.*"
_DAY, _TIME = "[0-9]{4}-[0-9]{2}-[0-9]{2}", "([01][0-9]|2[0-3]):[0-9]{2}:[0-9]{2}([.][0-9]{1,6})?"
_TEXTS = (
    ("number", _NUMBERS, "[+-]?([0-9]+([.][0-9]*)?|[.][0-9]+)([eE][+-]?[0-9]+)?"),
    ("truth", _NUMBERS, "(?i)t|f|true|false|0|1"),
    ("date", "DATE|TIMESTAMP.*", _DAY),
    ("timestamp", "DATE|TIMESTAMP.*", f"{_DAY}([ T]{_TIME}(Z|[+-][0-9]{{2}}:[0-9]{{2}})?)?"),
    ("clock", "DATE|TIMESTAMP.*", f"{_DAY}([ T]{_TIME})?"),
)
"""Of casts: whose values are cast, and the texts that both engines read alike."""

_LETTERS = (("upper", "ßŉǰΐΰևẖ-ẞᾀ-῿ﬀ-ﬗ"), ("lower", "İΣ"))
"""Which DuckDB changes one by one, and Spark by their place and into several."""


def _text_macro(name: str, kinds: str, form: str) -> str:
    return f"""CREATE MACRO spark_{name}(x) AS CASE
  WHEN x IS NULL OR regexp_matches(typeof(x), '^({kinds})$') THEN x
  WHEN typeof(x) = 'VARCHAR' AND regexp_matches(CAST(x AS VARCHAR), '^ *({form}) *$') THEN x
  WHEN typeof(x) = 'VARCHAR' THEN error(concat('the text "', CAST(x AS VARCHAR), '" is read as no {name} here'))
  ELSE error(concat('a ', typeof(x), ' is cast to no {name}')) END"""


def _case_macro(name: str, letters: str) -> str:
    return f"""CREATE MACRO spark_{name}(x) AS CASE
  WHEN regexp_matches(CAST(x AS VARCHAR), '[{letters}]')
    THEN error(concat('the text "', CAST(x AS VARCHAR), '" has a letter that {name} makes several letters of in Spark'))
  ELSE {name}(x) END"""


def _moment_macro(name: str, micros: int) -> str:
    return f"""CREATE MACRO spark_{name}(n) AS CASE
  WHEN n IS NULL THEN NULL
  WHEN regexp_matches(typeof(n), '^(TINYINT|SMALLINT|INTEGER|BIGINT)$')
    THEN CAST(make_timestamp({micros} * TRY_CAST(n AS BIGINT)) AS TIMESTAMPTZ)
  ELSE error(concat('timestamp_{name} takes whole numbers here, no ', typeof(n), ': cast it to bigint')) END"""


MACROS = (
    *(
        _INTEGER.format(name=name, kind=kind, whole=_WHOLE)
        for name, kind in (("tinyint", "TINYINT"), ("smallint", "SMALLINT"), ("int", "INTEGER"), ("bigint", "BIGINT"))
    ),
    # Of a moment Spark writes no zone; of a number with an exponent it writes other digits.
    """CREATE MACRO spark_text(x) AS CASE
  WHEN x IS NULL THEN NULL
  WHEN typeof(x) = 'TIMESTAMP WITH TIME ZONE' THEN CAST(TRY_CAST(x AS TIMESTAMP) AS VARCHAR)
  WHEN typeof(x) = 'BLOB' THEN decode(TRY_CAST(x AS BLOB))
  WHEN typeof(x) IN ('VARCHAR', 'INTEGER', 'BOOLEAN', 'DATE') OR typeof(x) LIKE '%INT' OR typeof(x) LIKE 'DECIMAL%' OR typeof(x) LIKE 'TIMESTAMP%'
    THEN CAST(x AS VARCHAR)
  ELSE error(concat('a ', typeof(x), ' is not made text here: cast it to a decimal, or take its fields')) END""",
    (
        "CREATE MACRO spark_concat(parts) AS CASE WHEN list_contains(list_transform(parts, lambda p: p IS NULL), true) THEN NULL"
        " ELSE array_to_string(parts, '') END"
    ),
    """CREATE MACRO spark_div(x, y) AS CASE
  WHEN typeof(x) LIKE 'DECIMAL%' OR typeof(y) LIKE 'DECIMAL%' THEN error('decimals are not divided here: cast one of them to double')
  WHEN y = 0 THEN error('division by zero') ELSE x / y END""",
    "CREATE MACRO spark_mod(x, y) AS CASE WHEN y = 0 THEN error('division by zero') ELSE x % y END",
    *map(_moment_macro, ("millis", "micros", "seconds"), (1_000, 1, 1_000_000)),
    *(_text_macro(*each) for each in _TEXTS),
    # Of lists and bytes DuckDB has functions of these names, too.
    *(
        f"CREATE MACRO spark_{name}(x, y) AS {function}(replace(x, '', ''), y)"
        for name, function in (("startswith", "starts_with"), ("endswith", "ends_with"), ("contains", "contains"))
    ),
    *(_case_macro(*each) for each in _LETTERS),
    # Of a number with a fraction Spark takes the digits that it would write.
    """CREATE MACRO spark_digits(x) AS CASE
  WHEN typeof(x) IN ('DOUBLE', 'FLOAT') THEN CAST(TRY_CAST(x AS DOUBLE) AS VARCHAR)
  WHEN typeof(x) = 'BOOLEAN' THEN CASE CAST(x AS VARCHAR) WHEN 'true' THEN '1' WHEN 'false' THEN '0' END
  ELSE CAST(spark_number(x) AS VARCHAR) END""",
)
