"""The code blocks of a page of the docs, in their order, for tests that run them."""

from __future__ import annotations

import re
from pathlib import Path

Blocks = list[tuple[str, str]]
_HEADING = re.compile(r"^## (.+)$", re.MULTILINE)
_BLOCK = re.compile(r"^```(\w.*?)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def sections(page: Path) -> list[tuple[str, Blocks]]:
    """(heading, [(kind, text) of each block]) of the page; a kind is what follows the fence: `python`, `sql refused`."""
    parts = _HEADING.split(page.read_text("utf-8"))[1:]
    return [(parts[i], _BLOCK.findall(parts[i + 1])) for i in range(0, len(parts), 2)]
