"""What the packages promise to a type checker: a user's own script passes `mypy --strict`, and each
mistake in one is found."""

from __future__ import annotations

import re
import subprocess
import sys
from enum import StrEnum
from pathlib import Path
from typing import Any, get_args

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import hudi_operator
import hudi_spark
import hudi_table
from hudi_table import InvalidSchemaError, arguments, create_table, errors
from hudi_table.model.options.write_options import Operation, SortMode
from hudi_table.model.table.config import MergeMode, TableType
from hudi_table.model.table.merge_settings import PartialUpdates

RIGHT = """
from collections.abc import Mapping
from pathlib import Path

import pandas as pd
import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

import hudi_spark
from hudi_table import CommitResult, HudiError, HudiTable, WriteConflictError, create_table, open_table, write_hudi
from hudi_table.arguments import OperationName, WriteOptions

ROWS = pl.DataFrame({"id": ["a"], "v": [1]})


def load(base: Path, operation: OperationName = "upsert") -> CommitResult:
    table: HudiTable = create_table(
        base, ROWS.schema, record_key="id", type="MergeOnRead", merge_mode="CommitTime", index={"type": "Bucket", "buckets": 2}
    )
    create_table(base, {"id": pa.string(), "v": pa.int64()}, record_key="id", if_exists="open")
    key: tuple[str, ...] = table.record_key
    stored: Mapping[str, str] = table.properties
    more: WriteOptions = {"max_memory": 1 << 30, "batch": "first"}
    try:
        table.upsert(ROWS, **more)
        table.delete(pd.DataFrame({"id": ["a"]}), options={"hoodie.combine.before.delete": "true"})
        table.write(None, operation="delete_partition", partitions=["x"])
        return write_hudi(base, ROWS, operation=operation, progress=lambda step: print(step))
    except WriteConflictError as error:
        print(error, key, stored["hoodie.table.name"])
    except HudiError:
        raise
    return table.insert(pa.table(ROWS))


def on_spark(spark: SparkSession, base: Path) -> int:
    said: str = hudi_spark.register(spark)
    result = hudi_spark.write(hudi_spark.read(spark, str(base)), base, "bulk_insert")
    found = open_table(base).scan(columns=["id"], limit=3).to_polars().collect()
    return result.rows_inserted + len(found) + len(said)
"""
WRONG = """
import polars as pl
import hudi_spark
from hudi_table import create_table, open_tabel  # wrong: attr-defined
from hudi_table import open_table

table = open_table("lake/t")
rows = pl.DataFrame({"id": ["a"]})
table.upsert(rows, optoins={"a": "b"})  # wrong: call-arg
table.upsert(rows, options={"hoodie.x": 1})  # wrong: dict-item
table.upsert([{"id": "a"}])  # wrong: arg-type
table.write(rows, operation="merge")  # wrong: arg-type
table.write(rows, operation="bulk_insert", sort_mode="zigzag")  # wrong: arg-type
table.record_key.upper()  # wrong: attr-defined
create_table("lake/t", "id string", record_key="id")  # wrong: arg-type
create_table("lake/t", rows.schema, type="MOR")  # wrong: arg-type
hudi_spark.wirte(rows, "lake/t")  # wrong: attr-defined
"""


CACHE = Path(__file__).parents[2] / ".mypy_cache" / "of-a-user"
"""Kept: the first run reads all that the script imports, half a minute."""


def findings(folder: Path, *scripts: str) -> set[tuple[str, int, str]]:
    """(script, line, code) of each fault that `mypy --strict` finds in scripts, by nothing but what
    is installed."""
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", f"--cache-dir={CACHE}", *scripts]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert "Found" in done.stdout or "Success" in done.stdout, done.stdout + done.stderr
    found = re.findall(r"^(\w+\.py):(\d+): error: .*\[([a-z-]+)\]$", done.stdout, re.MULTILINE)
    return {(script, int(line), code) for script, line, code in found}


