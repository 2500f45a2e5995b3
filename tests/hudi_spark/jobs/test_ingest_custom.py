"""An ingest from a source of another package: each position once, in its order, and what is wrong
with a package is said by its name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hudi_spark.jobs.__main__ import main
from hudi_table import open_table
from hudi_table.cli.program import main as hudictl
from hudi_table.model.job.jobspec import JobResult, JobSpec
from hudi_table.sources.custom import GROUP
from tests.support.index_package import written_package

PACKAGE = """
import pyarrow as pa


class Numbers:
    def __init__(self, options):
        if "upto" not in options:
            raise ValueError("upto is missing")
        self.upto, self.size = int(options["upto"]), int(options.get("size", "10"))

    def read(self, position):
        begin = int(position) if position is not None else 0
        end = min(begin + self.size, self.upto)
        if begin >= end:
            return None
        return pa.table({"id": list(range(begin, end)), "square": [n * n for n in range(begin, end)]}), str(end)


class Away(Numbers):
    def read(self, position):
        raise ConnectionError("nobody listens")


class Broken(Numbers):
    def read(self, position):
        raise KeyError("oops")


class Stands(Numbers):
    def read(self, position):
        return super().read(None)


class Mute(Numbers):
    def read(self, position):
        return super().read(position)[0]


class Wordy(Numbers):
    def read(self, position):
        return super().read(None)[0], "x" * 65_537


class Empty:
    def __init__(self, options):
        pass
"""
ENTRIES = "\n".join(
    f"{name.lower()} = numbers_package:{name}"
    for name in ("Numbers", "Away", "Broken", "Stands", "Mute", "Empty", "Wordy")
)


@dataclass
class Job:
    """An ingest in a folder of its own."""

    folder: Path

    def run(
        self, attempt: str = "one", name: str = "numbers", *, operation: str = "Insert", **options: str
    ) -> JobResult:
        custom = {"name": name, "options": {"upto": "25", **options}}
        table = {
            "name": "squares", "location": f"file://{self.folder}/squares", "recordKey": ["id"],
            "index": {"type": "Simple"}, "options": {},
        }  # fmt: skip
        work = {
            "type": "Ingest", "name": "feed", "operation": operation, "transform": [],
            "source": {"type": "Custom", "custom": custom},
        }  # fmt: skip
        (self.folder / "spec.json").write_text(JobSpec(attempt, table, work, engine="Local").to_json())
        main([str(self.folder / "spec.json"), str(self.folder / "result.json")])
        return JobResult.from_json((self.folder / "result.json").read_text())

    def rows(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = (
            open_table(str(self.folder / "squares")).scan(["id", "square"]).to_arrow().to_pylist()
        )
        return sorted(found, key=lambda row: row["id"])


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Job]:
    with written_package(tmp_path / "package", "numbers_package", PACKAGE, ENTRIES, GROUP):
        yield Job(tmp_path)


def test_it_is_asked_until_nothing_waits_and_goes_on_where_it_was(job: Job) -> None:
    first = job.run()
    assert (first.outcome, first.figures["commits"], first.figures["recordsInserted"]) == ("Succeeded", 3, 25)
    assert job.rows() == [{"id": n, "square": n * n} for n in range(25)]
    assert job.run("two").outcome == "NothingToDo"
    assert job.run("three", upto="30").figures["recordsInserted"] == 5
    assert len(job.rows()) == 30


def test_the_checkpoint_is_shown(job: Job, capsys: pytest.CaptureFixture[str]) -> None:
    job.run()
    capsys.readouterr()
    hudictl(["checkpoint", "show", f"{job.folder}/squares"])
    assert "numbers 25" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "reason", "said"),
    [
        ("away", "Unavailable", "source 'away': ConnectionError: nobody listens"),
        ("broken", "InvalidRequest", "source 'broken' fails: KeyError: 'oops'"),
        (
            "stands",
            "InvalidRequest",
            "source 'stands' gives rows and the position that it was asked for: it must move on",
        ),
        ("wordy", "InvalidRequest", "source 'wordy' gives a position of 65,537 characters, at most 65,536 are kept"),
        ("mute", "InvalidRequest", "it is to give (rows, position)"),
        ("empty", "InvalidRequest", "source 'empty' has no method read(position)"),
        (
            "nobody",
            "InvalidRequest",
            "no package offers a source 'nobody': entry points of hudi_table.sources are away, broken, empty, mute, numbers, stands, wordy",
        ),
    ],
)
def test_what_is_wrong_with_a_package_is_said_by_its_name(job: Job, name: str, reason: str, said: str) -> None:
    result = job.run(name=name)
    assert (result.outcome, result.error_class) == ("Failed", reason)
    assert said in result.message


def test_options_that_a_package_refuses_end_the_ingest(tmp_path: Path) -> None:
    package = PACKAGE.replace('"upto" not in options', '"other" not in options')
    with written_package(tmp_path / "package", "numbers_package", package, ENTRIES, GROUP):
        result = Job(tmp_path).run()
    assert "source 'numbers' fails: ValueError: upto is missing" in result.message
    assert not (tmp_path / "squares").exists()


def test_the_position_of_one_source_is_not_given_to_another(job: Job) -> None:
    job.run()
    result = job.run("two", "mute")
    assert "the checkpoint is of source 'numbers', and the ingest is from 'mute' now" in result.message
