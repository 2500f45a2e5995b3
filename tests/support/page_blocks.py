"""The code blocks of README and docs, in their order, for tests that run them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.tidy.sources import ROOT, project_files

Blocks = list[tuple[str, str]]
_HEADING = re.compile(r"^## (.+)$", re.MULTILINE)
_BLOCK = re.compile(r"^```([^\n`]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)

_SAID = re.compile(r"^ *print\(.*\)  # (.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Block:
    """One block of a page. `kind` is what follows the fence (`python`, `sql refused`), "" of
    commands and of what they print."""

    page: str
    number: int
    kind: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}#{self.number}"

    def commands(self) -> list[str]:
        """The commands of a block without a kind, continued lines as one; what a command prints is
        left out."""
        if self.kind:
            return []
        lines = re.sub(r"(\\|\|)\n\s+", lambda end: "| " if end[1] == "|" else "", self.text).splitlines()
        asked = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
        return asked or [line for line in map(str.strip, lines) if line]

    def printed(self) -> list[list[str]]:
        """What each command of a block with `$` prints, by lines."""
        found: list[list[str]] = []
        for line in self.text.splitlines():
            if line.startswith("$ "):
                found.append([])
            elif found:
                found[-1].append(line)
        return found

    def check_output(self, printed: str) -> None:
        """Assert that what a block in Python has printed is what the comments behind its `print(…)`
        say, where it has such."""
        said = _SAID.findall(self.text)
        if said:
            assert printed.splitlines() == said, str(self)


def every_block() -> Iterator[Block]:
    """All blocks of README and docs, page after page."""
    for page in project_files():
        if page == "README.md" or (page.startswith("docs/") and page.endswith(".md")):
            for number, (kind, text) in enumerate(_BLOCK.findall((ROOT / page).read_text("utf-8")), 1):
                yield Block(page, number, kind, text)


def sections(page: Path) -> list[tuple[str, Blocks]]:
    """(heading, [(kind, text) of each block]) of the page."""
    parts = _HEADING.split(page.read_text("utf-8"))[1:]
    return [(parts[i], _BLOCK.findall(parts[i + 1])) for i in range(0, len(parts), 2)]
