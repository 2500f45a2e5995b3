"""`docs/reference/spark-sql.md` runs as it stands; SELECT through `hudi_spark.sql`."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession, functions
from pyspark.sql.types import StructType

import hudi_spark
from hudi_spark.sql import rows
from hudi_table import HudiTable, create_table, open_table
from hudi_table.cli import main
from hudi_table.errors import HudiError, InvalidOptionError, InvalidRequestError
from hudi_table.services.sql_query import QueriedTable
from tests.support.distributions import entry_points
from tests.support.page_blocks import sections

pytestmark = pytest.mark.spark

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "spark-sql.md"
SCHEMA = pa.schema([("id", pa.string()), ("city", pa.string()), ("ts", pa.int64())])
START = {"t1": 12.5, "t2": 8.0}
RIDES = START | {"t3": 30.0, "t4": 5.0, "t5": 5.0, "t6": 5.0}
AFTER: dict[str, dict[str, float]] = {
    "CREATE TABLE": {},
    "INSERT": RIDES,
    "SELECT": RIDES,
    "UPDATE": RIDES | {"t3": 60.0, "t4": 10.0, "t5": 10.0, "t6": 10.0},
    "DELETE": START | {"t4": 10.0, "t5": 10.0, "t6": 10.0},
    "MERGE INTO": {"t1": 50.0, "t2": 8.0, "t4": 10.0, "t5": 10.0, "t6": 10.0, "t8": 4.0},
    "ALTER TABLE … ADD COLUMNS": {"t1": 50.0, "t2": 8.0, "t4": 10.0, "t5": 10.0, "t6": 10.0, "t8": 4.0},
    "TRUNCATE, and dropping a partition": {},
    "Streams": {},
}
"""id -> fare after each section of the page."""


def test_the_page_says_what_happens(spark: SparkSession, tmp_path: Path) -> None:
    names: dict[str, Any] = {"spark": spark, "lake": str(tmp_path)}
    ran = []
    hudi_spark.register(spark)
    try:
        for heading, blocks in sections(PAGE):
            for kind, text in blocks:
                if kind == "python":
                    exec(compile(text, f"{PAGE.name}: {heading}", "exec"), names)
                    continue
                for statement in text.replace("${lake}", str(tmp_path)).split(";\n"):
                    if kind == "sql":
                        spark.sql(statement).collect()
                    else:
                        assert kind == "sql refused"
                        with pytest.raises(
                            Exception,
                            match=r"not support|no path|without a table behind it|expects a table|direct query on files",
                        ):
                            spark.sql(statement).collect()
            ran.append(heading)
            found = open_table(f"{tmp_path}/trips").scan(["id", "fare"]).to_arrow().to_pylist()
            assert {row["id"]: row["fare"] for row in found} == AFTER[heading], heading
    finally:
        for view in ("trips", "trips_by_city", "then", "changes"):
            spark.catalog.dropTempView(view)
    assert ran == list(AFTER)
    assert names["changes"].isStreaming


def test_a_table_of_sparks_catalog_that_names_hudi_is_not_altered(spark: SparkSession) -> None:
    hudi_spark.register(spark)
    plain = inspect.unwrap(type(spark).sql)
    plain(spark, "create table of_a_metastore (id string) using hudi")
    try:
        for statement in (
            "alter table of_a_metastore add columns (tip double)",
            "ALTER TABLE `default`.`of_a_metastore` -- 'quoted\n DROP COLUMN id",
        ):
            with pytest.raises(InvalidRequestError, match="the Hudi table would stay as it is"):
                spark.sql(statement)
        assert [row.col_name for row in spark.sql("describe of_a_metastore").collect()] == ["id"]
        spark.sql("create table plain (id string comment 'using hudi') using parquet")
        spark.sql("alter table plain add columns (tip double)")
        assert spark.sql("select * from plain where id = 'create table x using hudi'").columns == ["id", "tip"]
        with pytest.raises(InvalidRequestError, match="without a table behind it"):
            spark.range(1).write.format("hudi").saveAsTable("more")
    finally:
        for name in ("of_a_metastore", "plain"):
            spark.sql(f"drop table if exists {name}")


def test_no_other_door_makes_a_table_of_sparks_catalog_that_names_hudi(spark: SparkSession, tmp_path: Path) -> None:
    """A new session of the same process, the catalog's own method, and a statement without
    USING."""
    hudi_spark.register(spark)
    statement, schema, place = "create table by_a_door (id string)", StructType().add("id", "string"), str(tmp_path)
    doors: dict[str, Callable[[], Any]] = {
        "a new session": lambda: spark.newSession().sql(f"{statement} using hudi"),
        "the catalog": lambda: spark.catalog.createTable("by_a_door", source="hudi", schema=schema),
        "the catalog, of a path": lambda: spark.catalog.createTable("by_a_door", place, "org.apache.hudi", schema),
    }
    by_default: dict[str, Callable[[], Any]] = {
        "a statement": lambda: spark.sql(statement),
        "the catalog": lambda: spark.catalog.createTable("by_a_door", schema=schema),
    }

    def made_by(way: Callable[[], Any]) -> bool:
        with suppress(InvalidRequestError):
            way()
        made = "by_a_door" in [table.name for table in spark.catalog.listTables()]
        spark.sql("drop table if exists by_a_door")
        return made

    try:
        assert [name for name, way in doors.items() if made_by(way)] == []
        spark.conf.set("spark.sql.sources.default", "hudi")
        assert [name for name, way in by_default.items() if made_by(way)] == []
        spark.sql(f"{statement} using parquet")
        spark.sql("drop table by_a_door")
        spark.conf.unset("spark.sql.sources.default")
        spark.catalog.createTable("by_a_door", source="parquet", schema=schema)
    finally:
        spark.conf.unset("spark.sql.sources.default")
        spark.sql("drop table if exists by_a_door")


def test_no_writer_makes_a_name_of_sparks_catalog(spark: SparkSession, tmp_path: Path) -> None:
    """With a path or without; the source named, or that of the session. Nothing of another source
    is in the way."""
    hudi_spark.register(spark)
    rows, feed = spark.sql("select 'a' id"), spark.readStream.format("rate").load()
    path, checkpoint = str(tmp_path / "t"), str(tmp_path / "checkpoint")
    stream = feed.writeStream.option("checkpointLocation", checkpoint).trigger(availableNow=True)
    doors: dict[str, Callable[[], Any]] = {
        "saveAsTable": lambda: rows.write.format("hudi").option("path", path).mode("append").saveAsTable("made"),
        "toTable, by its argument": lambda: stream.toTable("made", format="org.apache.hudi", path=path),
        "toTable": lambda: stream.format("hudi").toTable("made"),
        "toTable, of a path": lambda: stream.format("hudi").option("path", path).toTable("made"),
        "create": lambda: rows.writeTo("made").using("hudi").option("path", path).create(),
        "replace": lambda: rows.writeTo("made").using(provider="Hudi").replace(),
        "createOrReplace": lambda: (
            rows.writeTo("made").using("org.apache.hudi").tableProperty("location", path).createOrReplace()
        ),
    }
    by_default: dict[str, Callable[[], Any]] = {
        "saveAsTable": lambda: rows.write.saveAsTable("made"),
        "toTable": lambda: feed.writeStream.option("checkpointLocation", checkpoint).toTable("made"),
        "create": lambda: rows.writeTo("made").create(),
    }
    try:
        for door in doors.values():
            with pytest.raises(InvalidRequestError, match=r"without a table behind it.*start\(path\)"):
                door()
        spark.conf.set("spark.sql.sources.default", "hudi")
        for door in by_default.values():
            with pytest.raises(InvalidRequestError, match="without a table behind it"):
                door()
        assert "made" not in [table.name for table in spark.catalog.listTables()]
        assert list(tmp_path.iterdir()) == []
        rows.writeTo("made").using("parquet").create()
        assert spark.table("made").count() == 1
    finally:
        spark.conf.unset("spark.sql.sources.default")
        spark.sql("drop table if exists made")


def test_a_path_is_no_name_of_a_table(spark: SparkSession, table: HudiTable) -> None:
    """Spark itself refuses it by the source's name, and nothing is read or written."""
    hudi_spark.register(spark)
    name, rows, before = f"hudi.`{table.base_path}`", spark.sql("select 'z' id, 'x' city, 1L ts"), table.history()
    ways: dict[str, Callable[[], Any]] = {
        "SELECT": lambda: spark.sql(f"SELECT * FROM {name}"),
        "SELECT by the long name": lambda: spark.sql(f"SELECT * FROM `org.apache.hudi`.`{table.base_path}`"),
        "table": lambda: spark.table(name),
        "read.table": lambda: spark.read.table(name),
        "INSERT": lambda: spark.sql(f"INSERT INTO {name} VALUES ('z', 'x', 1)"),
        "insertInto": lambda: rows.write.insertInto(name),
        "insertInto of the format": lambda: rows.write.format("hudi").insertInto(name),
        "append": lambda: rows.writeTo(name).append(),
        "overwritePartitions": lambda: rows.writeTo(name).overwritePartitions(),
    }
    for way, call in ways.items():
        with pytest.raises(
            (AnalysisException, HudiError), match=r"(?i)direct query on files|cannot be found|without a table"
        ):
            print(way, call())
    assert table.history() == before


