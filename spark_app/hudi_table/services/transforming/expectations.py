"""What rows of a source must hold: conditions in SQL, asked of all rows of a commit at once, before
any transform."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_table.errors import InvalidDataError, InvalidRequestError, InvariantError
from hudi_table.model.names import IS_DELETED
from hudi_table.services.transforming.by_row import Places, failing
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
    """Row `row` does not meet the expectation `name`; `why`: what is wrong where it cannot be
    asked."""

    row: int
    name: str
    on_fail: OnFail
    why: str = ""


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
        conditions = tuple(str(each["sql"]) for each in raw)
        select = _asking(conditions) if raw else None
        kinds = tuple(OnFail(str(each.get("onFail", OnFail.FAIL))) for each in raw)
        return cls(names, conditions, kinds, select)

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self.names)

    def words(self, failure: Failure) -> str:
        """What is not met."""
        number = self.names.index(failure.name)
        why = f", which cannot be asked of it: {failure.why}" if failure.why else ""
        return f"expectation {failure.name!r}: {self.conditions[number]}{why}"

    def failures(self, rows: pa.Table, database: Database, most: int) -> list[Failure]:
        """The first that each row does not meet, by row; a condition that is null is not met, nor
        is one that a row cannot be asked. Rows that delete have nothing to meet.

        Raises InvalidDataError where more than `most` rows cannot be asked.
        """
        places = np.arange(len(rows))
        if IS_DELETED in rows.column_names:
            places = np.flatnonzero(~rows.column(IS_DELETED).to_numpy())
        if self._select is None or not len(places):
            return []
        try:
            return self._unmet(rows, places, database)
        except InvalidDataError:
            raising = failing(places, lambda some: self._raised(rows, some, database), most)
        found = [self._first(rows, place, database) for place in raising]
        found += self._unmet(rows, np.setdiff1d(places, list(raising)), database)
        return sorted(found, key=lambda each: each.row)

    def _unmet(self, rows: pa.Table, places: Places, database: Database) -> list[Failure]:
        """Of rows that all can be asked. Raises InvalidDataError."""
        assert self._select is not None
        some = rows if len(places) == len(rows) else rows.take(pa.array(places))
        answers = database.rows(self._select, some.to_reader()).read_all()
        found: dict[int, Failure] = {}
        for number, (name, kind) in enumerate(zip(self.names, self.on_fail, strict=True)):
            met = self._met(answers, number)
            for row in np.flatnonzero(~met).tolist():
                found.setdefault(row, Failure(int(places[row]), name, kind))
        return [found[row] for row in sorted(found)]

    def _met(self, answers: pa.Table, number: int) -> npt.NDArray[np.bool_]:
        column = answers.column(f"e{number}")
        if column.type != pa.bool_():
            raise InvalidRequestError(
                f"expectation {self.names[number]!r} is {column.type}, which is no condition: {self.conditions[number]}"
            )
        found: npt.NDArray[np.bool_] = pc.fill_null(column, False).to_numpy()
        return found

    def _raised(self, rows: pa.Table, places: Places, database: Database) -> str:
        try:
            self._unmet(rows, places, database)
        except InvalidDataError as error:
            return error.message
        return ""

    def _first(self, rows: pa.Table, place: int, database: Database) -> Failure:
        """Of a row that cannot be asked: by which it fails."""
        for name, condition, kind in zip(self.names, self.conditions, self.on_fail, strict=True):
            alone = Expectations((name,), (condition,), (kind,), _asking([condition]))
            try:
                unmet = alone._unmet(rows, np.array([place]), database)
            except InvalidDataError as error:
                return Failure(place, name, kind, error.message)
            if unmet:
                return unmet[0]
        raise InvariantError(f"row {place} can be asked each expectation, and not all of them")


def _asking(conditions: Sequence[str]) -> Select:
    asked = ", ".join(f"({each}) AS e{number}" for number, each in enumerate(conditions))
    return to_duckdb(f"SELECT {asked} FROM source")  # noqa: S608 - each was checked
