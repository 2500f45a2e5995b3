"""What happens to the rows of an ingest between source and table: transforms and expectations."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from hudi_operator.api.fields.patterns import NAME
from hudi_operator.api.schema import Rule, prop


class OnError(StrEnum):
    """What becomes of a message that cannot be read, or of a row that a transform cannot take."""

    FAIL = "Fail"
    QUARANTINE = "Quarantine"


@dataclass(frozen=True, slots=True)
class FlattenSpec:
    """The fields of structs become columns."""

    separator: str = prop("between the names of a struct and of its field", "_", max_length=8)


@dataclass(frozen=True, slots=True)
class TransformSpec:
    """One step between source and table."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "[has(self.sql), has(self.flatten), has(self.function)].filter(x, x).size() == 1",
            "a transform has sql, flatten or function, one of them",
            "",
            lambda t: [t.sql, t.flatten, t.function].count(None) == 2,
        ),
        Rule(
            "!has(self.onFail) || !has(self.flatten)",
            "flatten takes every row: onFail goes with sql or function",
            "onFail",
            lambda t: t.on_fail is None or t.flatten is None,
        ),
    )

    sql: str | None = prop(
        "one SELECT over the table named source, in Spark's dialect", None, min_length=1, max_length=16_384
    )
    flatten: FlattenSpec | None = prop("the fields of structs become columns", None)
    function: str | None = prop(
        "name of a Python function from an Arrow table to another, an entry point of the group hudi_table.transforms in the jobs' image",
        None,
        min_length=1,
        max_length=128,
    )
    on_fail: OnError | None = prop(
        "a row that the step cannot take ends the ingest, or goes to the error table; Fail if absent. Quarantine needs that each row comes out of it by itself",
        None,
    )

    @property
    def quarantines(self) -> bool:
        """Whether rows may go to the error table."""
        return self.on_fail is OnError.QUARANTINE


class OnFail(StrEnum):
    """What becomes of a row that does not meet an expectation."""

    FAIL = "Fail"
    QUARANTINE = "Quarantine"
    DROP = "Drop"


@dataclass(frozen=True, slots=True)
class ExpectationSpec:
    """What each row of the source must hold."""

    name: str = prop("name of the expectation, unique in the ingest", pattern=NAME, max_length=40)
    sql: str = prop("a condition on one row, in Spark's dialect, such as fare >= 0", min_length=1, max_length=4096)
    on_fail: OnFail = prop(
        "a row of which it is not true ends the ingest, goes to the error table, or is left out", OnFail.FAIL
    )
