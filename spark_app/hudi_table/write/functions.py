"""Functions of one's own: mergers and key generators, registered by name in the process that
writes.

A table stores the name and never code, so a table cannot make its writer run anything. The function
itself travels with the tasks: on Spark it is pickled by value where it was defined in a script, by
reference where it lies in an installed module.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from hudi_table.codec.conform import conform
from hudi_table.errors import InvalidDataError, InvalidRequestError
from hudi_table.model.counts import counted
from hudi_table.model.names import IS_DELETED
from hudi_table.model.options.write_options import CUSTOM_KEYS, CUSTOM_MERGER
from hudi_table.model.table.config import TableConfig

MergeFunction: TypeAlias = Callable[[pa.Table, pa.Table], pa.Table]
KeyFunction: TypeAlias = Callable[[pa.Table], pa.Array]

F = TypeVar("F")
_mergers: dict[str, MergeFunction] = {}
_key_generators: dict[str, KeyFunction] = {}


def register_merger(name: str, function: MergeFunction) -> None:
    """Make `function` the merger `name` of this process, for tables created with `merger=name`.

    `function(stored, incoming)` gets two tables of the table's columns, whose rows at one position
    have the same key, and returns the rows to store: as many, in the same order, with key and
    partition columns as they were. Rows that it marks by true in `_hoodie_is_deleted` are deleted.
    It sees neither new keys nor deletes, and must depend on nothing but its arguments.
    """
    _register(_mergers, name, function)


def register_key_generator(name: str, function: KeyFunction) -> None:
    """Make `function` the key generator `name` of this process, for tables created with
    `key_generator=name`.

    `function(rows)` gets a table of the record key columns and returns one text for each row, never
    null or empty.
    """
    _register(_key_generators, name, function)


def custom_merger(config: TableConfig) -> Merger | None:
    """The table's own merger, if it names one. Raises InvalidRequestError where this process does
    not know it."""
    name = config.extra.get(CUSTOM_MERGER)
    if not name:
        return None
    function = _known(_mergers, name, f"table {config.name!r} merges rows by the function", "register_merger")
    return Merger(name, function, tuple(dict.fromkeys((*config.record_key, *config.partition_fields))))


def custom_keys(config: TableConfig) -> Keys | None:
    """The table's own key generator, if it names one. Raises InvalidRequestError where this process
    does not know it."""
    name = config.extra.get(CUSTOM_KEYS)
    if not name:
        return None
    what = f"table {config.name!r} makes its record keys by the function"
    return Keys(name, _known(_key_generators, name, what, "register_key_generator"))


@dataclass(frozen=True, slots=True)
class Merger:
    """A merger whose results are checked. `fixed` are the columns that it must leave alone."""

    name: str
    function: MergeFunction
    fixed: tuple[str, ...]

    def __call__(self, stored: pa.Table, incoming: pa.Table) -> pa.Table:
        """The rows to store, in the schema of `stored`, and whether each is deleted. Raises
        InvalidDataError."""
        result = self.function(stored, incoming)
        if not isinstance(result, pa.Table) or len(result) != len(stored):
            shown = counted(len(result), "row") if isinstance(result, pa.Table) else type(result).__name__
            raise InvalidDataError(
                f"merger {self.name!r} returned {shown} for {len(stored)}: return a table of as many rows"
            )
        for column in self.fixed:
            name = column.partition(".")[0]
            # A key generator of one's own may make one key of two values, so either will do.
            same = name in result.schema.names and any(
                result.column(name).equals(rows.column(name)) for rows in (stored, incoming)
            )
            if not same:
                raise InvalidDataError(
                    f"merger {self.name!r} changed the key or partition column '{name}': return it as it was given"
                )
        wanted = stored.schema
        if IS_DELETED in result.schema.names and IS_DELETED not in wanted.names:
            wanted = wanted.append(pa.field(IS_DELETED, pa.bool_()))
        missing = [name for name in wanted.names if name not in result.schema.names]
        if missing:
            raise InvalidDataError(
                f"merger {self.name!r} returned no column '{missing[0]}': return all that it was given"
            )
        return conform(result, wanted)


@dataclass(frozen=True, slots=True)
class Keys:
    """A key generator whose results are checked."""

    name: str
    function: KeyFunction

    def __call__(self, rows: pa.Table) -> pa.Array:
        """One key per row. Raises InvalidDataError."""
        result = self.function(rows)
        if isinstance(result, pa.ChunkedArray):
            result = result.combine_chunks()
        if not isinstance(result, pa.Array) or len(result) != len(rows) or not pa.types.is_string(result.type):
            shown = f"{result.type} of {len(result)}" if isinstance(result, pa.Array) else type(result).__name__
            raise InvalidDataError(
                f"key generator {self.name!r} returned {shown}: return {len(rows)} values of type string"
            )
        if result.null_count or pc.any(pc.equal(result, "")).as_py():
            raise InvalidDataError(f"key generator {self.name!r} returned null or '': every row needs a key")
        return result


def _register(known: dict[str, F], name: str, function: F) -> None:
    if not name or not callable(function):
        raise InvalidRequestError(f"{function!r} cannot be registered as {name!r}; give a name and a function")
    known[name] = function


def _known(known: dict[str, F], name: str, what: str, register: str) -> F:
    if name not in known:
        raise InvalidRequestError(
            f"{what} {name!r}, which this process does not know: call hudi_table.{register}({name!r}, function) first"
        )
    return known[name]
