"""`writeStream.format("hudi")`: every micro-batch is one commit, and once, through crashes,
restarts and new checkpoints."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from hudi_spark.datasource import writes
from hudi_spark.datasource.format_options import format_options
from hudi_spark.datasource.stream_writes import BatchWriter
from hudi_spark.datasource.writes import Staged
from hudi_table.api import HudiTable, create_table, open_table
from hudi_table.errors import HudiError, InvalidOptionError, InvalidRequestError, InvariantError
from hudi_table.metadata.port import open_context
from hudi_table.model.options.write_options import Operation
from tests.support.aged import AgedStorage

KEYS = {"hoodie.table.name": "rides", "hoodie.datasource.write.recordkey.field": "id"}
SCHEMA = "id string, ts long"


class Feed:
    """Files that a stream reads, and the table that it writes."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.source, self.path = spark, folder / "in", str(folder / "t")
        self.checkpoint = folder / "checkpoint"
        self.source.mkdir()

    def add(self, name: str, *rows: tuple[str, int]) -> None:
        lines = "".join(f'{{"id": "{key}", "ts": {ts}}}\n' for key, ts in rows)
        (self.source / f"{name}.json").write_text(lines)

    def run(
        self,
        operation: str = "insert",
        mode: str = "append",
        checkpoint: str | None = "",
        name: str = "",
        **options: str,
    ) -> None:
        frame: DataFrame = self.spark.readStream.schema(SCHEMA).json(str(self.source))
        if mode == "complete":
            frame = frame.groupBy("id").max("ts").toDF("id", "ts")
        stream = frame.writeStream.queryName(name) if name else frame.writeStream
        if checkpoint is not None:
            stream = stream.option("checkpointLocation", str(self.checkpoint) + checkpoint)
        query = (
            stream.format("hudi").options(**KEYS, **options).outputMode(mode).trigger(availableNow=True)
            .option("hoodie.datasource.write.operation", operation).start(self.path)
        )  # fmt: skip
        query.awaitTermination()

    def held(self) -> list[tuple[str, int]]:
        return sorted((row["id"], row["ts"]) for row in open_table(self.path).scan().to_arrow().to_pylist())

    def forget_end_of(self, batch: int) -> None:
        """As if Spark had died after the commit of a batch and before it noted that."""
        for name in (f"{batch}", f".{batch}.crc"):
            (self.checkpoint / "commits" / name).unlink(missing_ok=True)


@pytest.mark.spark
def test_a_batch_that_comes_again_changes_nothing_and_a_new_query_begins_anew(spark, tmp_path):
    feed = Feed(spark, tmp_path)
    feed.add("one", ("a", 1), ("b", 1))
    feed.run()
    feed.add("two", ("c", 2))
    feed.run()
    wanted = [("a", 1), ("b", 1), ("c", 2)]
    assert feed.held() == wanted
    feed.forget_end_of(1)
    feed.run()
    assert feed.held() == wanted  # rows of an insert would come twice
    assert len(open_table(feed.path).history()) == 3  # the first is the table's own
    # The same folder with another query in it: its batches are none of those that were written.
    shutil.rmtree(feed.checkpoint)
    feed.run("upsert")
    feed.add("three", ("a", 3))
    feed.run("upsert")
    assert feed.held() == [("a", 3), ("b", 1), ("c", 2)]
    assert not list(Path(feed.path, ".hoodie").rglob("*.arrow"))
    feed.run("upsert", "complete", checkpoint="-complete")
    assert feed.held() == [("a", 3), ("b", 1), ("c", 2)]
    with pytest.raises(StreamingQueryException, match=r"did you mean 'hoodie\.index\.type'"):
        feed.run(checkpoint="-wrong", **{"hoodie.index.typ": "SIMPLE"})


@pytest.mark.spark
def test_a_checkpoint_of_a_table_that_was_made_again_is_refused_and_a_name_of_a_query_means_nothing(spark, tmp_path):
    feed = Feed(spark, tmp_path)
    feed.add("one", ("a", 1))
    feed.run()
    shutil.rmtree(feed.path)
    feed.add("two", ("b", 2))
    with pytest.raises(StreamingQueryException, match="batch 1 of the stream comes to a table without its batch 0"):
        feed.run()
    # A query of the same name with a checkpoint of its own reads its source from the begin, and so does the next one.
    for checkpoint in ("-second", "-third"):
        feed.run(checkpoint=checkpoint, name="rides")
    assert feed.held() == sorted([("a", 1), ("b", 2)] * 2)


