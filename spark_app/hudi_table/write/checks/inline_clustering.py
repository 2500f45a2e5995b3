"""The order of a clustering that a write is to do after its commit, against the columns that the
table will have then."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from hudi_table.codec.avro.schema import with_meta
from hudi_table.errors import InvalidOptionError
from hudi_table.model.options.known import boolean_option
from hudi_table.table.rows.row_order import check_columns, order_of

INLINE = "hoodie.clustering.inline"
SCHEDULE_INLINE = "hoodie.clustering.schedule.inline"


def clusters_inline(options: Mapping[str, str]) -> bool:
    """Whether the writer itself plans clusterings. Raises InvalidOptionError."""
    return boolean_option(options, INLINE) or boolean_option(options, SCHEDULE_INLINE)


def check_inline_order(options: Mapping[str, str], schema: pa.Schema) -> None:
    """Raise InvalidOptionError for columns to sort by that are not there, or have no order, before
    anything is written."""
    wrong = check_columns(order_of(options).columns, with_meta(schema)) if clusters_inline(options) else None
    if wrong is not None:
        raise InvalidOptionError(f"the rows cannot be sorted after the write: {wrong}")
