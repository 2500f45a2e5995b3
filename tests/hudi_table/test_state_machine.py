"""Random writes agree with a dictionary, step by step, now and at every earlier instant.

Matrix: {bucket, simple, global simple} × {partitioned, not} × {copy-on-write by commit time, by
event time, merge-on-read} × {with a metadata table, without}, drawn per run; steps are upserts
(flagged deletes, duplicates and moves among them), deletes, inserts, bulk inserts, overwrites,
dropped partitions, added columns, a widened column, reopening, and of merge-on-read tables
compactions, planned and executed apart. The table is read after every step.

Omitted: inserts of known keys, which keep both rows (test_operations.py); several writers; ordering
fields of merge-on-read tables, whose rules are tested against Hudi
(tests/interop/test_log_blocks.py).
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from hudi_table.api import HudiTable, create_table, open_table
from hudi_table.metadata.validate import differences
from hudi_table.services.compaction.debt import pending_instants
from hudi_table.table.engine.local_engine import LocalEngine
from hudi_table.table.timeline.active import load_timeline
from tests.support.scale import scaled

CITIES = ("x", "y", "z")
IDS = tuple("abcdefghij")
STEPS_LEAST = 1_000
INDEXES = ({"type": "Bucket", "buckets": 2}, "Simple", "GlobalSimple")
MODES = ("CommitTime", "EventTime", "MergeOnRead", "MergeOnRead")
NEW_COLUMNS = ("n0", "n1", "n2")
ENGINE = LocalEngine(2)
steps_taken = 0

Row = dict[str, Any]
upserted = st.tuples(
    st.sampled_from(IDS),
    st.sampled_from(CITIES),
    st.integers(-9, 9),
    st.integers(1, 4),
    st.sampled_from([None, False, True]),
)
addressed = st.tuples(st.sampled_from(IDS), st.sampled_from(CITIES))


@dataclass(frozen=True)
class Kind:
    """What table a run is about."""

    index: Any
    partitioned: bool
    mode: str
    version: int = 6

    @property
    def last_wins(self) -> bool:
        """Whether of rows of one key in a batch the last counts, and not that with the larger `ts`.
        By commit time versions 8 and 9 ask no ordering field, as Hudi 1.1.1 does not."""
        return self.logs or (self.version > 6 and not self.event_time)

    @property
    def event_time(self) -> bool:
        """Whether the larger `ts` wins."""
        return self.mode == "EventTime"

    @property
    def logs(self) -> bool:
        """Whether updates go to logs."""
        return self.mode == "MergeOnRead"

    @property
    def keyed_by_city(self) -> bool:
        """Whether one id may live in several partitions."""
        return self.partitioned and self.index != "GlobalSimple"


class Model:
    """The rows that the table should hold, by key."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.rows: dict[Any, Row] = {}

    def key(self, row: Row) -> Any:
        return (row["id"], row["city"]) if self.kind.keyed_by_city else row["id"]

    def upsert(self, batch: list[Row]) -> None:
        newest: dict[Any, Row] = {}
        for row in batch:
            known = newest.get(self.key(row))
            if known is None or self.kind.last_wins or row["ts"] >= known["ts"]:
                newest[self.key(row)] = row
        for key, row in newest.items():
            stored = self.rows.get(key)
            if self.kind.event_time and stored is not None and row["ts"] < stored["ts"]:
                continue
            self.rows.pop(key, None)
            if not row["_hoodie_is_deleted"]:
                self.rows[key] = row

    def delete(self, keys: list[tuple[str, str]]) -> None:
        for name, city in keys:
            self.rows.pop((name, city) if self.kind.keyed_by_city else name, None)

    def drop(self, doomed: Callable[[Row], bool]) -> None:
        self.rows = {key: row for key, row in self.rows.items() if not doomed(row)}


