"""Pruning never changes rows: the rows of a pruned scan equal those of the whole table, filtered
afterwards.

Partition values of every simple type, encoded and not, hive-style and not, nulls and empty text,
timestamp folders; row groups with and without nulls, NaN among floats.
"""

from __future__ import annotations

import io
import math
import uuid
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_table import HudiTable, create_table, open_table, write_hudi
from hudi_table.model.table.config import PartitionField, PartitionType, TableConfig, TableType
from hudi_table.model.table.index_properties import INDEX_TYPE, RECORD_INDEX_MOVES
from hudi_table.read.filter.predicates import Filter
from hudi_table.read.pruning.partitions import matching_partitions, matching_row_groups
from hudi_table.table.timeline.properties import replace_properties
from hudi_table.write.keygen.columns import partition_paths
from tests.support.scale import scaled

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("city", pa.string()),
        ("zone", pa.int32()),
        ("day", pa.date32()),
        ("ok", pa.bool_()),
        ("at", pa.timestamp("us", tz="UTC")),
        ("ms", pa.int64()),
        ("ratio", pa.float64()),
    ]
)
CITIES = ["sf", "ny", "", "a b", "x=y", "100%", "é", "default", "__HIVE_DEFAULT_PARTITION__", "A", None]
ROW = st.fixed_dictionaries(
    {
        "city": st.sampled_from(CITIES),
        "zone": st.sampled_from([None, -1, 0, 1, 2**31 - 1]),
        "day": st.sampled_from([None, date(1969, 12, 31), date(1970, 1, 1), date(2024, 2, 29)]),
        "ok": st.sampled_from([None, True, False]),
        "at": st.one_of(
            st.none(),
            st.sampled_from([-1_500, -999, -1, 0, 1, 86_399_999_999, 86_400_000_000, 1_709_164_800_000_000]),
        ),
        "ms": st.sampled_from([None, -1, 0, 1, 86_399_999, 86_400_000, 1_709_164_800_000]),
        "ratio": st.sampled_from([None, math.nan, -0.0, 0.5, 1e300]),
    }
)
MOMENT = st.sampled_from(
    ["1969-12-31 23:59:59.999", "1970-01-01", "1970-01-01 00:00:00.000500", "1970-01-02", "2024-02-29"]
)
CONDITION = st.one_of(
    st.tuples(
        st.just("city"), st.sampled_from(["=", "!=", "<", ">="]), st.sampled_from([c for c in CITIES if c is not None])
    ),
    st.tuples(st.just("zone"), st.sampled_from(["=", "!=", "<", ">="]), st.sampled_from([-1, 0, 1])),
    st.tuples(
        st.just("day"), st.sampled_from(["=", "!=", "<", ">="]), st.sampled_from([date(1970, 1, 1), date(2024, 2, 29)])
    ),
    st.tuples(st.just("ok"), st.sampled_from(["=", "!="]), st.booleans()),
    st.tuples(st.just("at"), st.sampled_from(["=", "!=", "<", ">=", "<=", ">"]), MOMENT),
    st.tuples(st.just("ms"), st.sampled_from(["=", "!=", "<", ">="]), st.sampled_from([-1, 0, 1, 86_400_000])),
    st.tuples(st.just("ratio"), st.sampled_from(["=", "!=", "<", ">="]), st.sampled_from([0.0, 0.5])),
    st.tuples(st.sampled_from(["city", "zone", "day", "at"]), st.sampled_from(["is", "is not"]), st.none()),
    st.tuples(st.just("city"), st.just("in"), st.lists(st.sampled_from(["sf", "", "é"]), min_size=1)),
    st.tuples(st.just("city"), st.just("not in"), st.lists(st.sampled_from(["sf", "", "é"]), min_size=1)),
)
CONDITIONS = st.one_of(
    CONDITION,
    st.lists(CONDITION, min_size=1, max_size=3),
    st.lists(st.lists(CONDITION, min_size=1, max_size=2), min_size=1, max_size=3),
)
FIELDS = {
    "city": PartitionField("city"),
    "zone": PartitionField("zone"),
    "day": PartitionField("day"),
    "ok": PartitionField("ok"),
    "ratio": PartitionField("ratio"),
    "at": PartitionField("at", PartitionType.TIMESTAMP, format="yyyy/MM/dd", input="EPOCHMICROSECONDS"),
    "ms": PartitionField("ms", PartitionType.TIMESTAMP, format="yyyyMMdd/HH", input="EPOCHMILLISECONDS"),
}


def rows_of(rows: list[dict[str, Any]]) -> pa.Table:
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    ready = [
        row | {"id": str(i), "at": None if row["at"] is None else epoch + timedelta(microseconds=row["at"])}
        for i, row in enumerate(rows)
    ]
    return pa.Table.from_pylist(ready, schema=SCHEMA)


@settings(max_examples=scaled(300), deadline=None)
@given(
    st.lists(ROW, min_size=1, max_size=12),
    st.lists(st.sampled_from(list(FIELDS)), min_size=1, max_size=3, unique=True),
    st.booleans(),
    CONDITIONS,
)
def test_a_pruned_partition_holds_no_matching_row(
    rows: list[dict[str, Any]], names: list[str], hive_style: bool, condition: object
) -> None:
    config = TableConfig(
        "t", TableType.COPY_ON_WRITE, ("id",), tuple(FIELDS[n] for n in names), hive_style=hive_style, url_encode=True
    )
    table = rows_of(rows)
    found = Filter.of(condition)
    assert found is not None
    bound = found.bind(SCHEMA)
    paths = partition_paths(table, config).to_pylist()
    kept = matching_partitions(bound, sorted(set(paths)), config, SCHEMA)
    matching = table.append_column("path", pa.array(paths)).filter(bound.expression)
    assert set(matching["path"].to_pylist()) <= kept