@pytest.mark.spark
def test_a_checkpoint_that_was_set_back_by_one_batch_loses_no_rows_in_silence(spark, tmp_path):
    """Spark gives the next batch the old number, and the rows of both."""
    feed = Feed(spark, tmp_path)
    feed.add("one", ("a", 1))
    feed.run()
    kept = shutil.copytree(feed.checkpoint, tmp_path / "kept")
    feed.add("two", ("b", 2))
    feed.run()
    newest = feed.checkpoint.rename(tmp_path / "newest")
    kept.rename(feed.checkpoint)
    feed.add("three", ("c", 3))
    with pytest.raises(
        StreamingQueryException, match="batch 1 of the stream has 2 rows, and the table has its batch 1"
    ):
        feed.run()
    assert feed.held() == [("a", 1), ("b", 2)]
    shutil.rmtree(feed.checkpoint)
    newest.rename(feed.checkpoint)
    feed.run()
    assert feed.held() == [("a", 1), ("b", 2), ("c", 3)]


@pytest.mark.spark
def test_queries_of_one_name_that_share_a_checkpoint_lose_no_rows_in_silence(spark, tmp_path):
    """Below a folder of the session the name is the checkpoint: the second query goes on where the
    first stopped, in another table, too."""
    feed = Feed(spark, tmp_path)
    spark.conf.set("spark.sql.streaming.checkpointLocation", str(tmp_path / "of-the-session"))
    try:
        feed.add("one", ("a", 1))
        feed.run(checkpoint=None, name="rides")
        feed.add("two", ("b", 2))
        feed.run(checkpoint=None, name="rides")
        assert feed.held() == [("a", 1), ("b", 2)]
        feed.add("three", ("c", 3))
        feed.path = str(tmp_path / "other")
        with pytest.raises(StreamingQueryException, match="batch 2 of the stream comes to a table without its batch 1"):
            feed.run(checkpoint=None, name="rides")
    finally:
        spark.conf.unset("spark.sql.streaming.checkpointLocation")


