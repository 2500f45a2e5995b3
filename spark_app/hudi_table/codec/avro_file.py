"""Avro object containers of one record: the bodies of rollback, clean and requested replacecommit instants.

Facts (measured on Hudi 0.15.0): codec null, one record, `avro.schema` the only header key. The schemas in `avsc/`
are those of Hudi 0.15.0, without comments.
"""

from __future__ import annotations

import functools
import io
import json
from importlib import resources
from typing import Any

import fastavro


def read_container(data: bytes) -> list[dict[str, Any]]:
    """All records of a container. Raises ValueError if it is none."""
    try:
        return [record for record in fastavro.reader(io.BytesIO(data)) if isinstance(record, dict)]
    except (ValueError, EOFError, KeyError, IndexError, TypeError) as error:
        raise ValueError(f"not an Avro container: {error}") from error


def write_container(schema_name: str, record: dict[str, Any]) -> bytes:
    """A container of one record of the named schema of `avsc/`; absent nullable fields take their defaults."""
    sink = io.BytesIO()
    fastavro.writer(sink, _schema(schema_name), [record], codec="null")
    return sink.getvalue()


@functools.cache
def _schema(name: str) -> Any:
    text = resources.files("hudi_table.codec").joinpath("avsc", f"{name}.avsc").read_text("utf-8")
    return fastavro.parse_schema(json.loads(text))
