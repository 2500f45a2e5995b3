"""`writeStream.format("hudi")`: every micro-batch is one commit, and once, through crashes, restarts and new checkpoints."""

from __future__ import annotations

import shutil
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
from hudi_table.api import HudiTable, open_table
from hudi_table.errors import HudiError, InvalidOptionError, InvariantError
from hudi_table.metadata.port import open_context
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

    def run(self, operation: str = "insert", mode: str = "append", checkpoint: str = "", **options: str) -> None:
        frame: DataFrame = self.spark.readStream.schema(SCHEMA).json(str(self.source))
        if mode == "complete":
            frame = frame.groupBy("id").max("ts").toDF("id", "ts")
        query = (
            frame.writeStream.format("hudi").options(**KEYS, **options).outputMode(mode).trigger(availableNow=True)
            .option("hoodie.datasource.write.operation", operation)
            .option("checkpointLocation", str(self.checkpoint) + checkpoint).start(self.path)
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


class TestWriter:
    """The writer as Spark calls it, without Spark."""

    def writer(self, path: Path, **options: str) -> BatchWriter:
        schema = StructType().add("id", "string").add("ts", "long")
        return BatchWriter(format_options({"path": str(path), **KEYS, **options}), schema, False)

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
            writer = self.writer(tmp_path / "t", **{"hoodie.datasource.write.operation": "insert"})
            rows = pa.record_batch(
                {"id": [f"k{number}"], "ts": [number]}, pa.schema([("id", pa.string()), ("ts", pa.int64())])
            )
            writer.commit([Staged(writer.write(iter([rows])).path, query)], number)

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
