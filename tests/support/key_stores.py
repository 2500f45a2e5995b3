"""Tables whose keys lie in PostgreSQL: what the store has of them, and a store that misses
something."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from adbc_driver_postgresql import dbapi

from hudi_table.api import HudiTable
from hudi_table.index.custom import CustomIndex
from hudi_table.index.keystore.external import ExternalIndex
from hudi_table.index.keystore.postgres import PostgresStore, open_postgres
from hudi_table.table.engine.local_engine import LocalEngine
from hudi_table.write.checks.request import resolve_index
from hudi_table.write.index_learn import snapshot
from tests.support.faults import Crash
from tests.support.postgres import Server


def indexed(**settings: str) -> dict[str, Any]:
    return {"type": "Custom", "class": "postgres", "settings": settings}


def parts(table: HudiTable) -> ExternalIndex:
    index, _ = resolve_index(table.context.config, {})
    assert isinstance(index, CustomIndex)
    assert isinstance(index.inner, ExternalIndex)
    return index.inner


def held(table: HudiTable) -> int:
    """How many (key, group) pairs the store has of a table."""
    lookup = snapshot(table.context, LocalEngine(1))
    with parts(table).store(lookup) as store:
        assert isinstance(store, PostgresStore)
        return store.key_count()


@contextlib.contextmanager
def stopped_learning() -> Iterator[None]:
    """What another engine does, or a process that dies after its commit: the store is not told."""
    learn = ExternalIndex.learn
    ExternalIndex.learn = lambda *_: None  # type: ignore[method-assign]
    try:
        yield
    finally:
        ExternalIndex.learn = learn  # type: ignore[method-assign]


def lose(server: Server, table: HudiTable, condition: str) -> None:
    """What nobody does but a person: delete keys, and leave what says that they are there."""
    with contextlib.closing(dbapi.connect(server.uri)) as connection, contextlib.closing(connection.cursor()) as cursor:
        cursor.execute(
            "DELETE FROM hudi_index_keys WHERE slice IN (SELECT number FROM hudi_index_slices WHERE namespace = "
            f"'{table.base_path}') AND {condition}"
        )
        connection.commit()


@dataclass
class Calls:
    """Counts the calls to the server, and raises `error` instead of call `at` and of all that
    follow."""

    at: int | None = None
    error: BaseException = field(default_factory=lambda: Crash("at the server"))
    made: int = 0

    def meet(self) -> None:
        self.made += 1
        if self.at is not None and self.made >= self.at:
            raise self.error

    def opener(self) -> Callable[[str, str, str], contextlib.AbstractContextManager[PostgresStore]]:
        @contextlib.contextmanager
        def opening(variable: str, name: str, secret: str = "") -> Iterator[PostgresStore]:
            with open_postgres(variable, name, secret) as store:
                store.connection, store.cursor = Meeting(store.connection, self), Meeting(store.cursor, self)
                yield store

        return opening


@dataclass
class Meeting:
    """A connection or cursor whose calls meet the fault first."""

    inner: Any
    calls: Calls

    def __getattr__(self, name: str) -> Any:
        if name in ("execute", "adbc_ingest", "commit", "fetch_arrow_table"):
            self.calls.meet()
        return getattr(self.inner, name)
