"""What other packages add: verbs, the entry points of the group `hudictl.verbs`, and whatever else has a group.

Read from the `entry_points.txt` of what is installed, without `importlib.metadata`: its import alone takes a third of
the time that `hudictl --help` has.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

GROUP = "hudictl.verbs"


@dataclass(frozen=True, slots=True)
class AddedVerb:
    """One entry point: `module` holds the function `function`; a verb's takes the arguments after the verb and returns an exit code."""

    name: str
    module: str
    function: str

    @property
    def value(self) -> str:
        """As it stands in the package's metadata."""
        return f"{self.module}:{self.function}"

    def load(self) -> Callable[..., Any]:
        """The function. Raises what its import raises."""
        found: Callable[..., Any] = getattr(import_module(self.module), self.function)
        return found


def added_verbs() -> dict[str, AddedVerb]:
    """The verbs of other packages by name."""
    return entry_points(GROUP)


def entry_points(wanted: str) -> dict[str, AddedVerb]:
    """The entry points of a group by name; of two packages that add the same one, the first on the path wins."""
    found: dict[str, AddedVerb] = {}
    for text in _entry_point_files(wanted):
        for verb in _verbs_in(text, wanted):
            found.setdefault(verb.name, verb)
    return found


def _entry_point_files(wanted: str) -> Iterator[str]:
    for folder in dict.fromkeys(sys.path):
        try:
            names = sorted(name for name in os.listdir(folder or ".") if name.endswith((".dist-info", ".egg-info")))
        except OSError:
            continue
        for name in names:
            try:
                text = Path(folder, name, "entry_points.txt").read_text("utf-8")
            except (OSError, UnicodeDecodeError):
                continue
            if wanted in text:
                yield text


def _verbs_in(text: str, wanted: str) -> Iterator[AddedVerb]:
    group = ""
    for raw in text.splitlines():
        line = raw.strip()
        if line.startswith("["):
            group = line.strip("[]").strip()
        elif group == wanted and "=" in line and not line.startswith("#"):
            name, _, value = line.partition("=")
            module, _, function = value.strip().partition(":")
            yield AddedVerb(name.strip(), module.strip(), function.strip().partition(" ")[0])
