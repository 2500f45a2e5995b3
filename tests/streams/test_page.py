"""The lesson about Kafka, block by block, on a real broker."""

from __future__ import annotations

import shlex
import threading
import time
from dataclasses import replace
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

PAGE, ADDRESS, MANIFEST = "docs/tutorials/kafka.md", "localhost:9092", "orders.yaml"


class _Interrupted(SystemClock):
    """Ctrl-C, once the driver has taken the message that comes while it follows, or has had its time."""

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


def test_the_lesson_runs_from_its_first_block_to_its_last(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(loop, "WATCH_SECONDS", 0.5)
    names: dict[str, Any] = {}
    blocks: list[Block] = [block for block in every_block() if block.page == PAGE]
    assert len(blocks) == 11
    for block in blocks:
        block = replace(
            block, text=block.text.replace(ADDRESS, broker.address).replace("/tmp/lake", f"{tmp_path}/lake")
        )
        text = block.text
        if block.kind == "python":
            exec(compile(text, str(block), "exec"), names)
        elif block.kind == "yaml":
            Path(MANIFEST).write_text(text)
        else:
            printed = block.printed()
            for number, command in enumerate(block.commands()):
                capsys.readouterr()
                if "--watch" in command:
                    threading.Timer(4, names["send"], [("c", '{"id": "c", "item": "desk", "price": 210}')]).start()
                assert _command(command, monkeypatch) == 0, f"{block}: {command}: {capsys.readouterr()}"
                if printed:
                    assert capsys.readouterr().out.splitlines() == printed[number], str(block)
    capsys.readouterr()
    assert (
        hudictl(
            ["read", f"{tmp_path}/lake/orders", "--columns", "id,price", "--filter", "price > 100", "--format", "jsonl"]
        )
        == 0
    )
    assert capsys.readouterr().out == '{"id":"c","price":210}\n', "the driver has followed the topic"
