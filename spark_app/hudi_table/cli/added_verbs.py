"""What other packages add: verbs, the entry points of the group `hudictl.verbs`, and whatever else
has a group.

Read from the `entry_points.txt` of what is installed, without `importlib.metadata`: its import
alone takes a third of the time that `hudictl --help` has.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

GROUP = "hudictl.verbs"
ENGINES = "hudictl.engines"
"""Entry points of engines of `query`: name = engine, value = a function of the statement, the
tables by name and the most rows that are needed (None: all), which returns a context manager that
gives a `pyarrow.RecordBatchReader`."""
VERBS_ELSEWHERE = {
    **dict.fromkeys(("status", "plan", "approve", "run", "lag", "why", "logs", "report", "sets"), "hudi-operator"),
    "local": "hudi-operator[local]",
}
"""The project's own verbs that are not in this package, and what installs them; `--help` lists them
where they are installed."""
ENGINES_ELSEWHERE = {"spark": "hudi-spark"}
"""The same of engines."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True, slots=True)
class AddedVerb:
    """One entry point: `module` holds the function `function`; a verb's takes the arguments after
    the verb and returns an exit code.

    `extra`: what of its package must be installed too (`module:function [extra]`); `metadata`: the
    folder that tells about the package.
    """

    name: str
    module: str
    function: str
    extra: str = ""
    metadata: str = ""

    @property
    def value(self) -> str:
        """As it stands in the package's metadata."""
        return f"{self.module}:{self.function}"

    def missing(self) -> list[str]:
        """Packages of its extra that are not installed: without them it cannot run."""
        return _missing(self.metadata, self.extra) if self.extra else []

    @property
    def install(self) -> str:
        """The command that installs its extra."""
        return f"pip install '{_metadata_values(self.metadata, 'Name')[0]}[{self.extra}]'"

    def load(self) -> Callable[..., Any]:
        """The function. Raises what its import raises."""
        found: Callable[..., Any] = getattr(import_module(self.module), self.function)
        return found


def added_verbs() -> dict[str, AddedVerb]:
    """The verbs of other packages by name."""
    return entry_points(GROUP)


def entry_points(wanted: str) -> dict[str, AddedVerb]:
    """The entry points of a group by name; of two packages that add the same one, the first on the
    path wins."""
    found: dict[str, AddedVerb] = {}
    for folder, text in _entry_point_files(wanted):
        for verb in _verbs_in(text, wanted, folder):
            found.setdefault(verb.name, verb)
    return found


def _entry_point_files(wanted: str) -> Iterator[tuple[str, str]]:
    """(folder of the package's metadata, text of its entry points)."""
    for folder in _metadata_folders():
        text = _read(folder, "entry_points.txt")
        if wanted in text:
            yield folder, text


def _metadata_folders() -> Iterator[str]:
    for folder in dict.fromkeys(sys.path):
        try:
            names = sorted(name for name in os.listdir(folder or ".") if name.endswith((".dist-info", ".egg-info")))
        except OSError:
            continue
        yield from (os.path.join(folder, name) for name in names)


def _read(folder: str, name: str) -> str:
    try:
        return Path(folder, name).read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def _metadata_values(folder: str, field: str) -> list[str]:
    """The values of a field of a package's METADATA."""
    head = f"{field}: "
    return [line.removeprefix(head) for line in _read(folder, "METADATA").splitlines() if line.startswith(head)]


def _missing(folder: str, extra: str) -> list[str]:
    wanted = [
        _NAME.match(needed)[0]  # type: ignore[index]
        for needed in _metadata_values(folder, "Requires-Dist")
        if re.search(rf"extra == ['\"]{re.escape(extra)}['\"]", needed)
    ]
    there = {_plain(os.path.basename(path).partition("-")[0]) for path in _metadata_folders()}
    return [name for name in wanted if _plain(name) not in there]


def _plain(name: str) -> str:
    """A package's name as PEP 503 compares them."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _verbs_in(text: str, wanted: str, folder: str) -> Iterator[AddedVerb]:
    group = ""
    for raw in text.splitlines():
        line = raw.strip()
        if line.startswith("["):
            group = line.strip("[]").strip()
        elif group == wanted and "=" in line and not line.startswith("#"):
            name, _, value = line.partition("=")
            module, _, function = value.strip().partition(":")
            function, _, extra = function.partition("[")
            yield AddedVerb(name.strip(), module.strip(), function.strip(), extra.strip(" ]"), folder)
