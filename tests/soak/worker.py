"""One process of the soak: it writes, keeps or reads one table until a file `stop` appears, and
journals what it asked and what came of it.

A journal is a file of JSON lines; each is handed to the system whole before the next step, so what
a killed process had been told is there.
"""

from __future__ import annotations

import errno
import json
import os
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from multiprocessing import parent_process
from pathlib import Path
from typing import Any

import pyarrow as pa

from hudi_table.api import HudiTable, open_table
from hudi_table.errors import CommitStateUnknownError, HudiError, UnavailableError, WriteConflictError
from hudi_table.model.table.config import IndexType
from hudi_table.read.scan import Scan
from hudi_table.table.engine.local_engine import LocalEngine
from hudi_table.table.store import clock
from tests.soak.history import History

SCHEMA = pa.schema([("id", pa.string()), ("city", pa.string()), ("by", pa.string())])
ENGINE = LocalEngine(1)
SHARED = 4
"""Rows that every writer updates."""
NEW_ROWS = 3
RETAINED = 20
SERVICE_PAUSE_SECONDS, READ_PAUSE_SECONDS = 0.3, 0.2
READ_SHARE = 0.25
"""How much of its time a reader reads: a longer history takes longer to hold against, and writers
shall not wait for that."""
SERVICE_OPTIONS = {
    "hoodie.cleaner.commits.retained": str(RETAINED),
    "hoodie.keep.min.commits": "30",
    "hoodie.keep.max.commits": "40",
}
ALLOWED = (WriteConflictError, UnavailableError, CommitStateUnknownError)
"""What may come of a request beside others and beside a store that rests; whatever else comes ends
the soak, but that the disk is full where it is."""


@dataclass(frozen=True, slots=True)
class Role:
    """What a process does. `name` is that of its journal: a process that takes a killed one's place
    has another."""

    kind: str
    name: str
    uri: str
    folder: str
    seed: int
    logs: bool
    ahead_hours: float = 0.0
    storage: Mapping[str, str] = field(default_factory=dict)
    room: bool = True
    """Whether its disk always has some."""


