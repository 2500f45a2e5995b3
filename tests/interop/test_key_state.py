"""A table with a key state beside Apache Hudi: its writers take the global simple index that the
table stores, and find and move the keys that we wrote, as we do theirs.

Matrix: Hudi 0.15.0 and 1.1.1, none of them told of an index. Omitted: merge-on-read tables with an
ordering field, which take no index by which keys move.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from hudi_table.api import create_table, open_table
from hudi_table.model.table.index_properties import INDEX_TYPE, KEY_STATE
from hudi_table.table.timeline.properties import read_properties
from tests.interop import ours
from tests.interop.conftest import Hudis
from tests.interop.model import SCHEMA, Model, rows
from tests.interop.test_record_index import moved
from tests.support.hudi_oracle import HudiOracle

pytestmark = [pytest.mark.interop, pytest.mark.by_turns]


def test_keys_that_either_side_moves_are_found_by_the_other(hudis: Hudis, tmp_path: Path) -> None:
    base, model = tmp_path / "table", Model(partitioned=True)
    create_table(base, SCHEMA, record_key="id", ordering_fields="ts", partition_by="city", index="KeyState", version=6)
    ours.write(base, "upsert", rows(range(20), 1))
    model.apply("upsert", rows(range(20), 1))

    def each(oracle: HudiOracle, copy: Path) -> None:
        expected = model.copy()
        told = {"hoodie.table.name": "table", "hoodie.datasource.write.operation": "upsert"}
        if oracle.version != "0.15.0":
            told["hoodie.write.table.version"] = "6"
        for turn in range(3):
            mine = moved(rows(range(turn, 12 + turn), 2 * turn + 2), ("par", "new", "sf")[turn])
            ours.write(copy, "upsert", mine)
            expected.apply("upsert", mine)
            theirs = moved(rows(range(6, 16), 2 * turn + 3), ("sf", "nyc", "new")[turn])
            oracle.write(copy, theirs, told)
            expected.apply("upsert", theirs)
            ours.assert_all_read(copy, oracle, expected.rows())
        table = open_table(str(copy))
        stored = read_properties(table.context.storage, table.context.clock)
        assert (stored[INDEX_TYPE], stored[KEY_STATE]) == ("GLOBAL_SIMPLE", "true")

    hudis.each_on_a_copy(base, each)
