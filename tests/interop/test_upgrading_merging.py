"""Tables that merge by payload classes, brought to another version by us: Hudi reads the rows of
before, both write on, and rows merge there as in a table that Hudi 1.1.1 created in that
version."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from hudi_table.api import create_table, downgrade_table, open_table, upgrade_table, write_hudi
from hudi_table.errors import InvalidRequestError, UnsupportedTableError
from hudi_table.model.table.merging import PAYLOADS
from tests.interop.conftest import Hudis
from tests.interop.test_later_versions import COMPACTING
from tests.interop.test_merging_later import KEYS, OPTIONS, PAYLOAD, PLAIN, SCHEMA, batch, merging
from tests.support.rows import assert_same_rows

pytestmark = pytest.mark.interop

NAMES = {name.rpartition(".")[2]: name for name in PAYLOADS}
BY_CLASS = [
    "OverwriteNonDefaultsWithLatestAvroPayload",
    "PartialUpdateAvroPayload",
    "PostgresDebeziumAvroPayload",
    "AWSDmsAvroPayload",
]
"""Classes that do more than the two plain ones, and that Hudi's upgrade keeps."""
OF_6 = {"hoodie.write.table.version": "6"}


def described(payload: str, kind: str) -> dict[str, str]:
    ordering = PAYLOADS[NAMES[payload]].ordering or "ts"
    return OPTIONS | {
        "hoodie.datasource.write.table.type": kind,
        "hoodie.table.ordering.fields": ordering,
        "hoodie.datasource.write.precombine.field": ordering,
        PAYLOAD: NAMES[payload],
    }


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("payload", NAMES)
def test_hudi_reads_the_rows_of_before_and_merges_as_in_a_table_of_its_own(
    hudis: Hudis, tmp_path: Path, payload: str, kind: str
) -> None:
    chance, later, earlier = random.Random(f"{payload} {kind}"), hudis["1.1.1"], hudis["0.15.0"]
    base, theirs, told = tmp_path / "ours", tmp_path / "theirs", described(payload, kind)
    create_table(base, SCHEMA, record_key="id", partition_by="city", options=told | OF_6, version=6)
    write_hudi(base, batch(chance, list(range(KEYS)), first=True), operation="upsert")
    for _ in range(2):
        write_hudi(base, batch(chance, [chance.randrange(KEYS) for _ in range(6)]), operation="upsert")
    before = earlier.read(base)
    upgrade_table(base, to=9)
    assert_same_rows(later.read(base), before, columns=SCHEMA.names, of="1.1.1, upgraded")
    later.write(theirs, open_table(base).scan().to_arrow(), told | PLAIN)
    assert settings(base) == settings(theirs)
    for turn in range(4):
        rows = batch(chance, [chance.randrange(KEYS + turn) for _ in range(6)])
        later.write(theirs, rows, told | PLAIN)
        if turn % 2:
            write_hudi(base, rows, operation="upsert")
        else:
            later.write(base, rows, OPTIONS | PLAIN)
        shown = later.read(theirs)
        for read in (open_table(str(base)).scan().to_arrow(), later.read(base)):
            assert_same_rows(read, shown, columns=SCHEMA.names, of=f"turn {turn}")
    downgrade_table(base, to=6)
    assert_same_rows(earlier.read(base), shown, columns=SCHEMA.names, of="0.15.0, downgraded")
    earlier.write(base, batch(chance, list(range(3))), told | PLAIN)
    write_hudi(base, batch(chance, list(range(2, 5))), operation="upsert")
    mine = open_table(str(base)).scan().to_arrow()
    assert_same_rows(earlier.read(base), mine, columns=SCHEMA.names, of="0.15.0, written on")


@pytest.mark.parametrize(
    ("kind", "way"), [("COPY_ON_WRITE", ("EIGHT", "NINE", "EIGHT", "SIX")), ("MERGE_ON_READ", ("NINE", "SIX"))]
)
@pytest.mark.parametrize("payload", BY_CLASS)
def test_the_settings_are_those_of_the_procedures_of_hudi(
    hudis: Hudis, tmp_path: Path, payload: str, kind: str, way: tuple[str, ...]
) -> None:
    base, theirs, oracle = tmp_path / "ours", tmp_path / "theirs", hudis["1.1.1"]
    create_table(base, SCHEMA, record_key="id", partition_by="city", options=described(payload, kind) | OF_6, version=6)
    write_hudi(base, batch(random.Random(payload), list(range(KEYS)), first=True), operation="upsert")
    shutil.copytree(base, theirs)
    table = f"upgraded_{payload}_{kind}".lower()
    oracle.run(f"CREATE TABLE {table} USING hudi LOCATION '{theirs}'")
    for step in way:
        version = {"SIX": 6, "EIGHT": 8, "NINE": 9}[step]
        up = version > open_table(base).context.config.version
        (upgrade_table if up else downgrade_table)(base, to=version)
        oracle.sql(f"CALL {'upgrade' if up else 'downgrade'}_table(table => '{table}', to_version => '{step}')")
        assert settings(base) == settings(theirs), step
        assert_same_rows(oracle.read(theirs), oracle.read(base), columns=SCHEMA.names, of=step)
    oracle.run(f"DROP TABLE {table}")


@pytest.mark.parametrize("payload", BY_CLASS)
def test_a_table_of_version_8_that_hudi_compacted_goes_to_version_9(hudis: Hudis, tmp_path: Path, payload: str) -> None:
    base, oracle, chance = tmp_path / "table", hudis["1.1.1"], random.Random(payload)
    told = described(payload, "MERGE_ON_READ") | PLAIN | {"hoodie.write.table.version": "8"}
    oracle.write(base, batch(chance, list(range(KEYS)), first=True), told)
    oracle.write(base, batch(chance, list(range(4))), told)
    with pytest.raises(InvalidRequestError, match=r"slices? with logs wait: compact first"):
        upgrade_table(base, to=9)
    with pytest.raises(UnsupportedTableError, match="bring it to version 9"):
        downgrade_table(base, to=6)
    oracle.write(base, batch(chance, list(range(KEYS))), told | COMPACTING)
    before = oracle.read(base)
    upgrade_table(base, to=9)
    rows = batch(chance, list(range(3, KEYS)))
    write_hudi(base, rows.slice(0, 0), operation="upsert", options={"hoodie.index.type": "SIMPLE"})
    for read in (open_table(str(base)).scan().to_arrow(), oracle.read(base)):
        assert_same_rows(read, before, columns=SCHEMA.names, of=payload)
    write_hudi(base, rows, operation="upsert", options={"hoodie.index.type": "SIMPLE"})
    mine = open_table(str(base)).scan().to_arrow()
    assert_same_rows(oracle.read(base), mine, columns=SCHEMA.names, of=f"{payload}, written on")
    downgrade_table(base, to=6)
    assert_same_rows(hudis["0.15.0"].read(base), mine, columns=SCHEMA.names, of=f"{payload}, in version 6")


def settings(base: Path) -> list[str]:
    """What its properties say of merging, but for what follows from it: ids, and the names of
    plain classes."""
    follows = ("strategy", *(name for name in NAMES if name not in BY_CLASS))
    return [line for line in merging(base) if not any(word in line for word in follows)]
