"""What `ALTER TABLE` of Hudi with schema on read leaves on a table: a commit of no files, and a
history in which columns have ids that survive renaming."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa

from hudi_table.api import open_table
from hudi_table.codec.avro.schema import arrow_to_avro
from hudi_table.model.timeline.commits import CommitMetadata
from hudi_table.model.timeline.instants import Instant, State
from hudi_table.read.schema import META_FIELDS
from hudi_table.table.commit.transaction import write_action
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.timeline.layout import encode_commit
from tests.support.later_tables import ctx_of

_KINDS = {pa.string(): "string", pa.int64(): "long", pa.int32(): "int"}
_MILLISECONDS = 5
Columns = list[tuple[int, pa.Field]]


def rename(base: Path, old: str, new: str) -> str:
    """The instant of a commit that has given a column another name."""
    columns = _columns(base)
    return _alter(base, [(number, field.with_name(new) if field.name == old else field) for number, field in columns])


def drop(base: Path, name: str) -> str:
    """That of one that has taken a column away."""
    return _alter(base, [(number, field) for number, field in _columns(base) if field.name != name])


def add(base: Path, name: str) -> str:
    """That of one that has given the table a column of texts, at its end."""
    return _alter(base, [*_columns(base), (_largest(base) + 1, pa.field(name, pa.string()))])


def fail(base: Path, name: str) -> None:
    """What an `ALTER TABLE` that dropped this column leaves where it died before it committed."""
    _alter(base, [(number, field) for number, field in _columns(base) if field.name != name], completes=False)


def saved(base: Path) -> list[dict[str, Any]]:
    """The versions that the newest history holds, newest first."""
    files = sorted((base / ".hoodie/.schema").glob("*.schemacommit"))
    return json.loads(files[-1].read_text())["schemas"] if files else []


def _columns(base: Path) -> Columns:
    schema = open_table(str(base)).schema()
    assert schema is not None
    fields = [*META_FIELDS, *schema]
    if saved(base):
        known = {each["name"]: each["id"] for each in saved(base)[0]["fields"]}
        return [(known[field.name], field) for field in fields]
    return list(enumerate(fields))


def _largest(base: Path) -> int:
    return max((each["max_column_id"] for each in saved(base)), default=len(_columns(base)) - 1)


def _version(time: str, columns: Columns, largest: int) -> dict[str, Any]:
    fields = [
        {"id": number, "name": field.name, "optional": True, "type": _KINDS.get(field.type, "string")}
        for number, field in columns
    ]
    return {"max_column_id": largest, "version_id": int(time), "type": "record", "fields": fields}


def _alter(base: Path, columns: Columns, *, completes: bool = True) -> str:
    ctx = ctx_of(open_table(str(base)))
    timeline = load_timeline(ctx)
    time = str(int(timeline.newest_time) + _MILLISECONDS)
    largest = max(_largest(base), *(number for number, _ in columns))
    newest = _version(time, columns, largest)
    older = saved(base) or [_version("0", _columns(base), _largest(base))]
    folder = base / ".hoodie/.schema"
    folder.mkdir(exist_ok=True)
    name = f"{time}_{int(time) + 1}" if ctx.layout.tells_completions else time
    (folder / f"{name}.schemacommit").write_text(json.dumps({"schemas": [newest, *older]}))
    schema = pa.schema([field for _, field in columns])
    extra = {"schema": arrow_to_avro(schema, table_name=ctx.config.name), "latest_schema": json.dumps(newest)}
    instant = Instant(time, write_action(ctx.config), State.REQUESTED)
    data = encode_commit(ctx.layout, CommitMetadata("ALTER_SCHEMA", (), extra))
    for state, body in (
        (instant, b""),
        (instant.with_state(State.INFLIGHT), b""),
        (ctx.layout.completed(instant), data),
    ):
        if completes or not state.completed:
            (base / ctx.layout.timeline_path(state.file_name)).write_bytes(body)
    return time