def test_a_type_checker_finds_what_is_wrong_in_a_script_and_nothing_else(tmp_path: Path) -> None:
    """In one run for both scripts: most of it is the reading of what they import."""
    scripts = {"right.py": RIGHT, "wrong.py": WRONG}
    for name, text in scripts.items():
        (tmp_path / name).write_text(text)
    wrong = {
        (name, number, found[1])
        for name, text in scripts.items()
        for number, line in enumerate(text.splitlines(), 1)
        if (found := re.search(r"# wrong: (\S+)", line))
    }
    assert wrong
    assert findings(tmp_path, *scripts) == wrong


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        (arguments.OperationWord, Operation),
        (arguments.SortModeName, SortMode),
        (arguments.TableTypeName, TableType),
        (arguments.MergeModeName, MergeMode),
        (arguments.PartialUpdatesName, PartialUpdates),
    ],
)
def test_the_words_of_a_signature_are_those_that_act(words: Any, kind: type[StrEnum]) -> None:
    assert set(get_args(words)) == {member.value for member in kind}


@pytest.mark.parametrize(
    "schema",
    [
        pa.schema([("id", pa.string()), ("v", pa.int64())]),
        pl.Schema({"id": pl.String, "v": pl.Int64}),
        {"id": pa.string(), "v": pa.int64()},
        pa.table({"id": ["a"], "v": [1]}),
        pa.table({"id": ["a"], "v": [1]}).to_reader(),
        pl.DataFrame({"id": ["a"], "v": [1]}),
        pd.DataFrame({"id": ["a"], "v": [1]}),
    ],
    ids=lambda schema: f"{type(schema).__module__.partition('.')[0]} {type(schema).__name__}",
)
def test_a_schema_is_taken_from_pyarrow_polars_pandas_and_dicts(tmp_path: Path, schema: Any) -> None:
    table = create_table(tmp_path / "t", schema, record_key="id")
    assert table.schema() == pa.schema([("id", pa.string()), ("v", pa.int64())])
    table.upsert(pl.DataFrame({"id": ["b"], "v": [2]}))
    assert table.scan().to_arrow().to_pylist() == [{"id": "b", "v": 2}]


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"id": "string"}, "column 'id' is 'string': give a type of pyarrow"),
        ({"id": pa.string(), "v": int}, "column 'v' is <class 'int'>"),
        ("id string", "a str is no schema"),
        ([("id", pa.string())], "a list is no schema"),
        (pl.LazyFrame({"id": ["a"]}), r"a LazyFrame is no schema; call .collect_schema\(\) first"),
        (None, "a NoneType is no schema"),
    ],
)
def test_what_is_no_schema_is_refused_by_its_name(tmp_path: Path, schema: Any, said: str) -> None:
    with pytest.raises(InvalidSchemaError, match=said):
        create_table(tmp_path / "t", schema, record_key="id")
    assert not (tmp_path / "t").exists()


def test_a_table_tells_its_record_key_and_its_properties(tmp_path: Path) -> None:
    table = create_table(tmp_path / "t", {"a": pa.string(), "b": pa.string()}, record_key=["a", "b"])
    assert table.record_key == ("a", "b")
    assert table.properties["hoodie.table.recordkey.fields"] == "a,b"
    table.properties.clear()
    assert table.properties["hoodie.table.name"] == "t"


def test_every_public_name_is_there_and_listed() -> None:
    for package in (hudi_table, hudi_spark, hudi_operator):
        assert set(package.__all__) <= set(dir(package))
        assert package.__version__ == hudi_table.__version__
    assert dir(hudi_table) == sorted(hudi_table.__all__)
    assert all(getattr(hudi_table, name) is not None for name in hudi_table.__all__)
    assert set(hudi_spark.__all__) == set(dir(hudi_spark))


def test_every_error_that_a_caller_can_meet_is_a_name_of_the_package() -> None:
    signals = {"ObjectNotFoundError", "ObjectExistsError", "OutcomeUnknownError"}
    tree = {
        name
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, errors.HudiError) and not vars(value).get("internal", False)
    }
    assert {name for name in hudi_table.__all__ if name.endswith("Error")} == tree - signals
    assert hudi_table.WriteConflictError is errors.WriteConflictError
