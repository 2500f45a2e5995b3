"""Our writer behind JSON lines, as `tests/support/hudi_server.py` is for Apache Hudi's: one command
a line on stdin, one answer a line on stdout.

    write   base, rows, options, lock, create?, version?, compacts, retained
            an upsert and the services after it; `create`: of a table of that kind, made first
    read    base, to        the table's rows, as Parquet in the file `to`

An answer is {"ok": true, "message": what a service said} or {"ok": false, "message": text}: a write
counts once it is acknowledged, whatever a service after it meets.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import pyarrow.parquet as pq

from hudi_table.api import create_table, open_table
from hudi_table.errors import HudiError
from tests.mirror.workload import BUCKETS


def _write(command: dict[str, Any], storage: dict[str, str]) -> str:
    """What a service said."""
    rows, base, lock = pq.read_table(command["rows"]), command["base"], command["lock"] or None
    if "create" in command:
        create_table(
            base, rows.schema, record_key="id", ordering_fields="ts", type=command["create"],
            index={"type": "Bucket", "buckets": BUCKETS}, version=command["version"], storage_options=storage,
            options=command["options"],
        )  # fmt: skip
    table = open_table(base, storage_options=storage, lock=lock)
    table.upsert(rows)
    try:
        if command["compacts"]:
            table.compact(force=True)
        table.clean({"hoodie.cleaner.commits.retained": command["retained"]}, force=True)
    except HudiError as error:
        return f"{error.name()}: {error}"
    return ""


def _answer(command: dict[str, Any], storage: dict[str, str]) -> dict[str, Any]:
    try:
        if command["command"] == "write":
            return {"ok": True, "message": _write(command, storage)}
        pq.write_table(open_table(command["base"], storage_options=storage).scan().to_arrow(), command["to"])
    except HudiError as error:
        return {"ok": False, "message": f"{error.name()}: {error}"}
    return {"ok": True}


def main() -> None:
    """Serve until the end of stdin."""
    storage = json.loads(sys.argv[1])
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    print(json.dumps({"ok": True}), file=answers)
    for line in sys.stdin:
        print(json.dumps(_answer(json.loads(line), storage)), file=answers)


if __name__ == "__main__":
    main()
