"""The example on each error's page is what the program says: the error is made here, or the page is
held against the text that raises it."""

from __future__ import annotations

import ast
import re
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa
import pytest

from hudi_table import create_table, errors, open_table, write_hudi
from hudi_table.api import HudiTable
from hudi_table.cli import main
from hudi_table.cli.queries.explain import names, page
from hudi_table.table.commit import recovery
from hudi_table.table.commit.transaction import Transaction
from tests.support.s3 import ACCESS, s3_replies

ROOT = Path(__file__).resolve().parents[3]
ROWS = pa.table({"id": ["1", "2"], "carrier": ["UA", "AA"], "dep_time": [5, 6]})
TEXT_MIN = 14
"""So many letters of its own tell a message from others."""


class Made:
    """What makes an error: a table `flights` in a folder of its own, and stores that refuse."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.folder, self.patch = folder, patch

    @property
    def base(self) -> Path:
        return self.folder / "flights"

    def table(self, **options: str) -> HudiTable:
        """The table with one commit."""
        table = create_table(str(self.base), ROWS.schema, record_key="id", options=options)
        write_hudi(table, ROWS)
        return table

    def before_commit(self, meanwhile: Callable[[Transaction], object]) -> None:
        """Update the table while `meanwhile` happens after the files are written."""
        table, real = self.table(), Transaction.commit

        def commit(txn: Transaction, *arguments: Any) -> object:
            self.patch.setattr(Transaction, "commit", real)
            meanwhile(txn)
            return real(txn, *arguments)

        self.patch.setattr(Transaction, "commit", commit)
        table.upsert(ROWS)

    def write_conflict(self) -> None:
        self.before_commit(lambda _: open_table(str(self.base)).upsert(ROWS))

    def write_aborted(self) -> None:
        self.before_commit(lambda txn: recovery.abort_and_roll_back(open_table(str(self.base)).context, txn.instant))

    def invalid_data(self) -> None:
        self.table().upsert(pa.table({"id": [*"abcd", None, None], "carrier": ["UA"] * 6, "dep_time": [1] * 6}))

    def invalid_schema(self) -> None:
        self.table().upsert(ROWS.drop_columns(["carrier"]))

    def invalid_option(self) -> None:
        self.table().scan(filter="carier = 'UA'").to_arrow()

    def invalid_request(self) -> None:
        open_table("s3:///flights")

    def table_not_found(self) -> None:
        self.table()
        open_table(str(self.folder))

    def unsupported_table(self) -> None:
        self.table()
        file = self.base / ".hoodie" / "hoodie.properties"
        kept = [line for line in file.read_text().splitlines() if "base.file.format" not in line]
        file.write_text("\n".join([*kept, "hoodie.table.base.file.format=ORC"]) + "\n")
        open_table(str(self.base)).scan().to_arrow()

    def corrupt_table(self) -> None:
        table = self.table()
        (path,) = table.scan().plan_files()["path"].to_pylist()
        Path(path).write_bytes(b"")
        table.scan().to_arrow()

    def expired(self) -> None:
        table = self.table()
        first = table.timeline()["instant"].to_pylist()[-1]
        for _ in range(3):
            table.upsert(ROWS)
        table.clean(options={"hoodie.clean.commits.retained": "1"})
        table.scan(as_of=first).to_arrow()

    def access_denied(self) -> None:
        with s3_replies((403, "SignatureDoesNotMatch")) as store:
            open_table("s3://lake/flights", storage_options={**store.options, "retries": "0"})

    def unavailable(self) -> None:
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            endpoint = f"http://127.0.0.1:{unused.getsockname()[1]}"
            options = {"endpoint": endpoint, "region": "us-east-1", "retries": "0", "connect_timeout": "1", **ACCESS}
            open_table("s3://lake/flights", storage_options=options)


MADE: dict[str, Callable[[Made], None]] = {
    errors.AccessDeniedError.name(): Made.access_denied,
    errors.CorruptTableError.name(): Made.corrupt_table,
    errors.ExpiredError.name(): Made.expired,
    errors.InvalidDataError.name(): Made.invalid_data,
    errors.InvalidOptionError.name(): Made.invalid_option,
    errors.InvalidRequestError.name(): Made.invalid_request,
    errors.InvalidSchemaError.name(): Made.invalid_schema,
    errors.TableNotFoundError.name(): Made.table_not_found,
    errors.UnavailableError.name(): Made.unavailable,
    errors.UnsupportedTableError.name(): Made.unsupported_table,
    errors.WriteAbortedError.name(): Made.write_aborted,
    errors.WriteConflictError.name(): Made.write_conflict,
}
SAID_IN = {
    errors.CommitStateUnknownError.name(): ("spark_app/hudi_table/table/commit/decision.py",),
    errors.DataLossError.name(): (
        "spark_app/hudi_table/model/job/positions.py",
        "spark_app/hudi_table/sources/kafka/source.py",
    ),
    "DeadlineExceeded": ("operator/hudi_operator/plan/service.py",),
    "InvalidSpec": ("operator/hudi_operator/plan/checks.py",),
    "JobLost": ("operator/hudi_operator/launchers/local.py",),
    "LauncherNotServed": ("operator/hudi_operator/launchers/cluster.py",),
}
"""Errors that a store, a broker or a cluster must fail for: the modules that have the words, one
text of each."""


def example(name: str) -> str:
    """The message on the page of `name`, from the name on, without the breaks of lines; what
    follows in the block is left out."""
    block = page(name).partition("## Example\n\n```\n")[2].partition("\n```")[0]
    said = re.search(rf"{name}: (?:.|\n(?![$\w ]*\$)(?!this is))*", block)
    assert said, f"the example of {name} does not name it"
    return " ".join(said[0].split())


def shape(text: str) -> str:
    """A message without what differs from run to run: numbers, instants, ids of files, paths,
    hosts."""
    text = re.sub(r"http://[\w.:-]+", "URL", text)
    text = (
        re.sub(r"(?<![\w.])/[\w./-]*?(?=/flights|lake\b|[\]:]|$)", "…", text)
        .replace("…lake/", "…/")
        .replace("…lake", "…")
    )
    text = re.sub(r"[\w-]+_\d+-\d+-\d+_\w+\.parquet", "FILE", text)
    return re.sub(r"\d+", "N", text)


def patterns(module: str) -> list[re.Pattern[str]]:
    """Each text of a module that is long enough, with anything where a value stands."""
    found = []
    nodes = [*ast.walk(ast.parse((ROOT / module).read_text("utf-8")))]
    within = {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in nodes:
        if isinstance(node, ast.JoinedStr | ast.Constant) and id(node) not in within:
            values = node.values if isinstance(node, ast.JoinedStr) else [node]
            parts = [str(each.value) if isinstance(each, ast.Constant) else None for each in values]
            if sum(len(part or "") for part in parts) >= TEXT_MIN:
                found.append(re.compile("".join(".+" if part is None else re.escape(part) for part in parts)))
    return found


def test_the_example_of_every_error_is_compared() -> None:
    assert {*MADE, *SAID_IN, errors.InvariantError.name()} == set(names())


@pytest.mark.parametrize("name", sorted(MADE))
def test_the_example_of_a_page_is_the_message_of_the_error(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(errors.HudiError) as raised:
        MADE[name](Made(tmp_path, monkeypatch))
    assert raised.value.name() == name
    assert shape(example(name)) == shape(f"{name}: {raised.value}"), f"{name}: {raised.value}"


@pytest.mark.parametrize("name", sorted(SAID_IN))
def test_the_example_of_a_page_has_the_words_of_the_code(name: str) -> None:
    said = example(name)
    for module in SAID_IN[name]:
        assert [each.pattern for each in patterns(module) if each.search(said)], f"{module} does not say: {said}"


def test_the_example_of_a_bug_is_what_the_command_line_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object) -> NoReturn:
        raise KeyError("partition")

    monkeypatch.setattr("hudi_table.cli.queries.timeline.run", broken)
    assert main(["timeline", str(tmp_path)]) == 1
    said = capsys.readouterr().err.strip()
    assert said in page(errors.InvariantError.name())