class Journal:
    """What one process says of itself."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def say(self, **what: Any) -> None:
        os.write(self._file, json.dumps(what).encode() + b"\n")


def write_once(
    table: HudiTable, role: Role, number: int, chance: random.Random, mine: list[str], journal: Journal
) -> None:
    """One write: new rows of its own and perhaps one that all writers share, or one of its own
    deleted."""
    by = f"{role.name}.{number}"
    deleting = bool(mine) and chance.random() < 0.15
    if deleting:
        key = mine.pop(0)
        rows = pa.table({"id": [key], "city": [_city(key)], "by": [by]}, schema=SCHEMA)
        journal.say(at="try", by=by, dead=[key])
        ask: Callable[[], Any] = lambda: table.delete(rows, engine=ENGINE)  # noqa: E731
    else:
        keys = [f"{by}.{part}" for part in range(NEW_ROWS)]
        shared = [f"shared-{chance.randrange(SHARED)}"] if chance.random() < 0.3 else []
        ids = keys + shared
        rows = pa.table({"id": ids, "city": [_city(key) for key in ids], "by": [by] * len(ids)}, schema=SCHEMA)
        journal.say(at="try", by=by, new=keys, shared=shared)
        ask = lambda: table.upsert(rows, engine=ENGINE)  # noqa: E731
    try:
        result = ask()
    except (*ALLOWED, OSError) as error:
        unknown = isinstance(error, CommitStateUnknownError)
        journal.say(at="unknown" if unknown else "failed", by=by, error=_name(error, role), message=str(error))
        return
    journal.say(at="done", by=by, instant=result.instant)
    if not deleting:
        mine.append(f"{by}.0")


def _name(error: HudiError | OSError, role: Role) -> str:
    """What an allowed error is called. Raises any other again."""
    if isinstance(error, HudiError):
        return error.name()
    if role.room or error.errno != errno.ENOSPC:
        raise error
    return "DiskFull"


def _city(key: str) -> str:
    """The partition of a key: those of a writer's own rows are its own, but some lie in the one
    that all share."""
    if key.startswith("shared"):
        return "all"
    writer, _, number, part = key.split(".")
    return "all" if int(number) % 5 == 0 and part == "2" else writer


def _write(role: Role, journal: Journal) -> None:
    chance, number = random.Random(role.seed), 0
    mine: list[str] = []
    table = open_table(role.uri, storage_options=role.storage)
    while not _stopped(role):
        if chance.random() < 0.05:
            table = open_table(role.uri, storage_options=role.storage)
        write_once(table, role, number, chance, mine, journal)
        number += 1


def _keep(role: Role, journal: Journal) -> None:
    """Every service in turn, by chance."""
    chance = random.Random(role.seed)
    services: dict[str, Callable[[HudiTable], Any]] = {
        "clean": lambda table: table.clean(SERVICE_OPTIONS, force=True, engine=ENGINE),
        "archive": lambda table: table.archive(SERVICE_OPTIONS, force=True),
    }
    if can_cluster(open_table(role.uri, storage_options=role.storage)):
        services["cluster"] = lambda table: table.cluster(SERVICE_OPTIONS, force=True, engine=ENGINE)
    if role.logs:
        services["compact"] = lambda table: table.compact(SERVICE_OPTIONS, force=True, engine=ENGINE)
        services["log compact"] = lambda table: table.compact_logs(SERVICE_OPTIONS, force=True, engine=ENGINE)
    weights = [1 if name == "cluster" else 3 for name in services]
    while not _stopped(role):
        name = chance.choices(list(services), weights)[0]
        try:
            services[name](open_table(role.uri, storage_options=role.storage))
            journal.say(at="served", service=name)
        except (*ALLOWED, OSError) as error:
            journal.say(at="not served", service=name, error=_name(error, role), message=str(error))
        time.sleep(SERVICE_PAUSE_SECONDS)


def can_cluster(table: HudiTable) -> bool:
    """Whether clustering takes the table: rows of a bucket stay in it."""
    index = table.context.config.index
    return index is None or index.type is not IndexType.BUCKET


def _read(role: Role, journal: Journal) -> None:
    """Scan after scan, each held against what the writers had been told before it and had asked
    after it."""
    history = History(Path(role.folder))
    table = open_table(role.uri, storage_options=role.storage)
    while not _stopped(role):
        began = time.monotonic()
        history.look()
        before = history.promised()
        scan = table.scan(columns=["id", "by"])
        try:
            rows = scan.to_arrow()
        except UnavailableError as error:
            journal.say(at="not read", error=error.name(), message=str(error))
            continue
        history.look()
        wrong = history.against(rows, before)
        if wrong:
            # Whether it stays wrong, to this handle and to a new one, and what each of them was shown, says where to look.
            anew = open_table(role.uri, storage_options=role.storage)
            scans = {"again": table.scan(columns=["id", "by"]), "anew": anew.scan(columns=["id", "by"])}
            again = {name: history.against(each.to_arrow(), before) for name, each in scans.items()}
            shown = {name: _shown(each) for name, each in {"first": scan, **scans}.items()}
            journal.say(at="wrong", rows=wrong, **again, shown=shown)
            return
        journal.say(at="read", rows=rows.num_rows)
        time.sleep(max(READ_PAUSE_SECONDS, (time.monotonic() - began) * (1 / READ_SHARE - 1)))


def _shown(scan: Scan) -> dict[str, Any]:
    """The timeline and the files that a scan has gone by."""
    plan = scan.plan
    files = [each.path for found in plan.slices for each in (found.base, *found.logs) if each is not None]
    return {"timeline": sorted(plan.newest.files) if plan.newest else [], "files": files}


def _stopped(role: Role) -> bool:
    """Also who has lost its test ends: nobody else would end it."""
    test = parent_process()
    return Path(role.folder, "stop").exists() or (test is not None and not test.is_alive())


def live(role: Role) -> None:
    """The whole life of one process. What it prints goes to a log beside its journal."""
    log = os.open(Path(role.folder, f"{role.name}.log"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(log, 1)
    os.dup2(log, 2)
    _set_clock(role.ahead_hours)
    journal = Journal(Path(role.folder, f"{role.name}.jsonl"))
    try:
        {"writer": _write, "keeper": _keep, "reader": _read}[role.kind](role, journal)
    except Exception as error:
        name = error.name() if isinstance(error, HudiError) else type(error).__name__
        journal.say(at="fault", error=name, message=str(error))
        raise


def _set_clock(hours: float) -> None:
    """This machine's clock is `hours` ahead of the others'."""
    real: Callable[[clock.SystemClock], datetime] = clock.SystemClock.now
    clock.SystemClock.now = lambda self: real(self) + timedelta(hours=hours)  # type: ignore[method-assign]