def test_writers_write_into_a_view_as_statements_do_or_are_refused(spark: SparkSession, table: HudiTable) -> None:
    hudi_spark.register(spark)
    spark.sql(f"create temporary view rides using hudi options (path '{table.base_path}', meta 'false')")

    def row(key: str) -> DataFrame:
        return spark.sql(f"select '{key}' id, 'x' city, 1L ts")

    def keys() -> list[str]:
        return sorted(table.scan(["id"]).to_arrow()["id"].to_pylist())

    try:
        row("d").writeTo("rides").append()
        row("e").write.insertInto("rides")
        assert keys() == ["a", "b", "c", "d", "e"]
        assert spark.table("rides").count() == spark.read.table("rides").count() == 5
        refused: list[Callable[[], Any]] = [
            lambda: row("f").writeTo("rides").overwritePartitions(),
            lambda: row("f").writeTo("rides").overwrite(functions.col("id") == "a"),
            lambda: row("f").write.format("hudi").insertInto("rides"),
        ]
        for way in refused:
            with pytest.raises(AnalysisException, match=r"does not support|cannot be found"):
                way()
        assert keys() == ["a", "b", "c", "d", "e"]
        row("g").write.insertInto("rides", overwrite=True)
        assert keys() == ["g"]
    finally:
        spark.catalog.dropTempView("rides")


