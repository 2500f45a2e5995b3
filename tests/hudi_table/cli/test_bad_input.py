"""Bad input: each ends in one clear message, the same from Python and from the command line, and
changes nothing."""

from __future__ import annotations

import re
import socket
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_table import create_table, open_table, write_hudi
from hudi_table.cli import main
from hudi_table.errors import (
    AccessDeniedError,
    CorruptTableError,
    ExpiredError,
    HudiError,
    InvalidRequestError,
    TableNotFoundError,
    UnavailableError,
    UnsupportedTableError,
)
from tests.support.s3 import ACCESS, s3_replies

ROWS = pa.table({"id": [f"k{i}" for i in range(50)], "n": range(50)})
PROPERTIES = Path(".hoodie") / "hoodie.properties"


@pytest.fixture
def base(tmp_path: Path) -> Path:
    table = create_table(str(tmp_path / "flights"), ROWS.schema, record_key="id", version=6)
    write_hudi(table, ROWS)
    return tmp_path / "flights"


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def check(
    where: Path | str,
    error: type[HudiError],
    message: str,
    capsys: pytest.CaptureFixture[str],
    options: dict[str, str] | None = None,
) -> None:
    """Python raises `error`, the command line says the same in one line; neither leaves a trace."""
    before = contents(where) if isinstance(where, Path) and where.is_dir() else {}
    with pytest.raises(error, match=message) as raised:
        open_table(str(where), storage_options=options).scan().to_arrow()
    assert type(raised.value).name() == error.name()
    storage = [word for key, value in (options or {}).items() for word in ("--storage", f"{key}={value}")]
    assert main(["read", str(where), "--format", "jsonl", *storage]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    first, second = captured.err.splitlines()
    assert first.startswith(f"error: {error.name()}: ")
    assert re.search(message, first)
    assert second == f"hudictl explain {error.name()} says more"
    assert not isinstance(where, Path) or not where.is_dir() or contents(where) == before


def test_an_empty_location(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    check(tmp_path / "nothing", TableNotFoundError, "the location is empty or does not exist", capsys)
    assert not (tmp_path / "nothing").exists()


def test_a_location_that_is_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pq.write_table(ROWS, tmp_path / "rows.parquet")
    check(tmp_path / "rows.parquet", TableNotFoundError, "it is a file; a table is a folder", capsys)


def test_a_location_that_holds_something_else(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pq.write_table(ROWS, tmp_path / "rows.parquet")
    (tmp_path / "sf").mkdir()
    check(tmp_path, TableNotFoundError, r"no \.hoodie/hoodie\.properties, but sf/, rows\.parquet", capsys)


def test_the_folder_above_a_table(base: Path, capsys: pytest.CaptureFixture[str]) -> None:
    check(base.parent, TableNotFoundError, r"but flights/; check the location", capsys)


@pytest.mark.parametrize("version", ["5", "7", "10"])
def test_a_table_of_another_version(version: str, base: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (base / PROPERTIES).read_text()
    (base / PROPERTIES).write_text(text.replace("hoodie.table.version=6", f"hoodie.table.version={version}"))
    check(
        base,
        UnsupportedTableError,
        f"'flights' has table version {version}; this release reads and writes versions 6, 8 and 9",
        capsys,
    )


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("hoodie.datasource.write.drop.partition.columns=true", "partition columns that its files lack"),
        ("hoodie.table.base.file.format=ORC", "base files in another format than Parquet"),
        ("hoodie.bootstrap.index.type=NO_OP", "a bootstrap index of another kind than HFile"),
        (
            "hoodie.bootstrap.index.class=org.apache.hudi.common.bootstrap.index.NoOpBootstrapIndex",
            "a bootstrap index of another kind",
        ),
    ],
)
def test_a_feature_that_is_not_read(key: str, message: str, base: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [
        line for line in (base / PROPERTIES).read_text().splitlines() if not line.startswith(key.partition("=")[0])
    ]
    (base / PROPERTIES).write_text("\n".join([*lines, key]) + "\n")
    check(base, UnsupportedTableError, message, capsys)


@pytest.mark.parametrize("damage", [b"", b"\x00\xff\xfe garbage", b"hoodie.table.version=6\n"])
def test_damaged_properties(damage: bytes, base: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (base / PROPERTIES).write_bytes(damage)
    check(base, CorruptTableError, r"hoodie\.properties", capsys)


def test_properties_of_another_table(base: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (base / PROPERTIES).read_text()
    (base / PROPERTIES).write_text(text.replace("hoodie.table.name=flights", "hoodie.table.name=fligths"))
    check(base, CorruptTableError, "checksum", capsys)


def base_file(base: Path) -> Path:
    (path,) = open_table(str(base)).scan().plan_files()["path"].to_pylist()
    return Path(path)


@pytest.mark.parametrize("keep", [0, 4, 100, -1, -20])
def test_a_truncated_base_file(keep: int, base: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = base_file(base)
    path.write_bytes(path.read_bytes()[:keep])
    check(base, CorruptTableError, f"{re.escape(path.name)}.* is not readable Parquet", capsys)


def test_a_base_file_with_damaged_pages(base: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = base_file(base)
    data = path.read_bytes()
    footer = int.from_bytes(data[-8:-4], "little") + 8
    path.write_bytes(data[:4] + bytes(len(data) - 4 - footer) + data[-footer:])
    check(base, CorruptTableError, f"{re.escape(path.name)}.* is not readable Parquet", capsys)


def test_a_base_file_of_another_schema(base: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = base_file(base)
    pq.write_table(pa.table({"id": ["a"], "n": ["text"]}), path)
    check(base, CorruptTableError, f"{re.escape(path.name)} does not fit the table's schema: .*'n'", capsys)


def test_a_commit_that_is_no_json(base: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (commit, *_) = sorted((base / ".hoodie").glob("*.commit"), reverse=True)
    commit.write_bytes(b"\x00 not json")
    check(base, CorruptTableError, re.escape(commit.name), capsys)


def test_a_commit_with_a_broken_schema(base: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (commit, *_) = sorted((base / ".hoodie").glob("*.commit"), reverse=True)
    commit.write_text('{"partitionToWriteStats": {}, "extraMetadata": {"schema": "{\\"type\\": \\"nope\\"}"}}')
    check(base, CorruptTableError, "Avro schema cannot be parsed", capsys)


def test_a_file_that_was_cleaned_while_it_was_read(base: Path) -> None:
    table = open_table(str(base))
    scan, given = table.scan(), table.scan()
    (path,) = scan.plan_files()["path"].to_pylist()
    assert given.count() == 50
    write_hudi(table, ROWS.slice(0, 1))
    Path(path).unlink()
    assert scan.count() == 50, "no row of it was given yet: it is planned anew"
    with pytest.raises(
        ExpiredError,
        match="was taken back with its write, or deleted by something else, while it was read: begin the read anew",
    ):
        given.to_arrow()


def test_an_unreachable_store(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{unused.getsockname()[1]}"
        options = {"endpoint": endpoint, "region": "us-east-1", "retries": "0", "connect_timeout": "1", **ACCESS}
        check("s3://lake/flights", UnavailableError, f"{endpoint} cannot be reached", capsys, options)


@pytest.mark.parametrize(
    ("status", "code", "error", "message"),
    [
        (403, "InvalidAccessKeyId", AccessDeniedError, r"refused the credentials .*InvalidAccessKeyId"),
        (403, "SignatureDoesNotMatch", AccessDeniedError, "check the access key, its secret"),
        (404, "NoSuchBucket", InvalidRequestError, "does not exist: create it, or correct the location"),
        (503, "SlowDown", UnavailableError, "answered 503 SlowDown; try again later"),
    ],
)
def test_a_store_that_refuses(
    status: int, code: str, error: type[HudiError], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with s3_replies((status, code)) as store:
        check("s3://lake/flights", error, message, capsys, {**store.options, "retries": "0"})


def test_a_location_that_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    check("s3:///flights", InvalidRequestError, "names no bucket", capsys)
    check("ftp://host/flights", InvalidRequestError, "no store is known for the scheme 'ftp'", capsys)
