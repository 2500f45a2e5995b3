"""What options ask of validators: which there are, and their queries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from hudi_table.errors import InvalidOptionError, InvalidRequestError
from hudi_table.model.options.validators import PREFIX, VALIDATORS
from hudi_table.services.select_check import SOURCE
from hudi_table.services.transforming.dialect import Select, to_duckdb

TABLE_NAME = "<TABLE_NAME>"
_PACKAGE = "org.apache.hudi.client.validator."


class Kind(Enum):
    """A validator by Hudi's name of its class, without the package."""

    EQUALITY = "SqlQueryEqualityPreCommitValidator"
    INEQUALITY = "SqlQueryInequalityPreCommitValidator"
    SINGLE_VALUE = "SqlQuerySingleResultPreCommitValidator"

    @property
    def option(self) -> str:
        """The option that holds its queries."""
        return f"{PREFIX}{self.name.lower().replace('_', '.')}.sql.queries"


@dataclass(frozen=True, slots=True)
class Query:
    """One query. `text` is as the option gives it, `expected` what a single value must be."""

    kind: Kind
    text: str
    select: Select
    expected: str = ""


def queries_of(options: Mapping[str, str]) -> list[Query]:
    """All queries that the options ask for. Raises InvalidOptionError for a validator that is not
    known, one without queries and queries without their validator; InvalidRequestError for a query
    that cannot be run."""
    kinds = list(dict.fromkeys(_kinds(options.get(VALIDATORS, ""))))
    for kind in Kind:
        if options.get(kind.option, "").strip() and kind not in kinds:
            raise InvalidOptionError(
                f"{kind.option} is set, and {VALIDATORS} does not name {_PACKAGE}{kind.value}, so that nobody runs it: add the name, "
                "or leave the queries out"
            )
    return [query for kind in kinds for query in _queries(kind, options.get(kind.option, ""))]


def _kinds(names: str) -> Iterator[Kind]:
    known = {f"{_PACKAGE}{kind.value}": kind for kind in Kind}
    for name in filter(None, map(str.strip, names.split(","))):
        if name not in known:
            raise InvalidOptionError(
                f"{VALIDATORS} names {name!r}, a class of Java that does not run here; there are {', '.join(known)}"
            )
        yield known[name]


def _queries(kind: Kind, text: str) -> Iterator[Query]:
    found = [part.strip() for part in text.split(";") if part.strip()]
    if not found:
        raise InvalidOptionError(f"{VALIDATORS} names {kind.value}, and {kind.option} has no query: give one")
    for part in found:
        query, expected = part, ""
        if kind is Kind.SINGLE_VALUE:
            query, divided, expected = part.partition("#")
            if not divided or "#" in expected:
                raise InvalidOptionError(f"{kind.option} has {part!r}: give a query, # and the value that it must have")
        if TABLE_NAME not in query:
            raise InvalidOptionError(f"{kind.option} has {part!r}, which asks nothing of {TABLE_NAME}")
        try:
            yield Query(kind, part, to_duckdb(query.replace(TABLE_NAME, SOURCE)), expected.strip())
        except InvalidRequestError as error:
            raise InvalidRequestError(f"{kind.option}, {part!r}: {error.message}") from error
