"""Nearest vectors: as Apache Hudi answers, over everything, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_table import HudiTable, InvalidOptionError, InvalidRequestError, create_table, vector_search
from hudi_table.read.unstructured.nearest import Metric, nearest
from tests.support.logical_types import golden_table

# What `hudi_vector_search` of Hudi 1.2.0 returned for the query [1, 2, 1] over these vectors.
VECTORS = {"k0": [1, 2, 3], "k1": [4, -5, 6], "k2": [0, 0, 0], "k3": [1, 0, 0], "knull": None}
OF_HUDI = {
    "cosine": [("k0", 0.12712843905603044), ("k3", 0.5917517095361369), ("k1", 1.0), ("k2", 1.0)],
    "l2": [("k0", 2.0), ("k3", 2.23606797749979), ("k2", 2.449489742783178), ("k1", 9.1104335791443)],
    "dot_product": [("k0", -8.0), ("k3", -1.0), ("k1", 0.0), ("k2", 0.0)],
}


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> HudiTable:
    kinds = {"v": pa.float32(), "d": pa.float64(), "b": pa.int8()}
    schema = pa.schema([("id", pa.string()), *((name, pa.list_(kind, 3)) for name, kind in kinds.items())])
    rows = [{"id": key, **dict.fromkeys(kinds, vector)} for key, vector in VECTORS.items()]
    made = create_table(tmp_path_factory.mktemp("nearest") / "t", schema, record_key="id", version=9, index="Simple")
    made.upsert(pa.Table.from_pylist(rows, schema=schema))
    return made


@pytest.mark.parametrize("column", ["v", "d", "b"])
@pytest.mark.parametrize("metric", sorted(OF_HUDI))
def test_distances_are_those_of_hudi(table: HudiTable, column: str, metric: Any) -> None:
    found = vector_search(table, column, [1.0, 2.0, 1.0], 10, metric)
    assert found["id"].to_pylist() == [key for key, _ in OF_HUDI[metric]]
    assert found["_hudi_distance"].to_pylist() == pytest.approx([distance for _, distance in OF_HUDI[metric]])
    assert found.column_names == ["id", "v", "d", "b", "_hudi_distance"]


def test_the_nearest_alone_come_with_the_columns_and_of_the_rows_that_are_asked_for(table: HudiTable) -> None:
    found = vector_search(table.base_path, "v", [1, 2, 1], 1, "l2", columns=["id"], filter="id <> 'k0'")
    assert found.to_pylist() == [{"id": "k3", "_hudi_distance": pytest.approx(5**0.5)}]


def test_a_table_of_hudi_is_searched(tmp_path: Path) -> None:
    found = vector_search(golden_table("mor", tmp_path), "w", [2.0, 7.0, 0.0], 2, "l2", columns=["id"])
    assert found.to_pylist() == [
        {"id": "k7", "_hudi_distance": 0.0},
        {"id": "k4", "_hudi_distance": pytest.approx(10**0.5)},
    ]


def test_a_table_without_rows_gives_none_with_their_columns(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.string()), ("v", pa.list_(pa.float32(), 2))])
    empty = create_table(tmp_path / "t", schema, record_key="id", version=9, index="Simple")
    assert vector_search(empty, "v", [1, 2]).column_names == ["id", "v", "_hudi_distance"]


@given(
    st.lists(st.none() | st.lists(st.integers(-3, 3), min_size=2, max_size=2), max_size=30),
    st.integers(1, 5),
    st.integers(1, 7),
    st.sampled_from(list(Metric)),
)
@settings(max_examples=60)
def test_batches_and_pieces_change_nothing(vectors: list[Any], k: int, step: int, metric: Metric) -> None:
    rows = pa.table({"n": range(len(vectors)), "v": pa.array(vectors, pa.list_(pa.float64(), 2))})
    asked = np.array([1.0, 2.0])
    whole = nearest(rows.to_batches(), "v", asked, len(vectors) + 1, metric)
    found = nearest(rows.to_batches(max_chunksize=step), "v", asked, k, metric)
    if whole is None or found is None:
        assert not vectors
        return
    assert found.equals(whole.slice(0, k).combine_chunks())
    assert whole.num_rows == sum(vector is not None for vector in vectors)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"column": "id"}, "column 'id' is no column of vectors; those of the table are v, d, b"),
        ({"column": "x"}, "column 'x' is no column of vectors"),
        ({"vector": [1, 2]}, "vector has 2 numbers, and the vectors of column 'v' have 3"),
        ({"vector": [[1, 2, 3]]}, "vector has 1 x 3 numbers"),
        ({"vector": 5}, "vector has one numbers"),
        ({"vector": [1, 2, float("nan")]}, "vector has a number that is not finite"),
        ({"vector": ["a", "b", "c"]}, "vector is none"),
    ],
)
def test_what_does_not_fit_is_refused_by_its_name(table: HudiTable, more: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidRequestError, match=said):
        vector_search(table, **{"column": "v", "vector": [1, 2, 1], **more})


def test_a_metric_that_is_none_and_no_row_at_all_are_refused(table: HudiTable) -> None:
    with pytest.raises(InvalidOptionError, match="metric is 'euclid': use one of cosine, l2, dot_product"):
        vector_search(table, "v", [1, 2, 1], metric="euclid")  # type: ignore[arg-type]
    with pytest.raises(InvalidOptionError, match="k is 0: give 1 or more rows"):
        vector_search(table, "v", [1, 2, 1], 0)
