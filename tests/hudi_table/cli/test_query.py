"""`hudictl query`: names of tables, formats, moments, and what a statement cannot do.

Over one table and several; the same rows in every format; as of a moment and incremental; nothing
but one SELECT, which reaches no file, no network, no setting and no variable; plain errors; memory
that does not grow with the table.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_table import create_table, open_table
from hudi_table.cli import main
from tests.hudi_table.cli.test_program import hudictl

FLIGHTS = pa.table({"id": [f"k{i:03d}" for i in range(150)], "carrier": ["AA", "UA", "B6"] * 50, "n": range(150)})


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("query")
    index = {"type": "Bucket", "buckets": 2}
    flights = create_table(str(folder / "flights"), FLIGHTS.schema, record_key="id", index=index, version=6)
    flights.upsert(FLIGHTS)
    flights.upsert(pa.table({"id": ["k000", "new"], "carrier": ["AA", "AA"], "n": [1000, 2000]}))
    carriers = pa.table({"carrier": ["AA", "UA"], "name": ["American", "United"]})
    create_table(str(folder / "my-carriers"), carriers.schema, record_key="carrier", index="Simple", version=6).upsert(
        carriers
    )
    return folder


def asked(capsys: pytest.CaptureFixture[str], *arguments: object) -> list[dict[str, object]]:
    assert main(["query", *map(str, arguments), "--format", "jsonl"]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def failed(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert main(["query", *map(str, arguments)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err


def test_one_table_has_its_own_name_and_is_this_table(lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base = lake / "flights"
    query = "select carrier, count(*) flights, max(n) last from {} group by 1 order by 1"
    wanted = [
        {"carrier": "AA", "flights": 51, "last": 2000},
        {"carrier": "B6", "flights": 50, "last": 149},
        {"carrier": "UA", "flights": 50, "last": 148},
    ]
    assert asked(capsys, base, query.format("flights")) == wanted
    assert asked(capsys, base, query.format("this_table")) == wanted
    assert asked(capsys, lake / "my-carriers", "select count(*) n from this_table") == [{"n": 2}]


def test_a_moment_that_was_cleaned_ends_with_the_name_of_that_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = create_table(str(tmp_path / "flights"), FLIGHTS.schema, record_key="id", version=6)
    first = table.upsert(FLIGHTS).instant
    for _ in range(3):
        table.upsert(FLIGHTS)
    (cleaned,) = table.clean({"hoodie.clean.commits.retained": "1"}, force=True)
    for verb in (["query", table.context.base_path, "select * from flights"], ["read", table.context.base_path]):
        assert main([*verb, "--as-of", first]) == 1
        assert (
            f"error: Expired: as_of {first} cannot be read: the clean {cleaned.instant} deleted"
            in capsys.readouterr().err
        )
    done = tmp_path / "flights" / ".hoodie" / f"{cleaned.instant}.clean"
    done.unlink()
    assert main(["read", table.context.base_path, "--as-of", first]) == 1
    assert f"the clean {cleaned.instant} is pending, and deletes files" in capsys.readouterr().err


def test_several_tables_have_the_names_that_they_are_given(lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    query = "select name, count(*) n from f join c using (carrier) group by 1 order by 1"
    tables = ["--table", f"f={lake}/flights", "--table", f"c={lake}/my-carriers"]
    wanted = [{"name": "American", "n": 51}, {"name": "United", "n": 50}]
    assert asked(capsys, query, *tables) == wanted
    assert asked(capsys, lake / "flights", query.replace("f ", "flights "), *tables[2:]) == wanted


def test_every_format_holds_the_answer(lake: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    query = "select id, n from flights order by n desc"
    assert main(["query", str(lake / "flights"), query, "--limit", "2"]) == 0
    assert capsys.readouterr().out.splitlines() == ["id        n", "new    2000", "k000   1000"]
    assert main(["query", str(lake / "flights"), query]) == 0
    captured = capsys.readouterr()
    assert len(captured.out.splitlines()) == 101
    assert "the first 100 rows" in captured.err
    target = tmp_path / "answer.parquet"
    assert main(["query", str(lake / "flights"), query, "--format", "parquet", "--to", str(target)]) == 0
    assert pq.read_table(target)["n"].to_pylist()[:2] == [2000, 1000]
    assert len(asked(capsys, lake / "flights", query, "--limit", "0")) == 0
    twice = "select a.id, b.id from flights a join flights b using (n) where a.n = 5"
    assert asked(capsys, lake / "flights", twice) == [{"id": "k005", "id_2": "k005"}]


def test_moments_and_kinds_of_query_are_those_of_read(lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base = lake / "flights"
    newest, first, *_ = open_table(str(base)).history()["instant"].to_pylist()
    total = "select count(*) c, sum(n)::bigint s from flights"
    assert asked(capsys, base, total, "--as-of", first) == [{"c": 150, "s": sum(range(150))}]
    assert asked(capsys, base, total, "--query", "incremental", "--since", first) == [{"c": 2, "s": 3000}]
    meta = asked(capsys, base, "select distinct _hoodie_commit_time t from flights order by 1", "--meta")
    assert [row["t"] for row in meta] == [first, newest]


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("drop view flights", "the query is DROP: give one SELECT"),
        ("create table x as select 1", "the query is CREATE"),
        ("copy flights to '{folder}/out.csv'", "the query is COPY"),
        ("set enable_external_access = true", "the query is SET"),
        ("install httpfs", "the query is LOAD"),
        ("attach '{folder}/x.db'", "the query is ATTACH"),
        ("select 1; drop view flights", "the query is SELECT, DROP"),
        ("", "the query is nothing"),
        ("select * from read_text('{folder}/secret')", "file system operations are disabled"),
        ("select * from '{folder}/secret.csv'", "file system operations are disabled"),
        ("select * from read_csv('http://127.0.0.1:9/x.csv')", "disabled by configuration"),
        ("select * from glob('{folder}/*')", "file system operations are disabled"),
        ("select * from FLIGHTS_ROWS", "(tables here: this_table, flights)"),
        ("select nope from flights", 'Referenced column "nope" not found'),
        ("selec 1", "syntax error"),
        ("select id::int from flights", "Could not convert string"),
    ],
)
def test_a_statement_reaches_nothing_but_its_tables(
    lake: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], statement: str, told: str
) -> None:
    FLIGHTS_ROWS = FLIGHTS  # noqa: N806, F841 - DuckDB would find it by its name
    (tmp_path / "secret").write_text("42")
    (tmp_path / "secret.csv").write_text("a\n42\n")
    before = sorted(tmp_path.iterdir())
    message = failed(capsys, lake / "flights", statement.format(folder=tmp_path))
    assert message.startswith("error: InvalidOption: the query ")
    assert told in message
    assert len(message.splitlines()) == 2
    assert sorted(tmp_path.iterdir()) == before


def test_what_is_asked_wrongly_is_told(lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "no table: hudictl query BASE SQL" in failed(capsys, "select 1")
    assert "--table 'x' is no NAME=BASE" in failed(capsys, "select 1", "--table", "x")
    assert "--table 'a-b=c' is no NAME=BASE" in failed(capsys, "select 1", "--table", "a-b=c")
    assert "names 'A' twice" in failed(capsys, "select 1", "--table", "a=x", "--table", "A=y")
    assert main(["query", str(lake / "flights"), "select 1", "--engine", "abacus"]) == 1
    assert "there is no engine 'abacus': there is duckdb" in capsys.readouterr().err
    assert main(["query", str(lake / "nothing"), "select 1"]) == 1
    assert "TableNotFound" in capsys.readouterr().err


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = create_table(str(tmp_path / "t"), FLIGHTS.schema, record_key="id", index="Simple", version=6)
    made.upsert(FLIGHTS)
    (path,) = made.scan().plan_files()["path"].to_pylist()
    Path(path).write_bytes(b"PAR1")
    assert main(["query", str(tmp_path / "t"), "select sum(n) from t"]) == 1
    assert capsys.readouterr().err.startswith("error: CorruptTable: ")


def test_without_duckdb_it_says_what_to_install(lake: Path, tmp_path: Path) -> None:
    (tmp_path / "duckdb.py").write_text("raise ModuleNotFoundError('duckdb')")
    done = hudictl("query", str(lake / "flights"), "select 1", path=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert "pip install 'hudi-table[query]'" in done.stderr


def test_in_a_process_of_its_own_it_says_nothing_else(lake: Path) -> None:
    done = hudictl("query", str(lake / "flights"), "select count(*) n from flights")
    assert (done.returncode, done.stdout, done.stderr) == (0, "  n\n151\n", "")


def test_another_package_brings_an_engine(lake: Path, tmp_path: Path) -> None:
    (tmp_path / "abacus.py").write_text(
        "import contextlib\nimport pyarrow as pa\n\n@contextlib.contextmanager\ndef answer(sql, tables, limit):\n"
        "    rows = pa.table({'sql': [sql], 'tables': [' '.join(tables)], 'limit': [limit]})\n    yield rows.to_reader()\n"
    )
    (tmp_path / "abacus-1.dist-info").mkdir()
    (tmp_path / "abacus-1.dist-info" / "entry_points.txt").write_text("[hudictl.engines]\nabacus = abacus:answer\n")
    arguments = ["query", str(lake / "flights"), "select 1", "--engine", "abacus", "--format", "jsonl", "--limit", "3"]
    done = hudictl(*arguments, path=tmp_path)
    assert json.loads(done.stdout) == {"sql": "select 1", "tables": "this_table flights", "limit": 3}


@pytest.mark.at_scale(2)
def test_memory_does_not_grow_with_the_table(tmp_path: Path) -> None:
    """160 MB of text go through an aggregate in less than that above what an empty answer takes."""
    texts = pa.array([f"{i:01000d}" for i in range(1000)])
    schema = pa.schema([("id", pa.int64()), ("text", pa.string())])
    made = create_table(
        str(tmp_path / "t"), schema, record_key="id", index={"type": "Bucket", "buckets": 64}, version=6
    )
    made.insert(pa.table({"id": range(160_000), "text": pa.concat_arrays([texts] * 160)}, schema=schema))
    peaks = []
    for query in ("select 1", "select max(text), count(*) from t where id % 3 > 0"):
        code = (
            f"from hudi_table.cli import main\nassert main(['query', {str(tmp_path / 't')!r}, {query!r}]) == 0\n"
            # (getrusage would tell the peak of the process that started this one, where that was higher.)
            "print(next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')))"
        )
        root = Path(__file__).parents[3] / "spark_app"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=root)
        peaks.append(int(done.stdout.splitlines()[-1]) * 1024)
    assert peaks[1] - peaks[0] < 110e6, peaks


def row_of(lake: Path, values: Sequence[str], kind: str) -> str:
    """The last line of what a query of these values shows in a process of its own."""
    selected = ", ".join(f"{value} as c{n}" for n, value in enumerate(values))
    done = hudictl("query", str(lake / "flights"), f"select {selected}", "--format", kind)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()[-1]


@pytest.mark.parametrize("kind", ["jsonl", "table"])
def test_nanoseconds_are_shown_whole_in_a_process_without_pandas(lake: Path, kind: str) -> None:
    """pyarrow makes a value of pandas of them, or none."""
    values = (
        "make_timestamp_ns(1)", "'10:00:00.000000001'::time_ns", "[make_timestamp_ns(1)]", "{'at': make_timestamp_ns(1)}",
        "map {'at': make_timestamp_ns(1)}", "[make_timestamp_ns(1), null]::timestamp_ns[2]",
    )  # fmt: skip
    assert row_of(lake, values, kind).count(".000000001") == len(values)


@pytest.mark.parametrize("kind", ["jsonl", "table"])
def test_years_beyond_those_of_python_are_shown(lake: Path, kind: str) -> None:
    values = (
        "date '10000-01-01'", "timestamptz '10000-01-01 00:00:00Z'", "[date '10000-01-01', null]",
        "{'at': timestamptz '10000-01-01 00:00:00Z', 'n': 1}", "map {'at': timestamp '10000-01-01 00:00:00'}",
    )  # fmt: skip
    assert row_of(lake, values, kind).count("10000-01-01") == len(values)
