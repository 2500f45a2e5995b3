"""Statements that Spark would carry out in its own catalog alone, refused: they would succeed and
do nothing to a Hudi table.

Facts (pyspark 4.3): Spark keeps the location and the properties of a table of its catalog from
sources in Python; `CREATE TABLE` that lists columns, and `ALTER TABLE`, ask no source at all;
`toTable` and `writeTo(…).create()` make the name before they ask one. So they are refused in
Python, where a session has been registered.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

from pyspark.errors import PySparkException

from hudi_spark.datasource.format_options import NO_CATALOG
from hudi_spark.datasource.save_modes import NAMES
from hudi_table.errors import InvalidRequestError

_QUOTED = re.compile(r"--[^\n]*|/\*.*?\*/|'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"", re.DOTALL)
_CREATES = re.compile(
    r"^\s*(?:create|replace)\s+(?:or\s+replace\s+)?(?:external\s+)?table\b.*?\busing\s+`?(?:hudi|org\.apache\.hudi)`?(?=\W|$)",
    re.IGNORECASE | re.DOTALL,
)
_CREATES_OF_THE_DEFAULT = re.compile(
    r"^\s*(?:create|replace)\s+(?:or\s+replace\s+)?(?:external\s+)?table\b(?!.*\b(?:using|like|stored|row\s+format)\b)",
    re.IGNORECASE | re.DOTALL,
)
"""A statement that leaves the source to `spark.sql.sources.default`."""
_ALTERS = re.compile(r"^\s*alter\s+table\s+(?P<name>(?:`[^`]+`|\w+)(?:\s*\.\s*(?:`[^`]+`|\w+))*)", re.IGNORECASE)
_PART = re.compile(r"`[^`]+`|\w+")
_PROVIDER = re.compile(r"^Provider: (?:hudi|org\.apache\.hudi)$", re.IGNORECASE | re.MULTILINE)
"""A line of what `SHOW TABLE EXTENDED` says of a table; `DESCRIBE` says it of other sources
alone."""
_MARK = "_refuses_idle_statements"
_SOURCE = "_source_that_was_named"


def refuse_idle_statements(spark: Any) -> None:
    """Let `sql` of sessions of this class, and `createTable` of their catalogs, raise
    InvalidRequestError for such statements; once."""
    session = type(spark)
    plain: Callable[..., Any] = session.sql
    if getattr(plain, _MARK, False):
        return

    @functools.wraps(plain)
    def sql(self: Any, sqlQuery: str, *args: Any, **more: Any) -> Any:  # noqa: N803 - Spark's name
        bare = _QUOTED.sub(" ", sqlQuery)
        if _CREATES.match(bare) or (_CREATES_OF_THE_DEFAULT.match(bare) and _is_default(self)):
            raise InvalidRequestError(NO_CATALOG)
        altered = _ALTERS.match(bare)
        if altered and _is_hudi(functools.partial(plain, self), altered["name"]):
            raise InvalidRequestError(
                f"ALTER TABLE {altered['name']} would change Spark's catalog, and the Hudi table would stay as it is: write rows that have the "
                "column (hudi_spark.write, df.write.format('hudi'))"
            )
        return plain(self, sqlQuery, *args, **more)

    setattr(sql, _MARK, True)
    session.sql = sql
    _refuse_new_tables(type(spark.catalog))


def _refuse_new_tables(catalog: type[Any]) -> None:
    """`createTable`, which `createExternalTable` calls."""
    plain: Callable[..., Any] = catalog.createTable

    @functools.wraps(plain)
    def create_table(
        self: Any, tableName: str, path: str | None = None, source: str | None = None,  # noqa: N803 - Spark's name
        *args: Any, **more: Any,
    ) -> Any:  # fmt: skip
        if source.lower() in NAMES if source else _is_default(self._sparkSession):
            raise InvalidRequestError(NO_CATALOG)
        return plain(self, tableName, path, source, *args, **more)

    catalog.createTable = create_table


def refuse_tables_of_writers(tables: type[Any], streams: type[Any]) -> None:
    """Let what makes a table by `writeTo`, and `toTable` of a DataStreamWriter class, raise
    InvalidRequestError; once."""
    if hasattr(streams.toTable, _MARK):
        return
    _keep_source(tables, "using")
    _keep_source(streams, "format")
    for method in ("create", "replace", "createOrReplace"):
        setattr(tables, method, _refusing(getattr(tables, method)))
    plain: Callable[..., Any] = streams.toTable

    @functools.wraps(plain)
    def to_table(self: Any, tableName: str, format: str | None = None, *args: Any, **more: Any) -> Any:  # noqa: A002, N803 - Spark's names
        if format is not None:
            self.format(format)
        return _refusing(plain)(self, tableName, None, *args, **more)

    setattr(to_table, _MARK, True)
    streams.toTable = to_table


def _keep_source(writer: type[Any], method: str) -> None:
    """Let a writer know which source it was told: Spark's own do not tell all of it to Python."""
    plain: Callable[..., Any] = getattr(writer, method)

    @functools.wraps(plain)
    def named(self: Any, *source: str, **more: str) -> Any:
        # By its place or by its name, which differs between the two.
        setattr(self, _SOURCE, next(iter((*source, *more.values())), None))
        return plain(self, *source, **more)

    setattr(writer, method, named)


def _refusing(plain: Callable[..., Any]) -> Callable[..., Any]:
    """A method of a writer that makes a table of the catalog, of Hudi's or of another source."""

    @functools.wraps(plain)
    def refusing(self: Any, *args: Any, **more: Any) -> Any:
        source = getattr(self, _SOURCE, None)
        session = self._spark if hasattr(self, "_spark") else self._session
        if source.lower() in NAMES if source else _is_default(session):
            raise InvalidRequestError(NO_CATALOG)
        return plain(self, *args, **more)

    return refusing


def _is_default(session: Any) -> bool:
    """Whether a table whose source is not named would be Hudi's."""
    return str(session.conf.get("spark.sql.sources.default")).lower() in NAMES


def _is_hudi(sql: Callable[..., Any], name: str) -> bool:
    """Whether the catalog's table of this name has Hudi as its source."""
    *namespace, table = (part.strip("` \n\t") for part in _PART.findall(name))
    place = "IN " + ".".join(f"`{part}`" for part in namespace) + " " if namespace else ""
    try:
        rows = sql(f"SHOW TABLE EXTENDED {place}LIKE '{table}'").collect()
    except PySparkException:
        return False  # Spark says what is wrong with the name when it gets the statement.
    return any(_PROVIDER.search(str(row["information"])) for row in rows)
