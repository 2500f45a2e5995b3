"""What a start loads: counts of modules, in processes of their own. What nobody asked for is not
imported."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_table import create_table, write_hudi

ROOT = Path(__file__).resolve().parents[2]
ROWS = pa.table({"id": [f"k{i}" for i in range(50)], "n": range(50)})
HEAVY = ("pyarrow", "numpy", "fastavro", "duckdb", "pandas", "polars", "yaml", "fsspec")
ARROW = ("pyarrow.compute", "pyarrow.dataset", "pyarrow.parquet", "pyarrow.fs")
"""Parts of pyarrow that cost as much again as itself."""
CODECS = ("codec.hfile", "codec.log.rows", "codec.bounds", "codec.parquet", "codec.archive_entries")
"""What reads logs, the metadata table, base files and the archive."""
REPORT = """
import atexit, json, sys
def report():
    ours = [name for name in sys.modules if name.startswith("hudi_table")]
    print(json.dumps([sorted(sys.modules), len(ours)]), file=sys.stderr)
atexit.register(report)
"""
OPEN = "from hudi_table import open_table"
HUDICTL = "import sys; from hudi_table.__main__ import run; sys.exit(run())"


@pytest.fixture(scope="module", params=[6, 9])
def base(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("lake") / "flights"
    table = create_table(
        base, ROWS.schema, record_key="id", index={"type": "Bucket", "buckets": 2}, version=request.param
    )
    write_hudi(table, ROWS)
    return base


def heavy(base: Path, *names: str) -> list[str]:
    """These, and what reads a commit: of version 9 it is Avro."""
    needed = {*names, "fastavro"} if (base / ".hoodie" / "timeline").is_dir() else {*names}
    return [name for name in HEAVY if name in needed]


class Loaded:
    """The modules of a process when it ended."""

    def __init__(self, code: str, *arguments: str) -> None:
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "spark_app")}
        done = subprocess.run(
            [sys.executable, "-c", REPORT + code, *arguments],
            capture_output=True, text=True, check=True, env=environment,
        )  # fmt: skip
        names, self.ours = json.loads(done.stderr.splitlines()[-1])
        self.names = frozenset(names)

    def of(self, names: tuple[str, ...]) -> list[str]:
        """Those of the names that are loaded."""
        return [name for name in names if name in self.names]

    def layer(self, name: str) -> int:
        """How many modules of one of our packages are loaded."""
        return sum(each.startswith(f"hudi_table.{name}.") for each in self.names)


def test_importing_open_table_loads_neither_arrow_nor_what_writes() -> None:
    loaded = Loaded(OPEN)
    assert loaded.of(HEAVY) == []
    assert {layer: loaded.layer(layer) for layer in ("write", "services", "index", "metadata", "codec")} == {
        "write": 1, "services": 1, "index": 0, "metadata": 1, "codec": 0,
    }  # fmt: skip
    assert loaded.ours <= 92


def test_opening_a_table_loads_no_more_than_importing_it(base: Path) -> None:
    assert Loaded(f"{OPEN}; open_table({str(base)!r}).record_key").ours <= Loaded(OPEN).ours


def test_info_loads_of_arrow_what_names_types(base: Path) -> None:
    loaded = Loaded(HUDICTL, "info", str(base))
    assert loaded.of(HEAVY) == heavy(base, "pyarrow", "numpy"), "numpy comes with pyarrow"
    assert loaded.of(ARROW) == []
    assert [name for name in CODECS if f"hudi_table.{name}" in loaded.names] == []
    assert loaded.layer("write") <= 1
    assert loaded.ours <= 163


@pytest.mark.parametrize("verb", ["timeline", "files"])
def test_other_questions_load_of_arrow_itself_alone(verb: str, base: Path) -> None:
    loaded = Loaded(HUDICTL, verb, str(base))
    assert "pandas" not in loaded.names
    assert loaded.of(ARROW) == []
    assert loaded.ours <= 120


@pytest.mark.parametrize(
    ("arguments", "needed"),
    [(["query", "BASE", "select count(*) from this_table where n > 3"], ["pyarrow", "numpy", "duckdb"]),
     (["read", "BASE", "--filter", "n > 3"], ["pyarrow", "numpy"])],
)  # fmt: skip
def test_rows_of_a_table_without_logs_and_metadata_load_neither_their_codecs_nor_pandas(
    arguments: list[str], needed: list[str], base: Path
) -> None:
    loaded = Loaded(HUDICTL, *[str(base) if each == "BASE" else each for each in arguments])
    assert loaded.of(HEAVY) == heavy(base, *needed)
    unneeded = [name for name in CODECS if name != "codec.parquet"]
    assert [name for name in unneeded if f"hudi_table.{name}" in loaded.names] == []
    assert {layer: loaded.layer(layer) for layer in ("write", "index")} == {"write": 1, "index": 0}
    assert loaded.layer("metadata") <= 1
    assert loaded.ours <= 181


ELSEWHERE = "import sys; sys.argv[1:] = ['elsewhere']; from hudi_table.__main__ import run; run()"
ENGINE = "from hudi_table.cli import without_pandas as w; w.leave_pandas_out(); w.let_pandas_in()"


@pytest.mark.parametrize("code", [ELSEWHERE, ENGINE], ids=["verb", "engine"])
def test_what_another_package_adds_finds_pandas(code: str) -> None:
    assert "pandas" in Loaded(f"{code}; import pandas").names
