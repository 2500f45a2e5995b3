"""Lessons about streams, block by block, on a real broker."""

from __future__ import annotations

import shlex
import threading
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from hudi_operator.cli import local
from hudi_operator.runtime.local import loop
from hudi_table.api import open_table
from hudi_table.cli.program import main as hudictl
from hudi_table.table.store.clock import SystemClock
from tests.support.kafka import Broker
from tests.support.page_blocks import Block, every_block
from tests.tidy.sources import ROOT

ADDRESS, DATA = "localhost:9092", "tests/data/debezium"


class _Interrupted(SystemClock):
    """Ctrl-C, once the driver has taken the message that comes while it follows, or has had its
    time."""

    def __init__(self) -> None:
        self._until = time.monotonic() + 90

    def sleep(self, seconds: float) -> None:
        if time.monotonic() > self._until or len(open_table("lake/orders").scan(columns=["id"]).to_arrow()) > 1:
            raise KeyboardInterrupt
        super().sleep(min(seconds, 0.3))


def _command(command: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """Run `hudictl …`; its exit code."""
    program, *arguments = shlex.split(command)
    assert program == "hudictl"
    if arguments[0] != "local":
        return hudictl(arguments)
    if "--watch" not in arguments:
        return local.main(arguments[1:])
    with monkeypatch.context() as patched:
        patched.setattr(local, "SystemClock", _Interrupted)
        with pytest.raises(KeyboardInterrupt):
            local.main(arguments[1:])
    return 0


@dataclass
class _Reader:
    """Who follows a lesson, block by block, with a broker and a folder of the tests' own."""

    folder: Path
    broker: Broker
    monkeypatch: pytest.MonkeyPatch
    capsys: pytest.CaptureFixture[str]
    names: dict[str, Any] = field(default_factory=dict)
    manifest: str = "orders.yaml"

    def follow(self, page: str, blocks: int) -> None:
        """The lesson, which has so many blocks."""
        self.monkeypatch.chdir(self.folder)
        self.monkeypatch.setattr(loop, "WATCH_SECONDS", 0.5)
        found: list[Block] = [block for block in every_block() if block.page == page]
        assert len(found) == blocks
        places = {ADDRESS: self.broker.address, "/tmp/lake": f"{self.folder}/lake", DATA: str(ROOT / DATA)}
        for block in found:
            text = block.text
            for said, meant in places.items():
                text = text.replace(said, meant)
            self._do(replace(block, text=text))

    def _do(self, block: Block) -> None:
        if block.kind == "python":
            exec(compile(block.text, str(block), "exec"), self.names)
            return
        if block.kind == "yaml":
            Path(self.manifest).write_text(block.text)
            return
        printed = block.printed()
        for number, command in enumerate(block.commands()):
            self.capsys.readouterr()
            if "--watch" in command:
                threading.Timer(4, self.names["send"], [("c", '{"id": "c", "item": "desk", "price": 210}')]).start()
            assert _command(command, self.monkeypatch) == 0, f"{block}: {command}: {self.capsys.readouterr()}"
            if printed:
                assert self.capsys.readouterr().out.splitlines() == printed[number], str(block)


@pytest.fixture
def reader(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> _Reader:
    return _Reader(tmp_path, broker, monkeypatch, capsys)


def test_the_lesson_about_a_database_runs_from_its_first_block_to_its_last(reader: _Reader) -> None:
    reader.follow("docs/tutorials/cdc.md", 14)


def test_the_lesson_about_kafka_runs_from_its_first_block_to_its_last(
    reader: _Reader, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    reader.follow("docs/tutorials/kafka.md", 12)
    capsys.readouterr()
    assert (
        hudictl(
            ["read", f"{tmp_path}/lake/orders", "--columns", "id,price", "--filter", "price > 100", "--format", "jsonl"]
        )
        == 0
    )
    assert capsys.readouterr().out == '{"id":"c","price":210}\n', "the driver has followed the topic"


def test_the_lesson_about_a_job_of_hudi_streamer_runs_from_its_first_block_to_its_last(
    reader: _Reader, capsys: pytest.CaptureFixture[str]
) -> None:
    reader.manifest = "rides.yaml"
    reader.follow("docs/tutorials/migrate-from-hudi-streamer.md", 6)
    told = capsys.readouterr().out
    assert [line.count(" rides,0:3 ") for line in told.splitlines()[1:]] == [1, 1]
    history = open_table("lake/rides").history()
    assert (sum(history["inserted"].to_pylist()), sum(history["updated"].to_pylist())) == (3, 0), "none came twice"
