"""Which connectors write change events, and where in their database's log an event stands: the
columns beside those of the row.

Facts (Debezium 3.3.1): PostgreSQL's LSN grows with every change, and a key that changes is a delete
and a create of one LSN. The place in the binlog of MySQL and MariaDB is a file, whose number grows,
a position in it, and the number of the row in the event at that position. Columns are named as
those of Hudi's own sources: `PostgresDebeziumAvroPayload` orders by `_event_lsn`, and takes
`_change_operation_type` = d for a delete. Hudi's order in a binlog is the text `file.position`,
which does not sort as its numbers do; ours has their digits in full, and the row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from hudi_table.model.names import IS_DELETED
from hudi_table.sources.formats.columns import BadValueError, refuse

OPERATION, ORIGIN = "_change_operation_type", "_event_origin_ts_ms"
LSN, TRANSACTION = "_event_lsn", "_event_tx_id"
SEQUENCE, FILE, POSITION, ROW = "_event_seq", "_event_bin_file", "_event_pos", "_event_row"
_FILE_DIGITS, _POSITION_DIGITS, _ROW_DIGITS = 10, 15, 10


@dataclass(frozen=True, slots=True)
class Dialect:
    """Connectors of one kind of log. `order`: the column that orders events. `source`: fields of an
    event's source; `own`: the columns that become of them."""

    connectors: tuple[str, ...]
    order: str
    source: Mapping[str, pa.DataType]
    places: pa.Schema

    @property
    def own(self) -> pa.Schema:
        """The columns beside a row's."""
        return pa.schema([(OPERATION, pa.string()), *self.places, (ORIGIN, pa.int64()), (IS_DELETED, pa.bool_())])

    def columns(self, operations: pa.Array, source: Mapping[str, pa.Array], deleted: pa.Array) -> list[pa.Array]:
        """The columns of `own`. Raises BadValueError."""
        places = _lsn(source) if self.order == LSN else _binlog(source)
        return [operations, *places, source["ts_ms"], deleted]


POSTGRESQL = Dialect(
    ("postgresql",),
    LSN,
    {"lsn": pa.int64(), "txId": pa.int64(), "ts_ms": pa.int64()},
    pa.schema([(LSN, pa.int64()), (TRANSACTION, pa.int64())]),
)
MYSQL = Dialect(
    ("mysql", "mariadb"),
    SEQUENCE,
    {"file": pa.string(), "pos": pa.int64(), "row": pa.int64(), "ts_ms": pa.int64()},
    pa.schema([(SEQUENCE, pa.string()), (FILE, pa.string()), (POSITION, pa.int64()), (ROW, pa.int64())]),
)
DIALECTS: Mapping[str, Dialect] = {each.order: each for each in (POSTGRESQL, MYSQL)}
"""By the column that orders."""


def check_connectors(connectors: pa.Array, dialect: Dialect) -> None:
    """Raise BadValueError for an event of a connector that orders by another column."""
    row = pc.is_in(connectors, pa.array(dialect.connectors)).index(pa.scalar(False)).as_py()
    if row < 0:
        return
    name = connectors[row].as_py()
    for other in DIALECTS.values():
        if name in other.connectors:
            raise BadValueError(
                row, f"it is of connector {name}, whose events are ordered by {other.order}: let orderingFields name it"
            )
    known = [each for other in DIALECTS.values() for each in other.connectors]
    raise BadValueError(row, f"it is of connector {name}, and {', '.join(known)} alone are read")


def _needed(source: Mapping[str, pa.Array], names: Sequence[str]) -> None:
    for name in names:
        missing = source[name].is_null()
        refuse(missing, source[name], f"its source has no {name}")


def _lsn(source: Mapping[str, pa.Array]) -> list[pa.Array]:
    _needed(source, ["lsn"])
    return [source["lsn"], source["txId"]]


def _binlog(source: Mapping[str, pa.Array]) -> list[pa.Array]:
    _needed(source, ["file", "pos"])
    file, position, row = source["file"], source["pos"], source["row"].fill_null(0)
    numbers = pc.struct_field(pc.extract_regex(file, r"\.(?P<number>\d{1,10})$"), "number")
    refuse(numbers.is_null(), file, "its source's file {} ends in no number of a binlog")
    parts = zip((numbers, position, row), (_FILE_DIGITS, _POSITION_DIGITS, _ROW_DIGITS), strict=True)
    texts = [pc.utf8_lpad(part.cast(pa.string()), width, "0") for part, width in parts]
    return [pc.binary_join_element_wise(*texts, "."), file, position, row]
