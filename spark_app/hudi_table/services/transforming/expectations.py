"""What rows of a source must hold: conditions in SQL, asked of all rows of a commit at once, before
any transform."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_table.errors import InvalidRequestError
from hudi_table.model.names import IS_DELETED
from hudi_table.services.transforming.chain_check import check_expectations
from hudi_table.services.transforming.dialect import Select, to_duckdb
from hudi_table.services.transforming.duckdb import Database


class OnFail(StrEnum):
    """What becomes of a row that does not meet an expectation."""

    FAIL = "Fail"
    QUARANTINE = "Quarantine"
    DROP = "Drop"


@dataclass(frozen=True, slots=True)
class Failure:
    """Row `row` does not meet the expectation `name`."""

    row: int
    name: str
    on_fail: OnFail


@dataclass(frozen=True, slots=True)
class Expectations:
    """Conditions with names, checked."""

    names: tuple[str, ...]
    conditions: tuple[str, ...]
    on_fail: tuple[OnFail, ...]
    _select: Select | None

    @classmethod
    def of(cls, raw: Sequence[Mapping[str, Any]]) -> Expectations:
        """From `[{name, sql, onFail}]`. Raises InvalidRequestError that names the expectation that
        is wrong."""
        check_expectations(raw)
        names = tuple(str(each["name"]) for each in raw)
        asked = ", ".join(f"({each['sql']}) AS e{number}" for number, each in enumerate(raw))
        select = to_duckdb(f"SELECT {asked} FROM source") if raw else None  # noqa: S608 - each was checked
        kinds = tuple(OnFail(str(each.get("onFail", OnFail.FAIL))) for each in raw)
        return cls(names, tuple(str(each["sql"]) for each in raw), kinds, select)

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self.names)

    def failures(self, rows: pa.Table, database: Database) -> list[Failure]:
        """The first that each row does not meet, by row; a condition that is null is not met. Rows
        that delete have nothing to meet."""
        if self._select is None or not len(rows):
            return []
        answers = database.rows(self._select, rows.to_reader()).read_all()
        exempt = np.zeros(len(rows), bool)
        if IS_DELETED in rows.column_names:
            exempt = rows.column(IS_DELETED).to_numpy()
        found: dict[int, Failure] = {}
        for number, (name, kind) in enumerate(zip(self.names, self.on_fail, strict=True)):
            column = answers.column(f"e{number}")
            if column.type != pa.bool_():
                raise InvalidRequestError(
                    f"expectation {name!r} is {column.type}, which is no condition: {self.conditions[number]}"
                )
            met = pc.fill_null(column, False).to_numpy()
            for row in np.flatnonzero(~met & ~exempt).tolist():
                found.setdefault(row, Failure(row, name, kind))
        return [found[row] for row in sorted(found)]