class TestWriter:
    """The writer as Spark calls it, without Spark."""

    def writer(self, path: Path, **options: str) -> BatchWriter:
        schema = StructType().add("id", "string").add("ts", "long")
        return BatchWriter(format_options({"path": str(path), **KEYS, **options}), schema, False)

    def commit(
        self, path: Path, number: int, query: str = "q1", overwrite: bool = False, rows: int = 1, **options: str
    ) -> None:
        """A batch of rows `k<number>`."""
        given = format_options({"path": str(path), **KEYS, "hoodie.datasource.write.operation": "insert"} | options)
        writer = BatchWriter(given, StructType().add("id", "string").add("ts", "long"), overwrite)
        given = pa.record_batch(
            {"id": [f"k{number}"] * rows, "ts": [number] * rows}, pa.schema([("id", pa.string()), ("ts", pa.int64())])
        )
        writer.commit([replace(writer.write(iter([given])), query=query)], number)

    def keys(self, path: Path) -> list[str]:
        return sorted(open_table(str(path)).scan(["id"]).to_arrow()["id"].to_pylist())

    def test_a_batch_that_comes_to_a_table_without_the_one_before_is_refused(self, tmp_path: Path) -> None:
        path = tmp_path / "t"
        for number in range(3):
            self.commit(path, number)
        shutil.rmtree(path)
        with pytest.raises(
            InvalidRequestError, match=r"batch 3 of the stream comes to a table without its batch 2.*firstBatch=3"
        ):
            self.commit(path, 3)
        assert not [found for found in path.rglob("*") if found.is_file()]
        self.commit(path, 0, "another")
        with pytest.raises(InvalidRequestError, match="without its batch 2"):
            self.commit(path, 3, firstBatch="2")
        assert self.keys(path) == ["k0"]
        for number in (3, 3, 4):
            self.commit(path, number, firstBatch="3")
        assert self.keys(path) == ["k0", "k3", "k4"]
        # What replaces all rows lacks nothing of before.
        shutil.rmtree(path)
        self.commit(path, 7, overwrite=True)
        assert self.keys(path) == ["k7"]

    def test_a_batch_of_a_checkpoint_that_was_set_back_is_refused(self, tmp_path: Path) -> None:
        path = tmp_path / "t"
        for number in (0, 1, 2, 2):
            self.commit(path, number)
        for number in (0, 1):
            with pytest.raises(
                InvalidRequestError, match=f"batch {number} .* has its batch 2: the checkpoint was set back"
            ):
                self.commit(path, number)
        assert self.keys(path) == ["k0", "k1", "k2"]

    @pytest.mark.parametrize("rows", [1, 3])
    def test_a_batch_that_comes_again_with_more_or_fewer_rows_is_refused(self, tmp_path: Path, rows: int) -> None:
        path = tmp_path / "t"
        for number in (0, 1):
            self.commit(path, number, rows=2)
        self.commit(path, 1, rows=2)
        with pytest.raises(
            InvalidRequestError,
            match=f"batch 1 .* has {rows} rows?, and the table has its batch 1 with 2: .* set back by one.*firstBatch=1",
        ):
            self.commit(path, 1, rows=rows)
        # Whoever knows that its rows are there passes over it, and goes on.
        self.commit(path, 1, rows=rows, firstBatch="1")
        self.commit(path, 2, firstBatch="1")
        assert self.keys(path) == ["k0", "k0", "k1", "k1", "k2"]

    def test_a_batch_of_an_earlier_release_which_kept_no_number_of_rows_is_taken_for_a_repeat(
        self, tmp_path: Path
    ) -> None:
        path = tmp_path / "t"
        self.commit(path, 0)
        rows = pa.table({"id": ["k1"], "ts": pa.array([1], pa.int64())})
        open_table(str(path)).insert(rows, batch="spark-stream/q1/1")
        self.commit(path, 1, rows=2)
        assert self.keys(path) == ["k0", "k1"]

    @pytest.mark.parametrize("operation", [each.value for each in Operation])
    def test_a_batch_without_rows_counts_whatever_it_does(self, tmp_path: Path, operation: str) -> None:
        path = tmp_path / "t"
        create_table(path, pa.schema([("id", pa.string()), ("ts", pa.int64())]), record_key="id", name="rides")
        for number in (0, 1):
            self.writer(path, **{"hoodie.datasource.write.operation": operation}).commit([Staged(None, "q1")], number)
        self.commit(path, 2)
        assert self.keys(path) == ["k2"]

    @pytest.mark.parametrize("text", ["-1", "two", "²"])
    def test_a_first_batch_that_is_no_number_is_refused(self, tmp_path: Path, text: str) -> None:
        with pytest.raises(InvalidOptionError, match="is not a whole number from 0"):
            self.writer(tmp_path, firstBatch=text)
        with pytest.raises(InvalidOptionError, match="firstBatch goes with writeStream"):
            writes.RowsWriter(
                format_options({"path": str(tmp_path), **KEYS, "firstBatch": "1"}),
                StructType().add("id", "string"),
                False,
            )

    @pytest.mark.parametrize("option", ["batch", "saveMode"])
    def test_what_a_stream_says_itself_is_no_option(self, tmp_path: Path, option: str) -> None:
        with pytest.raises(InvalidOptionError, match="which names its batches itself"):
            self.writer(tmp_path, **{option: "append"})

    def test_tasks_of_no_query_or_of_two_are_refused(self, tmp_path: Path) -> None:
        writer = self.writer(tmp_path / "t")
        for messages in ([Staged(None)], [Staged(None, "q1"), Staged(None, "q2")], [Staged(None, "q1"), None]):
            with pytest.raises(InvariantError):
                writer.commit(list(messages), 0)
        assert not (tmp_path / "t").exists()

    def test_a_batch_without_rows_makes_the_table_and_one_commit(self, tmp_path: Path) -> None:
        for _ in range(2):
            self.writer(tmp_path / "t").commit([Staged(None, "q1")], 0)
        table = open_table(str(tmp_path / "t"))
        assert [row["operation"] for row in table.history().to_pylist()] == [
            "UPSERT",
            "INSERT",
        ]  # the table begins with an empty one
        assert table.scan().count() == 0

    def test_a_batch_whose_commit_was_archived_changes_nothing_when_it_comes_again(self, tmp_path: Path) -> None:
        def commit(number: int, query: str = "q1") -> None:
            self.commit(tmp_path / "t", number, query)

        commit(0)
        table = open_table(str(tmp_path / "t"))
        for number in range(5):
            table.upsert(pa.table({"id": ["other"], "ts": [number]}))
        keep = {"hoodie.clean.commits.retained": "1", "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "4"}
        assert HudiTable(open_context(AgedStorage(table.context.storage))).archive(keep) is not None
        known = set(table.history()["instant"].to_pylist())
        commit(0)
        assert set(table.history()["instant"].to_pylist()) == known
        commit(1)
        commit(1)
        commit(0, "another")
        found = table.scan(["id"]).to_arrow()["id"].to_pylist()
        assert sorted(found) == ["k0", "k0", "k1", "other"]

    def test_what_was_staged_goes_whatever_becomes_of_the_commit(self, tmp_path: Path, monkeypatch: Any) -> None:
        staged = tmp_path / "t" / ".hoodie" / ".staged"

        def fails(*given: Any, **more: Any) -> None:
            raise HudiError("no such luck")

        monkeypatch.setattr(writes.Target, "commit", fails)
        for end in ("commit", "abort"):
            staged.mkdir(parents=True, exist_ok=True)
            (staged / "rows.arrow").touch()
            writer = self.writer(tmp_path / "t")
            messages: list[Any] = [Staged(".hoodie/.staged/rows.arrow", "q1")]
            if end == "abort":
                writer.abort([*messages, None], 0)
            else:
                with pytest.raises(HudiError, match="no such luck"):
                    writer.commit(messages, 0)
            assert not (staged / "rows.arrow").exists()
