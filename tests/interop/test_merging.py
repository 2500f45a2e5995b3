"""Who wins: merge modes, flagged deletes and evolved schemas, the same in Apache Hudi and in
ours."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hudi_table import register_key_generator, register_merger
from tests.interop import ours
from tests.interop.conftest import Hudis
from tests.interop.test_matrix import upsert
from tests.support.hudi_oracle import HudiOracle

pytestmark = [pytest.mark.interop, pytest.mark.by_turns]

SCHEMA = pa.schema([("id", pa.string()), ("v", pa.string()), ("ts", pa.int64()), ("_hoodie_is_deleted", pa.bool_())])


def batch(*given: tuple[str, str, int, bool | None]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in given], schema=SCHEMA)


FIRST = batch(*((key, "first", 100, False) for key in "abcdefgh"))
SECOND = batch(
    ("a", "newer", 200, False),
    ("b", "equal", 100, False),
    ("c", "older", 50, False),
    ("d", "newer delete", 200, True),
    ("e", "equal delete", 100, True),
    ("f", "older delete", 50, True),
    ("g", "not flagged", 200, None),
    ("new", "insert", 10, False),
    ("gone", "delete of nothing", 10, True),
    ("twice", "twice 7", 7, False),
    ("twice", "twice 9", 9, False),
)
WINNERS = {
    "EventTime": {"a": "newer", "b": "equal", "c": "first", "f": "first"},
    "CommitTime": {"a": "newer", "b": "equal", "c": "older"},
}


@pytest.mark.parametrize("index", ["bucket", "simple"])
@pytest.mark.parametrize("mode", WINNERS)
def test_hudi_and_we_merge_one_batch_alike(hudis: Hudis, tmp_path: Path, mode: str, index: str) -> None:
    base = tmp_path / "table"
    ours.create(base, index=index, partitioned=False, schema=SCHEMA, merge_mode=mode)
    ours.write(base, "insert", FIRST)
    expected = WINNERS[mode] | {"g": "not flagged", "h": "first", "new": "insert", "twice": "twice 9"}

    def theirs(oracle: HudiOracle, copy: Path) -> dict[str, str]:
        upsert(oracle, copy, SECOND)
        return values(oracle.read(copy))

    assert hudis.each_on_a_copy(base, theirs) == dict.fromkeys(hudis.oracles, expected)
    ours.write(base, "upsert", SECOND)
    assert values(ours.read(base)) == expected


def values(rows: pa.Table) -> dict[str, str]:
    return dict(zip(rows["id"].to_pylist(), rows["v"].to_pylist(), strict=True))


NARROW = pa.schema([("id", pa.string()), ("n", pa.int32()), ("f", pa.float32()), ("ts", pa.int64())])
WIDE = pa.schema(
    [("id", pa.string()), ("n", pa.int64()), ("f", pa.float64()), ("ts", pa.int64()), ("added", pa.date32())]
)


@pytest.mark.parametrize("index", ["bucket", "simple"])
def test_hudi_goes_on_with_a_table_that_we_evolved(hudis: Hudis, tmp_path: Path, index: str) -> None:
    """Files of the old schema stay beside those of the new one, and Hudi rewrites both."""
    base = tmp_path / "table"
    ours.create(base, index=index, partitioned=False, schema=NARROW)
    model: dict[str, dict[str, Any]] = {f"k{n}": {"id": f"k{n}", "n": n, "f": n / 4, "ts": 1} for n in range(10)}
    ours.write(base, "insert", pa.Table.from_pylist(list(model.values()), schema=NARROW))
    wider: list[dict[str, Any]] = [{"id": f"k{n}", "n": 2**40 + n, "f": n / 3, "ts": 2, "added": None} for n in (1, 20)]
    ours.write(base, "upsert", pa.Table.from_pylist(wider, schema=WIDE))
    model = {key: row | {"added": None} for key, row in model.items()} | {row["id"]: row for row in wider}

    def go_on(oracle: HudiOracle, copy: Path) -> None:
        ours.assert_all_read(copy, oracle, model.values())
        more = [{"id": f"k{n}", "n": -n, "f": 0.1, "ts": 3, "added": None} for n in (2, 20, 30)]
        upsert(oracle, copy, pa.Table.from_pylist(more, schema=WIDE))
        expected = model | {row["id"]: row for row in more}
        ours.assert_all_read(copy, oracle, expected.values())
        last = [{"id": f"k{n}", "n": n, "f": 0.2, "ts": 4, "added": None} for n in (3, 30, 40)]
        ours.write(copy, "upsert", pa.Table.from_pylist(last, schema=WIDE))
        ours.assert_all_read(copy, oracle, (expected | {row["id"]: row for row in last}).values())

    hudis.each_on_a_copy(base, go_on)


@pytest.mark.parametrize("widened", ["column", "type"])
def test_we_go_on_with_a_table_that_hudi_evolved(hudis: Hudis, tmp_path: Path, widened: str) -> None:
    base = tmp_path / "table"
    narrow = pa.schema([("id", pa.string()), ("n", pa.int32()), ("ts", pa.int64())])
    wide = (
        narrow.append(pa.field("added", pa.string()))
        if widened == "column"
        else narrow.set(1, pa.field("n", pa.int64()))
    )
    ours.create(base, index="simple", partitioned=False, schema=narrow)
    ours.write(base, "insert", pa.table({"id": ["a", "b"], "n": [1, 2], "ts": [1, 1]}, schema=narrow))

    def row(key: str, number: int) -> dict[str, object]:
        return {"id": key, "n": number, "ts": number} | ({"added": key} if widened == "column" else {})

    def go_on(oracle: HudiOracle, copy: Path) -> None:
        upsert(oracle, copy, pa.Table.from_pylist([row("b", 20), row("c", 30)], schema=wide))
        ours.write(copy, "upsert", pa.Table.from_pylist([row("c", 31), row("d", 40)], schema=wide))
        first = {"id": "a", "n": 1, "ts": 1} | ({"added": None} if widened == "column" else {})
        ours.assert_all_read(copy, oracle, [first, row("b", 20), row("c", 31), row("d", 40)])

    hudis.each_on_a_copy(base, go_on)


@pytest.mark.parametrize("index", ["bucket", "simple"])
def test_every_engine_reads_a_table_with_functions_of_ones_own(hudis: Hudis, tmp_path: Path, index: str) -> None:
    base = tmp_path / "table"
    register_merger("add", lambda stored, incoming: incoming.set_column(1, "n", pc.add(stored["n"], incoming["n"])))
    register_key_generator("lower", lambda rows: pc.utf8_lower(rows["id"]))
    own = {"merger": "add", "key_generator": "lower", "ordering_fields": "ts"}
    ours.create(base, index=index, partitioned=False, schema=NARROW, **own)
    for batch_ in ([("A", 1), ("b", 1)], [("a", 2), ("C", 2)]):
        rows = [{"id": key, "n": n, "f": 0.5, "ts": n} for key, n in batch_]
        ours.write(base, "upsert", pa.Table.from_pylist(rows, schema=NARROW))
    expected = [{"id": key, "n": n, "f": 0.5, "ts": ts} for key, n, ts in (("a", 3, 2), ("b", 1, 1), ("C", 2, 2))]
    hudis.each(lambda oracle: ours.assert_all_read(base, oracle, expected))
