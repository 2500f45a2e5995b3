"""A sample of random steps on Spark agrees with a dictionary; the long run of them is the local
engine's."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

import hudi_spark
from hudi_table.api import create_table
from tests.support.scale import scaled

pytestmark = pytest.mark.spark

SCHEMA = pa.schema([("id", pa.string()), ("city", pa.string()), ("ts", pa.int64())])
OPERATIONS: tuple[Any, ...] = ("upsert", "upsert", "delete", "insert", "insert_overwrite")


def test_random_steps_agree_with_a_dictionary(spark, tmp_path, figure):
    chance = random.Random(20130101)
    path = str(tmp_path / "t")
    table = create_table(path, SCHEMA, record_key="id", partition_by="city", index={"type": "Bucket", "buckets": 2})
    model: dict[tuple[str, str], int] = {}
    steps = scaled(8)
    for step in range(steps):
        operation = chance.choice(OPERATIONS)
        rows = one_batch(chance, operation, model, step)
        frame = spark.createDataFrame(rows, "id string, city string, ts long")
        hudi_spark.write(frame, path, operation)
        apply(model, operation, rows)
        found = {(row["city"], row["id"]): row["ts"] for row in table.scan().to_arrow().to_pylist()}
        assert found == model, f"step {step}: {operation} of {rows}"
    figure(steps, "random steps on Spark")


def one_batch(chance: random.Random, operation: str, model: dict[tuple[str, str], int], step: int) -> list[Any]:
    """Rows with unique keys: known and new ones, of insert new ones only."""
    places = [(f"c{chance.randrange(3)}", f"k{chance.randrange(30)}") for _ in range(6)]
    known = chance.sample(sorted(model), min(len(model), 4)) if operation != "insert" else []
    wanted = {*places, *known} if operation != "insert" else {p for p in places if p not in model}
    return [(key, city, step * 100 + number) for number, (city, key) in enumerate(sorted(wanted))] or [
        ("x", "c9", step)
    ]


def apply(model: dict[tuple[str, str], int], operation: str, rows: list[Any]) -> None:
    """What the operation does to the dictionary."""
    if operation == "insert_overwrite":
        replaced = {city for _, city, _ in rows}
        for place in [place for place in model if place[0] in replaced]:
            del model[place]
    for key, city, ts in rows:
        if operation == "delete":
            model.pop((city, key), None)
        else:
            model[(city, key)] = ts
