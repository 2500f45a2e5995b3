"""The Avro schema of CDC blocks.

Facts (measured on Hudi 0.15.0): a record `CDC` in the namespace of the table's record; every field
is nullable, with an empty doc and default null; `after` names the record that `before` defines.
Images have the table's columns without Hudi's meta columns.
"""

from __future__ import annotations

import functools
import json
from typing import Any

from hudi_table.codec.avro.schema import full_name
from hudi_table.model.names import OPERATION_COLUMN
from hudi_table.model.table.cdc import AFTER, BEFORE, Images


@functools.lru_cache(maxsize=16)
def cdc_avro_schema(table_schema: str, images: Images) -> str:
    """Schema text of the blocks of a table whose Avro schema, without meta columns but perhaps that
    of the operation, is `table_schema`."""
    record: dict[str, Any] = json.loads(table_schema)
    full, space = full_name(record, "")
    name = full.rpartition(".")[2]
    # Inside the namespace of CDC, the record needs none of its own.
    image = {"type": "record", "name": name, "fields": [f for f in record["fields"] if f["name"] != OPERATION_COLUMN]}
    types = {BEFORE: image, AFTER: name}
    fields = [
        {"name": column, "type": ["null", types.get(column, "string")], "doc": "", "default": None}
        for column in images.columns
    ]
    head = {"type": "record", "name": "CDC", **({"namespace": space} if space else {})}
    return json.dumps({**head, "fields": fields}, separators=(",", ":"))
