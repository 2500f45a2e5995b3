"""`readStream.format("hudi")`: every change once, in its latest state, whatever happens between two
batches.

Copy-on-write and merge-on-read; stop, crash and restart from a checkpoint; where a stream begins;
how much a batch takes; writes that are still pending; archived and cleaned instants; columns that
come later.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import CaseInsensitiveDict
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxFiles

from hudi_spark.datasource.source import HudiDataSource
from hudi_spark.datasource.stream_reads import HudiStreamReader
from hudi_table.api import HudiTable, create_table, open_table
from hudi_table.errors import ExpiredError, InvalidOptionError
from tests.support import golden

SCHEMA = pa.schema([("id", pa.string()), ("city", pa.string()), ("ts", pa.int64())])
EVERYTHING = ReadAllAvailable()
Row = tuple[str, int, str]


def rows(ts: int, *keys: int) -> pa.Table:
    data = {"id": [f"k{k}" for k in keys], "city": [f"c{k % 2}" for k in keys], "ts": [ts] * len(keys)}
    return pa.table(data, SCHEMA)


def new_table(folder: Path, kind="CopyOnWrite", **more: Any) -> HudiTable:
    index = {"type": "Bucket", "buckets": 2}
    more.setdefault("version", 6)
    return create_table(str(folder / "t"), SCHEMA, record_key="id", partition_by="city", index=index, type=kind, **more)


def changed(table: HudiTable, since: str | None = None, until: str | None = None) -> set[Row]:
    found = table.scan(["id", "ts", "_hoodie_commit_time"], query="incremental", since=since, until=until).to_arrow()
    return {(row["id"], row["ts"], row["_hoodie_commit_time"]) for row in found.to_pylist()}


def source(spark: SparkSession, table: HudiTable, **options: str) -> DataFrame:
    return spark.readStream.format("hudi").options(**options).load(table.base_path)


def take(spark: SparkSession, table: HudiTable, folder: Path, **options: str) -> list[Row]:
    """One run with `availableNow` from the checkpoint in `folder`; all rows that the sink holds
    now."""
    query = (
        source(spark, table, **options).writeStream.format("parquet").trigger(availableNow=True)
        .option("checkpointLocation", str(folder / "checkpoint")).start(str(folder / "out"))
    )  # fmt: skip
    query.awaitTermination()
    return held(spark, folder)


def held(spark: SparkSession, folder: Path) -> list[Row]:
    frame = spark.read.parquet(str(folder / "out"))
    return [(row.id, row.ts, row._hoodie_commit_time) for row in frame.collect()]


@pytest.mark.spark
@pytest.mark.parametrize("kind", [pytest.param("CopyOnWrite", marks=pytest.mark.at_scale(2)), "MergeOnRead"])
def test_nothing_is_lost_and_nothing_doubled_through_stops_and_restarts(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    table = new_table(tmp_path, kind)
    first = table.upsert(rows(1, *range(20))).instant
    expected = changed(table, until=first)
    found = take(spark, table, tmp_path)
    assert len(found) == len(expected) == 20
    assert set(found) == expected
    assert sorted(take(spark, table, tmp_path)) == sorted(found)
    table.upsert(rows(2, 1, 2, 30))
    table.upsert(rows(3, 2, 3))
    table.delete(rows(0, 4))  # written again below
    expected |= changed(table, first)
    found = take(spark, table, tmp_path)
    assert sorted(found) == sorted(expected)
    running = (
        source(spark, table).writeStream.format("parquet").trigger(processingTime="200 milliseconds")
        .option("checkpointLocation", str(tmp_path / "checkpoint")).start(str(tmp_path / "out"))
    )  # fmt: skip
    try:
        for ts in (4, 5):
            before = table.history(1)["instant"][0].as_py()
            table.upsert(rows(ts, ts, ts + 1, 40 + ts))
            running.processAllAvailable()
            expected |= changed(table, before)
    finally:
        running.stop()
    found = held(spark, tmp_path)
    assert sorted(found) == sorted(expected)
    latest = {key: ts for key, ts, _ in sorted(found, key=lambda row: row[2])}
    assert latest == {row["id"]: row["ts"] for row in table.scan(["id", "ts"]).to_arrow().to_pylist()}


@pytest.mark.spark
def test_a_batch_that_crashed_is_replayed_with_the_same_rows(spark: SparkSession, tmp_path: Path) -> None:
    table = new_table(tmp_path, "MergeOnRead")
    first = table.upsert(rows(1, *range(6))).instant
    seen: dict[int, list[list[Row]]] = {}
    crash = {1}

    def store(frame: DataFrame, number: int) -> None:
        seen.setdefault(number, []).append(sorted((row.id, row.ts, row._hoodie_commit_time) for row in frame.collect()))
        if number in crash:
            raise RuntimeError("the sink is gone")

    def run() -> None:
        query = (
            source(spark, table).writeStream.foreachBatch(store).trigger(availableNow=True)
            .option("checkpointLocation", str(tmp_path / "checkpoint")).start()
        )  # fmt: skip
        query.awaitTermination()

    run()
    second = table.upsert(rows(2, 1, 2)).instant
    wanted = sorted(changed(table, first))
    with pytest.raises(StreamingQueryException, match="the sink is gone"):
        run()
    table.upsert(rows(3, 2, 3))
    crash.clear()
    run()
    assert seen[1] == [wanted, wanted]
    assert seen[2] == [sorted(changed(table, second))]


class TestReader:
    """The reader as Spark calls it, without Spark."""

    def reader(self, table: HudiTable, **options: str) -> HudiStreamReader:
        given = CaseInsensitiveDict({"path": table.base_path, "meta": "false", **options})
        data_source = HudiDataSource(given)
        found = data_source.streamReader(data_source.schema())
        assert isinstance(found, HudiStreamReader)
        return found

    def batch(self, reader: HudiStreamReader, since: str, until: str) -> list[dict[str, Any]]:
        parts = reader.partitions({"instant": since}, {"instant": until})
        return [row for part in parts for batch in reader.read(part) for row in batch.to_pylist()]

    def test_a_stream_begins_at_the_earliest_the_latest_or_an_instant(self, tmp_path: Path) -> None:
        table = new_table(tmp_path)
        first = table.upsert(rows(1, 1, 2)).instant
        second = table.upsert(rows(2, 2)).instant
        assert self.reader(table).initialOffset() == {"instant": ""}
        assert self.reader(table, since="earliest").initialOffset() == {"instant": ""}
        assert self.reader(table, since="latest").initialOffset() == {"instant": second}
        assert self.reader(table, since=first).initialOffset() == {"instant": first}
        assert self.reader(table).latestOffset({"instant": second}, EVERYTHING) == {"instant": second}
        assert self.reader(table).reportLatestOffset() == {"instant": second}
        assert [row["id"] for row in self.batch(self.reader(table, columns="id"), first, second)] == ["k2"]
        assert self.batch(self.reader(table, filter="ts > 5"), "", second) == []
        hudis = self.reader(table, **{"hoodie.datasource.streaming.startoffset": "latest"})
        assert hudis.initialOffset() == {"instant": second}
        with pytest.raises(InvalidOptionError, match="'yesterday' is no moment"):
            self.reader(table, since="yesterday").initialOffset()
        with pytest.raises(InvalidOptionError, match="query=cdc does not go with a stream"):
            self.reader(table, query="cdc")

    def test_an_empty_table_gives_no_batch(self, tmp_path: Path) -> None:
        reader = self.reader(new_table(tmp_path))
        start = reader.initialOffset()
        assert reader.latestOffset(start, EVERYTHING) == start
        assert (reader.partitions(start, start), reader.reportLatestOffset()) == ([], None)

    def test_a_batch_takes_no_more_writes_than_it_may(self, tmp_path: Path) -> None:
        table = new_table(tmp_path)
        times = [table.upsert(rows(ts, ts)).instant for ts in range(5)]
        reader = self.reader(table, maxInstantsPerTrigger="2")
        limit = reader.getDefaultReadLimit()
        assert limit == ReadMaxFiles(2)
        # What was there before the stream began is one snapshot: its writes may be cleaned.
        assert reader.latestOffset({"instant": ""}, limit) == {"instant": times[4]}
        assert reader.latestOffset({"instant": times[0]}, limit) == {"instant": times[2]}
        assert reader.latestOffset({"instant": times[0]}, EVERYTHING) == {"instant": times[4]}
        reader.prepareForTriggerAvailableNow()
        table.upsert(rows(9, 9))
        assert reader.latestOffset({"instant": times[2]}, EVERYTHING) == {"instant": times[4]}
        assert reader.latestOffset({"instant": times[4]}, EVERYTHING) == {"instant": times[4]}
        with pytest.raises(InvalidOptionError, match="'maxInstantsPerTrigger': 'all' is not a whole number"):
            self.reader(table, maxInstantsPerTrigger="all")

    @pytest.mark.parametrize(
        "claim", ["commit.requested", "inflight", "deltacommit.inflight", "replacecommit.requested"]
    )
    def test_a_batch_ends_before_a_write_that_is_pending(self, tmp_path: Path, claim: str) -> None:
        table = new_table(tmp_path)
        first = table.upsert(rows(1, 1)).instant
        pending = Path(table.base_path, ".hoodie", f"{int(first) + 1}.{claim}")
        pending.touch()
        second = table.upsert(rows(2, 2)).instant
        reader = self.reader(table)
        assert reader.latestOffset({"instant": ""}, EVERYTHING) == {"instant": first}
        assert reader.latestOffset({"instant": first}, EVERYTHING) == {"instant": first}
        pending.unlink()
        assert reader.latestOffset({"instant": first}, EVERYTHING) == {"instant": second}

    def test_a_start_in_the_archive_is_refused_but_for_a_full_scan(self, tmp_path: Path) -> None:
        table = open_table(str(golden.unpack("arch", tmp_path).base))
        newest = table.history(1)["instant"][0].as_py()
        old = "20200101000000000"
        with pytest.raises(ExpiredError, match="partly archived"):
            self.reader(table).partitions({"instant": old}, {"instant": newest})
        everything = table.scan().count()
        assert len(self.batch(self.reader(table, fullScan="true"), old, newest)) == everything
        # From the earliest on everything has changed, so that nothing has to be known.
        assert len(self.batch(self.reader(table), "", newest)) == everything

    def test_a_task_whose_file_was_cleaned_since_the_batch_was_planned_ends_in_expired(self, tmp_path: Path) -> None:
        table = new_table(tmp_path)
        newest = table.upsert(rows(1, 1)).instant
        reader = self.reader(table)
        (part,) = reader.partitions({"instant": ""}, {"instant": newest})
        for ts in (2, 3):
            table.upsert(rows(ts, 1))
        table.clean({"hoodie.clean.commits.retained": "1"}, force=True)
        with pytest.raises(ExpiredError, match=r"was cleaned by the clean \d+ while it was read"):
            list(reader.read(part))

    def test_a_batch_whose_files_were_cleaned_is_refused_but_for_a_full_scan(self, tmp_path: Path) -> None:
        table = open_table(str(golden.unpack("clust", tmp_path).base))
        times = sorted(table.history()["instant"].to_pylist())
        start, cleaned, newest = times[2], times[3], times[-1]
        with pytest.raises(ExpiredError, match="deleted files that were current then"):
            self.reader(table).partitions({"instant": start}, {"instant": cleaned})
        reader = self.reader(table, fullScan="true", meta="true")
        first, rest = self.batch(reader, start, cleaned), self.batch(reader, cleaned, newest)
        assert {row["_hoodie_commit_time"] for row in first} <= {cleaned}
        changed_since = [row for row in self.batch(reader, "", newest) if row["_hoodie_commit_time"] > start]
        assert len(first) + len(rest) == len(changed_since) > 0

    def test_columns_that_come_later_are_left_out_until_the_query_begins_anew(self, tmp_path: Path) -> None:
        table = new_table(tmp_path)
        first = table.upsert(rows(1, 1)).instant
        reader = self.reader(table)
        more = rows(2, 2).append_column("note", pa.array(["new"]))
        second = table.upsert(more).instant
        assert [set(row) for row in self.batch(reader, first, second)] == [{"id", "city", "ts"}]
        # A replay of an older batch under the columns of today.
        assert [row["note"] for row in self.batch(self.reader(table), "", first)] == [None]
        assert {row["note"] for row in self.batch(self.reader(table), "", second)} == {None, "new"}