@settings(max_examples=scaled(150), deadline=None)
@given(st.lists(ROW, min_size=1, max_size=30), st.integers(1, 7), CONDITIONS)
def test_a_pruned_row_group_holds_no_matching_row(rows: list[dict[str, Any]], size: int, condition: object) -> None:
    table = rows_of(rows)
    sink = io.BytesIO()
    pq.write_table(table, sink, row_group_size=size, store_schema=False)
    metadata = pq.read_metadata(io.BytesIO(sink.getvalue()))
    found = Filter.of(condition)
    assert found is not None
    bound = found.bind(SCHEMA)
    kept = matching_row_groups(bound, SCHEMA, metadata, SCHEMA)
    for group in set(range(metadata.num_row_groups)) - set(kept):
        assert table.slice(group * size, size).filter(bound.expression).num_rows == 0


@pytest.fixture(scope="module")
def cities() -> HudiTable:
    """Sixty rows in three cities and two months, two of the rows without a city."""
    start = datetime(2024, 1, 31, 22, tzinfo=UTC)
    rows = pa.table(
        {
            "id": [f"k{i:02d}" for i in range(60)],
            "city": [None if i in (7, 8) else ("sf", "ny", "a/b")[i % 3] for i in range(60)],
            "at": pa.array([start + timedelta(minutes=4 * i) for i in range(60)], pa.timestamp("us", tz="UTC")),
            "n": range(60),
        }
    )
    by: list[Any] = ["city", {"field": "at", "type": "Timestamp", "format": "yyyy/MM"}]
    table = create_table(
        f"memory://{uuid.uuid4().hex}/t", rows.schema, record_key="id", partition_by=by, url_encode=True
    )
    write_hudi(table, rows)
    return table


@pytest.mark.parametrize(
    ("condition", "partitions"),
    [
        ("city = 'sf'", 2),
        ("city in ('sf', 'a/b')", 4),
        ("city = 'sf' and at < '2024-02-01'", 1),
        ("city = 'sf' and at >= '2024-02-01'", 1),
        ("at between '2024-02-10' and '2024-02-20'", 3),
        ("at between '2024-03-10' and '2024-04-01'", 0),
        ("city is null", 1),
        ("city like 's%'", 2),
        ("city = 'sf' or n = 7", 7),
        ("not city = 'sf'", 5),
        ("n < 0", 7),
        (pc.field("city") == "ny", 2),
    ],
)
def test_filters_on_partition_fields_leave_partitions_unread(
    cities: HudiTable, condition: Any, partitions: int
) -> None:
    everything = cities.scan().to_arrow()
    found = Filter.of(condition)
    assert found is not None
    expected = everything.filter(found.bind(everything.schema).expression)
    scan = cities.scan(filter=condition)
    assert sorted(scan.to_arrow()["id"].to_pylist()) == sorted(expected["id"].to_pylist())
    assert scan.plan.partitions == partitions
    assert scan.plan.partitions_total == 7


def test_a_key_generator_of_the_users_own_prunes_nothing(cities: HudiTable) -> None:
    bound = Filter.of("city = 'sf'").bind(SCHEMA)  # type: ignore[union-attr]
    config = TableConfig(
        "t", TableType.COPY_ON_WRITE, ("id",), (PartitionField("city"),), key_generator="com.example.Shifted"
    )
    assert matching_partitions(bound, ["sf", "ny"], config, SCHEMA) == {"sf", "ny"}


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize(("moves", "read"), [(None, 2), ("false", 2), ("true", 1)])
def test_a_key_that_a_record_index_left_in_its_partition_is_found_by_its_new_one(
    tmp_path: Path, version: int, moves: str | None, read: int
) -> None:
    """Hudi stores no index in a table; that there is one its metadata table tells."""
    schema = pa.schema([("id", pa.string()), ("city", pa.string()), ("n", pa.int64())])
    place: dict[str, Any] = {"record_key": "id", "partition_by": "city", "index": "RecordIndex", "version": version}
    options = {} if moves is None else {RECORD_INDEX_MOVES: moves}
    table = create_table(str(tmp_path / "t"), schema, options=options, **place)
    table.upsert(pa.table({"id": ["a", "b"], "city": ["ny", "sf"], "n": [1, 1]}, schema=schema))
    table.upsert(pa.table({"id": ["a"], "city": ["sf"], "n": [2]}, schema=schema))
    for stores_index in (True, False):
        if not stores_index:
            replace_properties(table.context, {INDEX_TYPE: None})
        table = open_table(str(tmp_path / "t"))
        assert (table.context.config.index is not None) == stores_index
        scan = table.scan(["id"], filter="city = 'sf'")
        assert sorted(scan.to_arrow()["id"].to_pylist()) == ["a", "b"]
        assert scan.count() == 2
        assert scan.plan.partitions == read


def test_a_folder_that_fits_no_field_is_read() -> None:
    bound = Filter.of("city = 'sf'").bind(SCHEMA)  # type: ignore[union-attr]
    config = TableConfig("t", TableType.COPY_ON_WRITE, ("id",), (PartitionField("city"),))
    assert matching_partitions(bound, ["a/b", "sf", "ny", ""], config, SCHEMA) == {"a/b", "sf", ""}