class TableMachine(RuleBasedStateMachine):
    """A table beside its model."""

    def __init__(self) -> None:
        super().__init__()
        self.columns: list[str] = []
        self.wide = False
        self.fresh = 0
        self.past: list[tuple[str, list[Row]]] = []

    @initialize(
        index=st.sampled_from(INDEXES), partitioned=st.booleans(), mode=st.sampled_from(MODES),
        metadata=st.sampled_from([False, False, True]), version=st.sampled_from([6, 6, 8, 9]),
    )  # fmt: skip
    def create(self, index: Any, partitioned: bool, mode: str, metadata: bool, version: int) -> None:
        self.kind = Kind(index, partitioned, mode, version)
        self.model = Model(self.kind)
        self.uri = f"memory://{uuid.uuid4().hex}/t"
        self.table: HudiTable = create_table(
            self.uri, self.schema(), record_key="id", partition_by="city" if partitioned else (), index=index,
            ordering_fields=() if self.kind.logs else "ts", merge_mode="EventTime" if self.kind.event_time else "CommitTime",
            type="MergeOnRead" if self.kind.logs else "CopyOnWrite", version=version,
        )  # fmt: skip
        if metadata:
            self.table.build_metadata(["column_stats", "bloom_filters"])

    def schema(self) -> pa.Schema:
        value = pa.int64() if self.wide else pa.int32()
        known = [
            ("id", pa.string()),
            ("city", pa.string()),
            ("value", value),
            ("ts", pa.int64()),
            ("_hoodie_is_deleted", pa.bool_()),
        ]
        return pa.schema([*known, *((name, pa.string()) for name in self.columns)])

    def row(self, item: tuple[str, str, int, int, bool | None]) -> Row:
        base = dict(zip(("id", "city", "value", "ts", "_hoodie_is_deleted"), item, strict=True))
        return base | {name: f"{name}{item[2]}" for name in self.columns}

    def fresh_rows(self, cities: list[str]) -> list[Row]:
        self.fresh += len(cities)
        numbered = enumerate(cities, self.fresh - len(cities))
        return [self.row((f"f{number}", city, number % 9, 2, None)) for number, city in numbered]

    def write(self, operation, batch: list[Row], **more: Any) -> None:
        data = pa.Table.from_pylist(batch, schema=self.schema())
        self.agree(self.table.write(data, operation=operation, engine=ENGINE, **more).instant)

    def agree(self, instant: str) -> None:
        global steps_taken
        steps_taken += 1
        expected = sorted((self.shown(row) for row in self.model.rows.values()), key=repr)
        assert self.read() == expected
        assert differences(self.table.context) == []
        self.past.append((instant, expected))

    def shown(self, row: Row) -> Row:
        return {name: row.get(name) for name in self.schema().names if name != "_hoodie_is_deleted"}

    def read(self, as_of: str | None = None) -> list[Row]:
        found = self.table.scan(as_of=as_of).to_arrow().to_pylist()
        return sorted(({k: v for k, v in row.items() if k != "_hoodie_is_deleted"} for row in found), key=repr)

    @rule(items=st.lists(upserted, max_size=8))
    def upsert(self, items: list[Any]) -> None:
        batch = [self.row(item) for item in items]
        self.model.upsert(batch)
        self.write("upsert", batch)

    @rule(keys=st.lists(addressed, max_size=5))
    def delete(self, keys: list[tuple[str, str]]) -> None:
        self.model.delete(keys)
        data = pa.table(
            {"id": pa.array([k[0] for k in keys], pa.string()), "city": pa.array([k[1] for k in keys], pa.string())}
        )
        self.agree(self.table.delete(data, engine=ENGINE).instant)

    @rule(cities=st.lists(st.sampled_from(CITIES), max_size=4), operation=st.sampled_from(["insert", "bulk_insert"]))
    def insert(self, cities: list[str], operation: str) -> None:
        batch = self.fresh_rows(cities)
        self.model.rows |= {self.model.key(row): row for row in batch}
        self.write(operation, batch)

    @rule(cities=st.lists(st.sampled_from(CITIES), max_size=3))
    def overwrite(self, cities: list[str]) -> None:
        batch = self.fresh_rows(cities)
        # Without rows there is no partition to replace, not even that of a table without partitions.
        self.model.drop(lambda row: row["city"] in cities if self.kind.partitioned else bool(cities))
        self.model.rows |= {self.model.key(row): row for row in batch}
        self.write("insert_overwrite", batch)

    @rule(cities=st.lists(st.sampled_from(CITIES), max_size=3))
    def overwrite_table(self, cities: list[str]) -> None:
        batch = self.fresh_rows(cities)
        self.model.rows = {self.model.key(row): row for row in batch}
        self.write("insert_overwrite_table", batch)

    @precondition(lambda self: self.model.rows)
    @rule(pick=st.integers(0, 2))
    def drop_partition(self, pick: int) -> None:
        present = sorted({row["city"] for row in self.model.rows.values()})
        city = present[pick % len(present)]
        self.model.drop(lambda row: not self.kind.partitioned or row["city"] == city)
        name = city if self.kind.partitioned else ""
        self.agree(self.table.write(None, operation="delete_partition", partitions=[name], engine=ENGINE).instant)

    @precondition(lambda self: len(self.columns) < len(NEW_COLUMNS))
    @rule(items=st.lists(upserted, max_size=3))
    def add_column(self, items: list[Any]) -> None:
        self.columns.append(NEW_COLUMNS[len(self.columns)])
        self.upsert(items)

    @precondition(lambda self: not self.wide)
    @rule(items=st.lists(upserted, max_size=3))
    def widen_column(self, items: list[Any]) -> None:
        self.wide = True
        self.upsert(items)

    @precondition(lambda self: self.kind.logs)
    @rule()
    def plan_compaction(self) -> None:
        self.table.schedule_compaction(force=True)
        self.agree(self.past[-1][0] if self.past else "")

    @precondition(lambda self: self.kind.logs)
    @rule()
    def execute_compactions(self) -> None:
        for instant in pending_instants(self.table.context, load_timeline(self.table.context)):
            self.table.run_compaction(instant, engine=ENGINE)
        self.agree(self.past[-1][0] if self.past else "")

    @precondition(lambda self: self.kind.logs)
    @rule()
    def plan_log_compaction(self) -> None:
        self.table.services.log_compaction(force=True).schedule()
        self.agree(self.past[-1][0] if self.past else "")

    @precondition(lambda self: self.kind.logs)
    @rule()
    def compact_logs(self) -> None:
        self.table.compact_logs(force=True)
        self.agree(self.past[-1][0] if self.past else "")

    @rule()
    def reopen(self) -> None:
        self.table = open_table(self.uri)
        self.agree(self.past[-1][0] if self.past else "")

    @precondition(lambda self: self.past)
    @rule(pick=st.integers(0, 1000))
    def look_back(self, pick: int) -> None:
        global steps_taken
        steps_taken += 1
        instant, expected = self.past[pick % len(self.past)]
        if not instant:
            return
        found = [{name: row.get(name) for name in expected[0]} if expected else row for row in self.read(instant)]
        last = next(rows for time, rows in reversed(self.past) if time == instant)
        assert found == last


@pytest.mark.timeout(1800)
def test_random_writes_agree_with_a_dictionary(figure: Callable[[int, str], None]) -> None:
    begun = steps_taken
    wanted = begun + scaled(STEPS_LEAST, at_least=STEPS_LEAST, quick=500)
    quick = settings(
        max_examples=8, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck), print_blob=True
    )
    while steps_taken < wanted:
        run_state_machine_as_test(TableMachine, settings=quick)
    figure(steps_taken - begun, "steps of the state machine")
