"""Keys in PostgreSQL, through Apache Arrow's own driver (the extra `postgres`): columns go to the
server and come back as columns.

Two tables, made at first use in the first schema of the connection's search path:

| table | row |
|---|---|
| `hudi_index_slices` | a file group of a table: its number, and the files whose keys are recorded |
| `hudi_index_keys` | 16 bytes of SHA-256 of table and key, and the number of a group that holds the key |

Keys themselves are not kept. The hash can only name a group too many, never one too few.

The connection string is a secret: it is read from the environment when it is needed, and stands in
no message.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from hudi_table.errors import AccessDeniedError, HudiError, InvalidOptionError, InvalidRequestError, UnavailableError
from hudi_table.index.keystore.store import Change, Numbers, Place, Recorded

BATCH_KEYS = 20_000
CONNECT_SECONDS_MAX = 10
SILENCE_SECONDS_MAX = 60
STATEMENT_SECONDS_MAX = 600
_LOCK = 0x68756469
_TABLES = """
CREATE TABLE IF NOT EXISTS hudi_index_slices (
  number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, namespace text NOT NULL, partition_path text NOT NULL,
  file_id text NOT NULL, files text NOT NULL, UNIQUE (namespace, partition_path, file_id));
CREATE TABLE IF NOT EXISTS hudi_index_keys (hash bytea NOT NULL, slice bigint NOT NULL, PRIMARY KEY (hash, slice));
CREATE INDEX IF NOT EXISTS hudi_index_keys_slice ON hudi_index_keys (slice)
"""
_HASH = "substring(sha256($2::bytea || p.key) FOR 16)"


@contextlib.contextmanager
def open_postgres(variable: str, namespace: str, secret: str = "") -> Iterator[PostgresStore]:
    """A connection to the server that the environment variable names, or `secret`; closed in the
    end, what was not committed undone.

    Raises InvalidOptionError without the variable, InvalidRequestError without the driver,
    UnavailableError, AccessDeniedError.
    """
    try:
        from adbc_driver_postgresql import dbapi
    except ImportError:
        raise InvalidRequestError(
            "the index postgres needs the driver adbc-driver-postgresql: pip install 'hudi-table[postgres]' brings it"
        ) from None
    uri = secret or os.environ.get(variable)
    if not uri:
        raise InvalidOptionError(
            f"the index postgres finds no connection: set the environment variable {variable} to a libpq connection string"
        )
    connection: Any = None
    try:
        try:
            connection = dbapi.connect(_with_limits(uri))
            store = PostgresStore(connection, connection.cursor(), namespace)
            store.prepare()
        except dbapi.Error as error:
            raise _as_hudi_error(error, variable) from None
        try:
            yield store
        except dbapi.Error as error:
            raise _as_hudi_error(error, variable) from None
    finally:
        if connection is not None:
            with contextlib.suppress(dbapi.Error):
                connection.close()


@dataclass(slots=True)
class PostgresStore:
    """See `KeyStore`."""

    connection: Any
    cursor: Any
    namespace: str

    def prepare(self) -> None:
        """Set limits, make the tables if they are missing, and begin a transaction that sees one
        state."""
        self.cursor.execute(_LIMIT)
        self.cursor.execute("SET client_min_messages = warning")
        self.cursor.execute("SELECT to_regclass('hudi_index_slices') IS NOT NULL")
        if not self.cursor.fetchone()[0]:
            self.cursor.execute(_ALONE)
            self.cursor.fetchall()
            for statement in _TABLES.split(";"):
                self.cursor.execute(statement)
        self.connection.commit()

    def recorded(self, partitions: Sequence[str] | None = None) -> Mapping[Place, Recorded]:
        """The file groups of these partitions, or of all, that the store has keys of."""
        self.connection.commit()
        self.cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        query = "SELECT number, partition_path, file_id, files FROM hudi_index_slices WHERE namespace = $1"
        values = [pa.array([self.namespace])]
        if partitions is not None:
            query += " AND partition_path = ANY ($2::text[])"
            values.append(pa.array([list(partitions)], pa.list_(pa.string())))
        found = self._fetched(query, *values)
        columns = [found.column(name).to_pylist() for name in ("number", "partition_path", "file_id", "files")]
        return {
            (path, file_id): Recorded(number, tuple(files.split("\n")) if files else ())
            for number, path, file_id, files in zip(*columns, strict=True)
        }

    def find(self, keys: pa.Array) -> tuple[Numbers, Numbers]:
        """(positions in `keys`, numbers of the groups) of every key of the store."""
        rows = [np.empty(0, dtype=np.int64)]
        numbers = [np.empty(0, dtype=np.int64)]
        for start in range(0, len(keys), BATCH_KEYS):
            batch = keys.slice(start, BATCH_KEYS).cast(pa.binary())
            wanted = pa.ListArray.from_arrays(pa.array([0, len(batch)], pa.int32()), _fresh(batch))
            found = self._fetched(_FIND, wanted, self._salt())
            rows.append(found.column("row").to_numpy() + start)
            numbers.append(found.column("slice").to_numpy())
        return np.concatenate(rows), np.concatenate(numbers)

    def record(self, changes: Sequence[Change]) -> int:
        """Take changes in, each whole or not at all; returns how many."""
        self.connection.commit()
        table = pa.table(
            {
                "ord": pa.array(range(len(changes)), pa.int32()),
                "partition_path": [change.place[0] for change in changes],
                "file_id": [change.place[1] for change in changes],
                "before": ["\n".join(change.before) for change in changes],
                "after": ["\n".join(change.after) for change in changes],
            }
        )
        self._ingest("hudi_index_changes", table)
        self._do(
            "INSERT INTO hudi_index_slices (namespace, partition_path, file_id, files) "
            "SELECT $1, partition_path, file_id, '' FROM hudi_index_changes WHERE before = '' ORDER BY partition_path, file_id "
            "ON CONFLICT DO NOTHING"
        )
        # Locked in one order, so that two who record at once wait for each other and not in a circle.
        taken = self._fetched(
            "WITH held AS (SELECT s.number, c.ord, c.after FROM hudi_index_slices s JOIN hudi_index_changes c "
            "USING (partition_path, file_id) WHERE s.namespace = $1 AND s.files = c.before ORDER BY s.number FOR UPDATE OF s) "
            "UPDATE hudi_index_slices s SET files = held.after FROM held WHERE s.number = held.number "
            "RETURNING s.number, held.ord",
            pa.array([self.namespace]),
        )
        numbers = dict(zip(taken.column("ord").to_pylist(), taken.column("number").to_pylist(), strict=True))
        done = [(number, changes[place]) for place, number in sorted(numbers.items())]
        self._delete_keys([number for number, change in done if change.removed is None])
        self._apply([(number, change.removed) for number, change in done if change.removed is not None], _GONE)
        self._apply([(number, change.added) for number, change in done], _NEW)
        self.connection.commit()
        return len(done)

    def forget(self, numbers: Sequence[int]) -> None:
        """Take groups out, and their keys."""
        self.connection.commit()
        if numbers:
            self._probed("DELETE FROM hudi_index_slices WHERE number = ANY ($1::bigint[])", numbers)
            self._delete_keys(numbers)
        self.connection.commit()

    def key_count(self) -> int:
        """How many (key, group) pairs the store holds of the table."""
        query = (
            "SELECT count(*) AS keys FROM hudi_index_keys WHERE slice IN "
            "(SELECT number FROM hudi_index_slices WHERE namespace = $1)"
        )
        return int(self._fetched(query, pa.array([self.namespace])).column("keys")[0].as_py())

    def _apply(self, keys: Sequence[tuple[int, pa.Array]], statement: str) -> None:
        """Run a statement over (slice, key) pairs, which go to the server as columns."""
        counts = [len(found) for _, found in keys]
        if not sum(counts):
            return
        slices = np.repeat(np.array([number for number, _ in keys], dtype=np.int64), counts)
        column = pa.concat_arrays([found.cast(pa.binary()) for _, found in keys])
        self._ingest("hudi_index_delta", pa.table({"slice": slices, "key": column}))
        self._do(statement)

    def _ingest(self, name: str, table: pa.Table) -> None:
        self.cursor.adbc_ingest(name, table, mode="replace", temporary=True)

    def _do(self, statement: str) -> None:
        values = [pa.array([self.namespace])] + ([self._salt()] if "$2" in statement else [])
        self.cursor.execute(statement, parameters=_row(*values))

    def _delete_keys(self, numbers: Sequence[int]) -> None:
        if numbers:
            self._probed("DELETE FROM hudi_index_keys WHERE slice = ANY ($1::bigint[])", numbers)

    def _probed(self, statement: str, numbers: Sequence[int]) -> None:
        self.cursor.execute(statement, parameters=_row(pa.array([list(numbers)], pa.list_(pa.int64()))))

    def _fetched(self, query: str, *values: pa.Array) -> pa.Table:
        self.cursor.execute(query, parameters=_row(*values))
        return self.cursor.fetch_arrow_table()

    def _salt(self) -> pa.Array:
        return pa.array([self.namespace.encode() + b"\0"], pa.binary())


# What is put into these is ours; every value is a parameter.
_LIMIT = f"SET statement_timeout = '{STATEMENT_SECONDS_MAX}s'"
_ALONE = f"SELECT pg_advisory_xact_lock({_LOCK})"
_FIND = (
    "SELECT p.i - 1 AS row, k.slice FROM unnest($1::bytea[]) WITH ORDINALITY AS p (key, i) "  # noqa: S608
    f"JOIN hudi_index_keys k ON k.hash = {_HASH}"
)
_NEW = (
    f"INSERT INTO hudi_index_keys SELECT {_HASH}, p.slice FROM hudi_index_delta p WHERE $1::text IS NOT NULL "  # noqa: S608
    "ON CONFLICT DO NOTHING"
)
_GONE = (
    f"DELETE FROM hudi_index_keys k USING hudi_index_delta p WHERE $1::text IS NOT NULL AND k.hash = {_HASH} "  # noqa: S608
    "AND k.slice = p.slice"
)


def _row(*values: pa.Array) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(list(values), names=[f"p{number}" for number in range(1, len(values) + 1)])


def _fresh(array: pa.Array) -> pa.Array:
    """Without an offset, which a list of it would have to repeat."""
    return pa.concat_arrays([array]) if array.offset == 0 else array.take(pa.array(np.arange(len(array))))


def _with_limits(uri: str) -> str:
    """The connection with limits to the waits for a server that is silent, where it sets none
    itself."""
    limits = {"connect_timeout": CONNECT_SECONDS_MAX, "tcp_user_timeout": SILENCE_SECONDS_MAX * 1000}
    added = [f"{name}={value}" for name, value in limits.items() if name not in uri]
    if not uri.startswith(("postgresql://", "postgres://")):
        return " ".join([uri, *added])
    return uri + ("&" if "?" in uri else "?") + "&".join(added) if added else uri


def _as_hudi_error(error: Any, variable: str) -> HudiError:
    """The error as one of ours. The server's own words are quoted only where they cannot hold a
    part of the connection string."""
    state = getattr(error, "sqlstate", None) or ""
    text = " ".join(str(error).split())
    if state.startswith("28") or state == "42501" or "authentication failed" in text:
        return AccessDeniedError(f"the server behind {variable} refused the user of the external index; mend it there")
    says = "" if "failed to connect" in text.lower() and "connection to server" not in text else f": {_shown(text)}"
    return UnavailableError(
        f"the external index did not answer (connection in {variable}){says}; nothing was written, try again when it does"
    )


def _shown(text: str) -> str:
    return text.partition("Query was:")[0][:300].strip()
