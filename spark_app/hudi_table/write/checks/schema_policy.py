"""Whether an ingest may take rows whose columns are not those of its table: the one judgement for
all sources, made on schemas alone.

What a policy takes is what a write can do (see `schema_evolution`), or less. A refusal lists all of
the difference: columns that are added, those that are missing, those of another type.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.types as pt

from hudi_table.codec.arrow_types import is_any_list, normalise
from hudi_table.codec.logical_types.vectors import is_vector
from hudi_table.errors import InvalidSchemaError
from hudi_table.model.job.jobspec import SchemaPolicy
from hudi_table.model.names import IS_DELETED
from hudi_table.model.table.config import TableConfig
from hudi_table.model.table.layouts import has_logical_types
from hudi_table.write.checks.reserved_columns import own_columns
from hudi_table.write.checks.schema_evolution import evolve

LISTED_MAX = 20
"""Columns of each kind that a message names."""
TYPE_LENGTH_MAX = 120
_TAKES = {
    SchemaPolicy.REFUSE: "takes the columns of the table alone",
    SchemaPolicy.ADD_COLUMNS: "takes new columns and fills missing ones with nulls, and no other types",
    SchemaPolicy.WIDEN: "takes new columns and wider types, and fills missing columns with nulls",
    SchemaPolicy.EVOLVE: "takes new columns and wider types, and fills missing columns with nulls, required ones too",
}


@dataclass(frozen=True, slots=True)
class Difference:
    """How a source's columns differ from a table's, each by its path; nested ones too. Of a changed
    one its type in the table comes first."""

    added: tuple[tuple[str, pa.DataType], ...] = ()
    missing: tuple[tuple[str, pa.DataType], ...] = ()
    changed: tuple[tuple[str, pa.DataType, pa.DataType], ...] = ()

    def __bool__(self) -> bool:
        """Whether there is any."""
        return bool(self.added or self.missing or self.changed)

    def __str__(self) -> str:
        """All of it in words."""
        parts = [
            ("added", [f"{path} ({_kind(kind)})" for path, kind in self.added]),
            ("missing", [f"{path} ({_kind(kind)})" for path, kind in self.missing]),
            ("changed", [f"{path} {_kind(have)} -> {_kind(came)}" for path, have, came in self.changed]),
        ]
        return "; ".join(f"{name}: {_listed(found)}" for name, found in parts if found)


def difference(table: pa.Schema, incoming: pa.Schema) -> Difference:
    """How the columns of data differ from the table's; both in stored types, without Hudi's own.

    Whether values may be null is no difference, nor is a column of no type: only rows could tell.
    """
    added: list[tuple[str, pa.DataType]] = []
    missing: list[tuple[str, pa.DataType]] = []
    changed: list[tuple[str, pa.DataType, pa.DataType]] = []
    for path, have, came in _pairs("", list(table), list(incoming)):
        if have is None:
            added.append((path, came))
        elif came is None:
            missing.append((path, have))
        else:
            changed.append((path, have, came))
    return Difference(tuple(added), tuple(missing), tuple(changed))


def check_policy(
    policy: SchemaPolicy,
    table: pa.Schema,
    incoming: pa.Schema,
    *,
    keys: Collection[str] = (),
    orders: Collection[str] = (),
) -> Difference:
    """The difference of two schemas that a policy takes; see `difference` for them. `keys`: columns
    whose text stands in record keys or partition paths; `orders`: those that order rows.

    Raises InvalidSchemaError with all of the difference, and what to do.
    """
    found = difference(table, incoming)

    def refusal(of: SchemaPolicy) -> str | None:
        return _refusal(
            of,
            found,
            lambda: evolve(
                table, incoming, null_for_missing=True, keys=keys, orders=orders, relaxes=of is SchemaPolicy.EVOLVE
            ),
        )

    why = refusal(policy)
    if why is None:
        return found
    weaker = list(SchemaPolicy)[list(SchemaPolicy).index(policy) + 1 :]
    takers = [each for each in weaker if refusal(each) is None]
    step = (
        f"give schemaPolicy {takers[0]}, or correct the source"
        if takers
        else "no policy takes it: correct the source, or shape its rows by a transform"
    )
    because = f". {why}" if why else ""
    raise InvalidSchemaError(
        f"the columns of the source are not the table's, and schemaPolicy {policy} {_TAKES[policy]}: {step}. {found}{because}"
    )


def check_rows(policy: SchemaPolicy, config: TableConfig, table: pa.Schema, incoming: pa.Schema) -> None:
    """The same of rows as they come, before a write of them. Raises InvalidSchemaError."""
    known = _without_mark(table)
    stored = normalise(own_columns(incoming), known=table, logical_types=has_logical_types(config.version))
    keys = {name.partition(".")[0] for name in (*config.record_key, *config.partition_fields)}
    check_policy(
        policy,
        known,
        _without_mark(stored),
        keys=keys,
        orders={name.partition(".")[0] for name in config.ordering_fields},
    )


def check_alone(what: str, table: pa.Schema, incoming: pa.Schema) -> None:
    """Judge one schema of several, by its name, under Refuse: in the union of all it could hide
    behind the others. Raises InvalidSchemaError."""
    try:
        check_policy(SchemaPolicy.REFUSE, table, normalise(incoming, known=table))
    except InvalidSchemaError as error:
        raise InvalidSchemaError(f"{what}: {error.message}") from error


def _without_mark(schema: pa.Schema) -> pa.Schema:
    """What marks deletes is the ingest's own, and no column of a source."""
    return pa.schema([field for field in schema if field.name != IS_DELETED])


def _refusal(policy: SchemaPolicy, found: Difference, write: Callable[[], object]) -> str | None:
    """Why a policy does not take a difference, "" where the difference says it; None if it does.
    `write`: raises where a write could not."""
    if policy is SchemaPolicy.REFUSE:
        return "" if found else None
    if policy is SchemaPolicy.ADD_COLUMNS and found.changed:
        return ""
    try:
        write()
    except InvalidSchemaError as error:
        return error.message
    return None


_Pair = tuple[str, pa.DataType | None, pa.DataType | None]


def _pairs(prefix: str, table: Sequence[pa.Field], incoming: Sequence[pa.Field]) -> Iterator[_Pair]:
    """(path, the table's type, the data's) of fields that one of the two lacks, or that differ."""
    came = {field.name: field for field in incoming}
    for field in table:
        other = came.pop(field.name, None)
        path = prefix + field.name
        if other is None:
            yield path, field.type, None
        else:
            yield from _types(path, field.type, other.type)
    for field in came.values():
        yield prefix + field.name, None, field.type


def _types(path: str, have: pa.DataType, came: pa.DataType) -> Iterator[_Pair]:
    if have == came or pt.is_null(came):
        return
    if pt.is_struct(have) and pt.is_struct(came):
        yield from _pairs(f"{path}.", list(have), list(came))
    elif is_any_list(have) and is_any_list(came) and not is_vector(have) and not is_vector(came):
        yield from _types(f"{path}.element", have.value_type, came.value_type)
    elif pt.is_map(have) and pt.is_map(came) and have.key_type == came.key_type:
        yield from _types(f"{path}.value", have.item_type, came.item_type)
    else:
        yield path, have, came


def _listed(found: Sequence[str]) -> str:
    rest = len(found) - LISTED_MAX
    return ", ".join(found[:LISTED_MAX]) + (f", and {rest} more" if rest > 0 else "")


def _kind(kind: pa.DataType) -> str:
    text = str(kind)
    return text if len(text) <= TYPE_LENGTH_MAX else f"{text[: TYPE_LENGTH_MAX - 1]}…"
