"""An import as a whole: all rows or none, once, and into a table of its own."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from hudi_table import (
    HudiError,
    HudiTable,
    InvalidDataError,
    InvalidOptionError,
    InvalidRequestError,
    create_table,
    open_table,
)
from hudi_table.cli import main
from hudi_table.importing import import_table
from hudi_table.metadata.port import open_context
from hudi_table.services.importing import ImportRequest, import_snapshot
from hudi_table.sources.imports.parquet import ParquetFolder
from hudi_table.table.engine.local_engine import LocalEngine
from hudi_table.table.store.opening import open_storage
from hudi_table.write.checks.create_table import TableSpec
from tests.support.aged import AgedStorage
from tests.support.meanwhile import AtCall
from tests.support.s3 import S3Server
from tests.support.scale import scale
from tests.support.versitygw import running_versitygw

STEP = 1 if scale() > 1 else 4
"""Between the calls at which something happens, in `make test`."""
ROWS = pa.table({"id": ["a", "b", "a"], "city": ["x", "y", "y"], "n": [1, 2, 3]})


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    pq.write_table(ROWS, tmp_path / "in" / "a.parquet")
    return tmp_path / "in"


def rows_of(base: Path | str, **how: Any) -> list[tuple[str, str, int]]:
    found = open_table(base, **how).scan().to_arrow().to_pylist()
    return sorted((row["id"], row["city"], row["n"]) for row in found)


def test_keys_are_unique_in_a_partition_or_in_the_table_as_the_index_says(tmp_path: Path, source: Path) -> None:
    import_table(tmp_path / "parts", source, record_key="id", partition_by="city")
    assert rows_of(tmp_path / "parts") == [("a", "x", 1), ("a", "y", 3), ("b", "y", 2)]
    more: list[dict[str, Any]] = [{"partition_by": []}, {"partition_by": "city", "index": "GlobalSimple"}]
    for how in more:
        with pytest.raises(InvalidDataError, match=r"2 rows of .* have the record key 'a': name the columns"):
            import_table(tmp_path / "one", source, record_key="id", **how)
    import_table(tmp_path / "both", source, record_key=["id", "city"])
    assert len(rows_of(tmp_path / "both")) == 3


def test_keys_of_many_partitions_and_files_are_compared(tmp_path: Path) -> None:
    for part, file in itertools.product(range(3), range(2)):
        folder = tmp_path / "in" / f"part={part}"
        folder.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"id": range(500 * file, 500 * file + 500)}), folder / f"{file}.parquet")
    assert import_table(tmp_path / "t", tmp_path / "in", record_key="id").rows == 3000
    with pytest.raises(InvalidDataError, match=r"3 rows of .* have the record key '\d+': name the columns"):
        import_table(tmp_path / "u", tmp_path / "in", record_key="id", partition_by=[])


def test_the_newest_row_of_a_key_is_kept_where_that_is_asked_for(tmp_path: Path, source: Path) -> None:
    done = import_table(tmp_path / "t", source, record_key="id", ordering_fields="n", duplicates="newest")
    assert (done.rows_read, done.rows) == (3, 2)
    assert rows_of(tmp_path / "t") == [("a", "y", 3), ("b", "y", 2)]
    with pytest.raises(InvalidOptionError, match="no ordering_fields say which row that is"):
        import_table(tmp_path / "u", source, record_key="id", duplicates="newest")
    with pytest.raises(InvalidOptionError, match="duplicates is 'first': give refuse or newest"):
        import_table(tmp_path / "u", source, record_key=["id", "city"], duplicates="first")  # type: ignore[arg-type]
    assert not (tmp_path / "u").exists()


@pytest.mark.parametrize("version", [6, 9])
def test_a_table_of_any_kind_is_made_and_written_on(tmp_path: Path, source: Path, version: int) -> None:
    made = {"type": "MergeOnRead", "index": {"type": "Bucket", "buckets": 2}, "version": version, "name": "cities"}
    import_table(tmp_path / "t", source, record_key=["id", "city"], ordering_fields="n", partition_by="city", **made)  # type: ignore[arg-type]
    table = open_table(tmp_path / "t")
    config = table.context.config
    assert (config.name, config.type.value, config.version) == ("cities", "MergeOnRead", version)
    table.upsert(pa.table({"id": ["a"], "city": ["x"], "n": [9]}))
    assert rows_of(tmp_path / "t") == [("a", "x", 9), ("a", "y", 3), ("b", "y", 2)]


def test_the_same_again_changes_nothing_and_other_rows_are_refused(tmp_path: Path, source: Path) -> None:
    keys = ["id", "city"]
    first = import_table(tmp_path / "t", source, record_key=keys)
    again = import_table(tmp_path / "t", source, record_key=keys)
    assert (again.instant, again.replayed, again.rows_read) == (first.instant, True, 0)
    pq.write_table(ROWS.slice(1), source / "a.parquet")
    with pytest.raises(InvalidRequestError, match="holds rows of other writes already: import into a place of its own"):
        import_table(tmp_path / "t", source, record_key=keys)
    create_table(tmp_path / "u", ROWS.schema, record_key=keys).write(ROWS)
    with pytest.raises(InvalidRequestError, match="holds rows of other writes already"):
        import_table(tmp_path / "u", source, record_key=keys)
    with pytest.raises(InvalidRequestError, match="record"):
        import_table(tmp_path / "u", source, record_key="n")
    assert len(rows_of(tmp_path / "u")) == 3


@pytest.mark.parametrize("version", [6, 9])
def test_the_same_again_changes_nothing_where_its_commit_is_archived(
    tmp_path: Path, source: Path, version: int
) -> None:
    keys = ["id", "city"]
    first = import_table(tmp_path / "t", source, record_key=keys, version=version)
    for number in range(8):
        open_table(tmp_path / "t").upsert(pa.table({"id": ["a"], "city": ["x"], "n": [number]}))
    few = {"hoodie.keep.min.commits": "3", "hoodie.keep.max.commits": "4", "hoodie.clean.commits.retained": "2"}
    HudiTable(open_context(AgedStorage(open_storage(str(tmp_path / "t"))))).archive(few)
    assert first.instant not in open_table(tmp_path / "t").timeline()["instant"].to_pylist()
    again = import_table(tmp_path / "t", source, record_key=keys, version=version)
    assert (again.instant, again.replayed, again.rows_read) == (first.instant, True, 0)
    assert ("a", "x", 7) in rows_of(tmp_path / "t")


class Killed(BaseException):
    """The process is no more."""


def _killed() -> None:
    raise Killed


def test_one_that_is_killed_at_any_call_is_simply_run_again(
    tmp_path: Path, source: Path, figure: Callable[[int, str], None]
) -> None:
    spec = TableSpec(ROWS.schema, ["id", "city"], index="Simple")
    points = 0
    for at in itertools.count(1, STEP):
        base = tmp_path / f"t{at}"
        killed = AtCall(open_storage(str(base)), at, _killed)
        try:
            _imported(killed, source, spec)
        except Killed:
            points += 1
        if base.exists() and (base / ".hoodie" / "hoodie.properties").exists():
            assert rows_of(base) in ([], rows_of_table()), "a part of the rows is seen"
        done = _imported(open_storage(str(base)), source, spec)
        assert rows_of(base) == rows_of_table()
        if killed.calls < at:
            assert done.replayed
            break
    figure(points, "crash points of an import")


def rows_of_table() -> list[tuple[str, str, int]]:
    return sorted((row["id"], row["city"], row["n"]) for row in ROWS.to_pylist())


def _imported(storage: Any, source: Path, spec: TableSpec) -> Any:
    return import_snapshot(storage, ParquetFolder.open(open_storage(str(source))), ImportRequest(spec), LocalEngine(1))


def test_a_writer_that_comes_between_ends_the_import(tmp_path: Path, source: Path) -> None:
    """Rows of both would have keys that nobody compared."""
    base, spec = tmp_path / "t", TableSpec(ROWS.schema, ["id", "city"])
    refused = 0
    for at in itertools.count(1, 3 * STEP):
        base = tmp_path / f"t{at}"

        def between(base: Path = base) -> None:
            if (base / ".hoodie" / "hoodie.properties").exists():
                open_table(base).write(ROWS.slice(0, 1))

        storage = AtCall(open_storage(str(base)), at, between)
        try:
            _imported(storage, source, spec)
        except InvalidRequestError:
            refused += 1
            assert rows_of(base) == [("a", "x", 1)]
        else:
            assert len(rows_of(base)) == len(set(rows_of(base)))
        if storage.calls < at:
            break
    assert refused


def test_more_rows_than_memory_are_looked_through_and_written(tmp_path: Path) -> None:
    count = 100_000
    (tmp_path / "in").mkdir()
    for part in range(3):
        found = pa.array(range(part * count, (part + 1) * count), pa.int64())
        pq.write_table(pa.table({"id": found, "v": found}), tmp_path / "in" / f"{part}.parquet")
    done = import_table(tmp_path / "t", tmp_path / "in", record_key="id", max_memory=2 << 20)
    assert (done.rows, open_table(tmp_path / "t").scan().count()) == (3 * count, 3 * count)
    pq.write_table(pa.table({"id": [2 * 10**5], "v": [0]}), tmp_path / "in" / "more.parquet")
    with pytest.raises(InvalidDataError, match=r"2 rows of .* have the record key '200000'"):
        import_table(tmp_path / "u", tmp_path / "in", record_key="id", max_memory=2 << 20)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with running_versitygw(tmp_path_factory.mktemp("gateway") / "store") as found:
        yield found


@pytest.mark.s3
@pytest.mark.parametrize("form", ["parquet", "delta", "iceberg"])
def test_each_form_comes_from_a_bucket_with_the_options_of_any_store(
    server: S3Server, tmp_path: Path, form: str
) -> None:
    source = server.new_uri()
    if form == "parquet":
        storage = open_storage(source, server.options)
        pq.write_table(ROWS, tmp_path / "a.parquet")
        storage.put("deep/a.parquet", (tmp_path / "a.parquet").read_bytes())
    elif form == "delta":
        options = {**server.options, "allow_http": "true", "aws_conditional_put": "etag"}
        write_deltalake(source, ROWS, storage_options=options)
    else:
        source = _iceberg(server, source, tmp_path)
    done = import_table(
        f"{server.new_uri()}/lake",
        source,
        record_key=["id", "city"],
        source_options=server.options,
        storage_options=server.options,
    )
    assert (done.form, done.rows) == (form, 3)
    assert rows_of(done.table, storage_options=server.options) == rows_of_table()
    wrong = {**server.options, "secret_access_key": "not-the-right-one"}
    with pytest.raises(HudiError) as refused:
        import_table(tmp_path / "t", source, record_key=["id", "city"], source_options=wrong)
    assert "not-the-right-one" not in f"{refused.value}{refused.value!r}"
    if form != "parquet":
        with pytest.raises(InvalidOptionError, match="'retries', which does nothing for a table of the form"):
            import_table(tmp_path / "t", source, record_key="id", source_options={**server.options, "retries": "1"})


def _iceberg(server: S3Server, source: str, tmp_path: Path) -> str:
    from pyiceberg.catalog.sql import SqlCatalog

    names = {"s3.endpoint": "endpoint", "s3.region": "region", "s3.access-key-id": "access_key_id"}
    options = {name: server.options[ours] for name, ours in names.items()}
    options["s3.secret-access-key"] = server.options["secret_access_key"]
    catalog = SqlCatalog("s3", uri=f"sqlite:///{tmp_path}/c.db", warehouse=source, **options)
    catalog.create_namespace("n")
    table = catalog.create_table("n.t", ROWS.schema)
    table.append(ROWS)
    return str(table.metadata_location)


def test_the_command_says_what_came_and_what_is_wrong(
    tmp_path: Path, source: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base = str(tmp_path / "t")
    assert (
        main(
            [
                "import",
                base,
                str(source),
                "--record-key",
                "id",
                "--partition-by",
                "city",
                "--index",
                "Bucket",
                "--buckets",
                "2",
            ]
        )
        == 0
    )
    lines = dict(
        line.split(maxsplit=1)
        for line in capsys.readouterr().out.splitlines()
        if not line.startswith(("Rows read", "Was"))
    )
    assert (lines["Form"], lines["Rows"], lines["Partitions"]) == ("parquet", "3", "2")
    assert open_table(base).properties["hoodie.bucket.index.num.buckets"] == "2"
    assert main(["import", f"{base}2", str(source), "--record-key", "id", "--partition-by", ""]) == 1
    assert "2 rows of" in capsys.readouterr().err
    assert main(["import", base, str(source), "--buckets", "2"]) == 2
    assert "--buckets belongs to --index" in capsys.readouterr().err
