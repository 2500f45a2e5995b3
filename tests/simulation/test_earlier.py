"""Two versions of the library in one process are two, on one table."""

from __future__ import annotations

import pyarrow as pa

from hudi_table.api import HudiTable
from hudi_table.write.checks.create_table import create
from tests.simulation.earlier import EARLIER, PRESENT, code_of
from tests.support.crashes import LAYOUTS, new_store, rows, spec


def test_each_version_reads_what_the_other_has_written() -> None:
    store = new_store()
    HudiTable(create(store, spec(LAYOUTS[0])))
    present, earlier = (code.table(code.open_context(store)) for code in map(code_of, (PRESENT, EARLIER)))
    assert type(present).__module__ != type(earlier).__module__
    present.write(rows(("a", "x", 1), ("b", "x", 1)), operation="upsert")
    earlier.write(rows(("b", "x", 2), ("c", "x", 2)), operation="upsert")
    present.write(rows(("c", "x", 3)), operation="upsert")

    def shown(table: HudiTable) -> list[tuple[str, int]]:
        found: pa.Table = table.scan().to_arrow()
        return sorted(zip(found.column("id").to_pylist(), found.column("value").to_pylist(), strict=True))

    assert shown(present) == shown(earlier) == [("a", 1), ("b", 2), ("c", 3)]