@pytest.fixture
def table(tmp_path: Path) -> HudiTable:
    made = create_table(str(tmp_path / "t"), SCHEMA, record_key="id", partition_by="city", index="Simple")
    made.upsert(pa.table({"id": ["a", "b", "c"], "city": ["x", "y", "y"], "ts": [1, 2, 3]}, SCHEMA))
    return made


class TestSelect:
    """The engine `spark` of `hudictl query`."""

    def answer(self, sql: str, table: HudiTable, limit: int | None = None, **how: Any) -> list[dict[str, Any]]:
        with rows(sql, {"t": QueriedTable("t", table.base_path, {}, how)}, limit) as found:
            return found.read_all().to_pylist()

    def test_it_answers_over_its_tables(self, spark: SparkSession, table: HudiTable) -> None:
        assert self.answer("select count(*) n, sum(ts) s from t where city = 'y'", table) == [{"n": 2, "s": 5}]
        assert self.answer("select * from t order by id", table, 1) == [{"id": "a", "city": "x", "ts": 1}]
        assert self.answer("select a.id, b.id from t a join t b using (ts) where ts = 1", table) == [
            {"id": "a", "id_2": "a"}
        ]
        before = table.history(1)["moment"][0].as_py()
        table.upsert(pa.table({"id": ["a"], "city": ["x"], "ts": [9]}, SCHEMA))
        assert self.answer("select ts from t where id = 'a'", table, as_of=before) == [{"ts": 1}]
        assert self.answer("select id from t", table, query="incremental", since=before) == [{"id": "a"}]

    def test_it_takes_one_select_only(self, spark: SparkSession, table: HudiTable) -> None:
        for sql in (
            "drop table t",
            "select * from parquet.`/x`",
            "select * from other",
            "select reflect('a', 'b') from t",
        ):
            with pytest.raises(InvalidRequestError, match="the query"):
                self.answer(sql, table)
        with pytest.raises(InvalidOptionError, match=r"nope.*tables here: t"):
            self.answer("select nope from t", table)

    def test_the_command_line_finds_it(
        self, spark: SparkSession, table: HudiTable, tmp_path: Path, monkeypatch: Any, capsys: Any
    ) -> None:
        installed = tmp_path / "site" / "ours-1.dist-info"
        installed.mkdir(parents=True)
        value = entry_points()["hudictl.engines"]["spark"]
        (installed / "entry_points.txt").write_text(f"[hudictl.engines]\nspark = {value}\n")
        monkeypatch.syspath_prepend(str(installed.parent))
        query = "select city, count(*) n from this_table group by city order by city"
        assert main(["query", table.base_path, query, "--engine", "spark", "--format", "jsonl"]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert [json.loads(line) for line in lines] == [{"city": "x", "n": 1}, {"city": "y", "n": 2}]
