"""Fields of a record that have had other names, by the aliases in its schema.

Facts (Avro's specification): a field may have `aliases`, names that it goes by in the schema of
another. Nothing of a name is in the bytes of a record, so a schema whose fields are called
otherwise reads the same records.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from hudi_table.errors import InvalidSchemaError
from hudi_table.model.json_text import parse_json


@dataclass(frozen=True, slots=True)
class Named:
    """A field of a record, and its aliases."""

    name: str
    aliases: tuple[str, ...]


def fields_of(text: str) -> tuple[Named, ...]:
    """The fields of a schema of a record. Raises ValueError, TypeError, KeyError or AttributeError
    for what is none."""
    return tuple(
        Named(str(field["name"]), tuple(map(str, field.get("aliases") or ())))
        for field in parse_json(text).get("fields") or ()
    )


def columns_of(what: str, fields: Collection[Named], columns: Collection[str]) -> dict[str, str]:
    """Which fields of a schema, `what` in words, fill which of `columns` that have other names. A
    field that is called as a column fills that.

    Raises InvalidSchemaError where two fields claim one column, or a field two columns.
    """
    names = {field.name for field in fields}
    found: dict[str, str] = {}
    for field in fields:
        claimed = [alias for alias in dict.fromkeys(field.aliases) if alias in columns]
        if field.name in columns or not claimed:
            continue
        if len(claimed) > 1:
            raise InvalidSchemaError(
                f"{what}: aliases of field '{field.name}' name {len(claimed)} columns of the table, {' and '.join(claimed)}: "
                "leave one of them in the schema, or drop a column"
            )
        column = claimed[0]
        other = column if column in names else next((name for name, to in found.items() if to == column), None)
        if other is not None:
            raise InvalidSchemaError(
                f"{what}: fields '{other}' and '{field.name}' both claim column '{column}', the latter by an alias: "
                "take the alias out of the schema, or the other field"
            )
        found[field.name] = column
    return found


def with_columns(text: str, columns: Mapping[str, str]) -> str:
    """The schema whose fields are called as the columns that they fill."""
    if not columns:
        return text
    document = parse_json(text)
    fields = [{**field, "name": columns.get(field["name"], field["name"])} for field in document["fields"]]
    return json.dumps({**document, "fields": fields})
