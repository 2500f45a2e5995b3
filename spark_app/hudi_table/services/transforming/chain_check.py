"""What transforms must be where rows have an order or delete others, and what expectations must be:
told from their words, before anything is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hudi_table.errors import InvalidRequestError
from hudi_table.model.names import IS_DELETED
from hudi_table.services.transforming.dialect import to_duckdb
from hudi_table.services.transforming.shape import Shape, shape_of

APART = "Quarantine"
"""`onFail` of a step: a row that it cannot take is kept apart. Else it ends the ingest."""


def check_by_row(chain: Sequence[Mapping[str, Any]]) -> None:
    """Raises InvalidRequestError where a step is to keep rows apart that it cannot take, and it or
    one before it does not make each row of one row."""
    asked = [number for number, raw in enumerate(chain) if raw.get("onFail") not in (None, "Fail")]
    for number in asked:
        kind = chain[number]["onFail"]
        if kind != APART or chain[number].get("flatten") is not None:
            what = "flatten, which takes every row" if kind == APART else f"onFail {kind!r}"
            raise InvalidRequestError(
                f"transform {number + 1} has {what}: give onFail Fail or {APART}, the latter with sql or function"
            )
    for number, raw in enumerate(chain[: max(asked, default=-1) + 1]):
        if raw.get("sql") is not None and not to_duckdb(str(raw["sql"])).shape.keeps_order:
            raise InvalidRequestError(
                f"transform {number + 1} groups, sorts, unites or nests, so that no single row can be told that a step fails on: "
                f"leave out onFail {APART}, or give plain SELECTs up to it"
            )


def check_chain(
    chain: Sequence[Mapping[str, Any]],
    *,
    arrival_decides: bool,
    deletes: Sequence[str] = (),
    setting: str = "kafka.tombstones",
    by_spark: bool = False,
) -> None:
    """Check the chain of a stream. `arrival_decides`: of two rows with one key the later one wins.
    `deletes`: the columns by which those that delete others name them, empty where none do;
    `setting`: what asks for them, empty where the source always has them. `by_spark`: Spark runs
    every SELECT, so that none needs to be translated.

    Raises InvalidRequestError that says what is wrong and what to do.
    """
    for number, raw in enumerate(chain):
        if raw.get("sql") is None:
            if deletes and raw.get("function") is not None:
                raise InvalidRequestError(_loses_deletes(number + 1, setting))
            continue
        sql = str(raw["sql"])
        shape = shape_of(sql) if by_spark else to_duckdb(sql).shape
        if arrival_decides and not shape.keeps_order:
            raise InvalidRequestError(
                f"transform {number + 1} groups, sorts, unites or nests, after which rows have no order, and the table has no orderingFields, so the "
                "latest of a key wins: give a plain SELECT, or orderingFields (of Kafka such as _kafka_offset, with kafka.metadata offset)"
            )
        _check_deletes(shape, deletes, number + 1, setting)


def _loses_deletes(number: int, setting: str) -> str:
    if not setting:
        return (
            f"transform {number} is a function, and change events delete rows: whether it hands on {IS_DELETED}, the key and the "
            "order of events is not known before it runs: give SQL"
        )
    return f"a transform function beside {setting} Delete might lose deletes: give SQL, or another {setting}"


def _check_deletes(shape: Shape, needed: Sequence[str], number: int, setting: str) -> None:
    if not needed:
        return
    if not shape.keeps_deletes:
        why = (
            f"{setting} is Delete (a tombstone of Kafka holds its key alone)"
            if setting
            else "change events delete rows"
        )
        raise InvalidRequestError(
            f"transform {number} may leave out rows that delete others, and {why}: "
            f"let its WHERE say OR {IS_DELETED}, and give no GROUP BY, DISTINCT or explode"
        )
    missing = {*needed, IS_DELETED} - shape.keeps([*needed, IS_DELETED])
    if missing:
        other = f", or give another {setting}" if setting else ""
        raise InvalidRequestError(
            f"transform {number} does not hand on {', '.join(sorted(missing))} as it is, which deletes need: select it{other}"
        )


def check_expectations(raw: Sequence[Mapping[str, Any]]) -> None:
    """Raises InvalidRequestError that names the expectation that is wrong."""
    names = [str(each["name"]) for each in raw]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InvalidRequestError(f"two expectations are called {twice!r}")
    for name, each in zip(names, raw, strict=True):
        try:
            select = to_duckdb(f"SELECT ({each['sql']}) AS e FROM source")  # noqa: S608 - to be checked
        except InvalidRequestError as error:
            raise InvalidRequestError(f"expectation {name!r}: {error.message}") from error
        if not select.is_one_expression:
            raise InvalidRequestError(f"expectation {name!r} is no condition on one row: {each['sql']}")
