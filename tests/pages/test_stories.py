"""The blocks of README and docs in Python, and those of `hudictl`, run as they stand, page after
page, with real tables.

Pages that need a Spark session are run in tests/hudi_spark; what speaks of a cluster is looked at
in test_cluster_blocks.py.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path

import pytest

from hudi_table.cli.program import main as hudictl
from hudi_table.table.store.clock import SystemClock
from tests.pages.stories import Moments, before, flights, names
from tests.support.index_package import written_package
from tests.support.page_blocks import Block, every_block
from tests.support.postgres import running_postgres
from tests.support.s3 import ACCESS, running_s3
from tests.tidy.sources import ROOT

ON_SPARK = {"docs/reference/spark-sql.md", "docs/how-to/coming-from-hudi.md", "docs/tutorials/spark.md"}
"""Pages that tests/hudi_spark runs as a whole."""
SPARK_BLOCKS = {"docs/how-to/reading.md#5", "docs/reference/compatibility.md#1"}
"""Blocks that tests/hudi_spark/test_page_blocks.py runs."""
ON_KAFKA = {
    "docs/how-to/backfill.md",
    "docs/tutorials/kafka.md",
    "docs/tutorials/cdc.md",
    "docs/tutorials/migrate-from-hudi-streamer.md",
}
"""Pages that tests/streams runs, beside a broker."""
FINDINGS = {"hudictl doctor lake/flights": 3}
"""Commands that end with another exit code than 0."""


def told(block: Block) -> bool:
    """Whether a block is run here."""
    if block.page in ON_SPARK | ON_KAFKA:
        return False
    own = block.kind == "python" and str(block) not in SPARK_BLOCKS
    return own or any(is_run(command) for command in block.commands())


def is_run(command: str) -> bool:
    """Whether a command is run where its block is."""
    return command.startswith("python examples/") or (command.startswith("hudictl ") and " local " not in command)


STORIES = {page: list(blocks) for page, blocks in groupby(filter(told, every_block()), lambda block: block.page)}


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Moments:
    made = Moments()
    monkeypatch.setattr(SystemClock, "now", lambda self: made.now)
    monkeypatch.chdir(tmp_path)
    return made


@pytest.fixture
def bucket(clock: Moments, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The table of the page on S3, where the environment of the process says."""
    with running_s3() as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL", server.endpoint)
        for name, value in ACCESS.items():
            monkeypatch.setenv(f"AWS_{name.upper()}", value)
        server.client().create_bucket(Bucket="lake")
        flights(clock, "s3://lake/flights")
        yield
        # The server may be one for several pages.
        found = server.client().list_objects_v2(Bucket="lake").get("Contents", [])
        for each in found:
            server.client().delete_object(Bucket="lake", Key=each["Key"])


@pytest.fixture
def indexes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A database, and the package whose module and entry point the page shows."""
    source, entry = (
        next(block.text for block in every_block() if block.page == "docs/how-to/writing.md" and word in block.text)
        for word in ("class Recent", "hudi_table.indexes")
    )
    points = tomllib.loads(entry)["project"]["entry-points"]["hudi_table.indexes"]
    lines = "\n".join(f"{name} = {value}" for name, value in points.items())
    with running_postgres() as server, written_package(tmp_path / "site", "recent_index", source, lines):
        monkeypatch.setenv("HUDI_INDEX_CONNECTION", server.uri)
        yield


FIXTURES = {"docs/how-to/reading.md": "bucket", "docs/how-to/storage.md": "bucket", "docs/how-to/writing.md": "indexes"}
"""What a page needs to be running."""


@pytest.mark.parametrize("page", STORIES)
def test_the_page_runs_as_it_stands(
    page: str, clock: Moments, capsys: pytest.CaptureFixture[str], request: pytest.FixtureRequest
) -> None:
    given = names(clock)
    if page in FIXTURES:
        request.getfixturevalue(FIXTURES[page])
    for block in STORIES[page]:
        before(block)(clock, given)
        if block.kind == "python":
            capsys.readouterr()
            exec(compile(block.text, str(block), "exec"), given)
            block.check_output(capsys.readouterr().out)
        else:
            commands_run(block, capsys, given.get("named", {}))


def commands_run(block: Block, capsys: pytest.CaptureFixture[str], named: Mapping[str, str]) -> None:
    """Each command, and the first words of what it prints where the page shows that. `named`: what
    names on the page stand for."""
    capsys.readouterr()
    shown = block.printed() or [[]] * len(block.commands())
    for command, lines in zip(block.commands(), shown, strict=True):
        ours = command.partition(" | ")[0]
        words = [named.get(word, word) for word in shlex.split(ours, comments=True)[1:]]
        if ours.startswith("python "):
            subprocess.run([sys.executable, ROOT / words[0], *words[1:]], check=True)
            continue
        assert hudictl(words) == FINDINGS.get(ours, 0), f"{block}: {command}"
        printed = capsys.readouterr().out.splitlines()
        if lines and lines[0].isupper():
            assert printed[0].split() == lines[0].split(), block
        elif lines:
            assert [line.split()[0] for line in printed] == [line.split()[0] for line in lines], block
