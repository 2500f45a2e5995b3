"""Notes which modules and functions of the project a process runs, for `scripts.test_full`, which
puts this folder on PYTHONPATH.

Python imports a module of this name when it starts, in processes that tests start too. Of each
module, and of each function that lies in no other one, an empty file is made the first time, since
tests kill processes: `hudi_table.api`, `hudi_table.api:HudiTable.scan`, and `+pyarrow` of a package
of others. A function learns to tell by a line that is put at its begin when its module is compiled.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from typing import Any

NOTES = os.environ.get("HUDI_NOTES")
PROJECT = ("hudi_table", "hudi_spark", "hudi_operator")
UNSEEN, SEEN = "__unseen__", "__seen__"


def note(name: str) -> None:
    """Make the file of a name."""
    if not os.access(path := f"{NOTES}/{name}", os.F_OK):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o644))


def notes_of(module: str, unseen: bytearray, names: tuple[str, ...]) -> Callable[[int], None]:
    """What a module's functions call the first time, with their number."""

    def seen(number: int) -> None:
        unseen[number] = 0
        note(f"{module}:{names[number]}")

    return seen


class NotingLoader(SourceFileLoader):
    """Compiles modules whose functions tell that they run."""

    def source_to_code(self, data: Any, path: Any, *, _optimize: int = -1) -> Any:  # type: ignore[override]
        """Code, with a line more at the begin of each function."""
        import ast

        from outer_functions import outer_functions  # type: ignore[import-not-found]

        tree = ast.parse(data, path)
        found = list(outer_functions(tree))
        for number, (_, function) in enumerate(found):
            begin = function.body[0]
            line = ast.parse(f"if {UNSEEN}[{number}]: {SEEN}({number})").body[0]
            for node in ast.walk(line):
                ast.copy_location(node, begin)
            function.body.insert(1 if ast.get_docstring(function, clean=False) is not None else 0, line)
        names = tuple(name for name, _ in found)
        head = ast.parse(
            f"{UNSEEN} = bytearray(b'\\1') * {len(names)}\n"
            f"{SEEN} = __import__('sitecustomize').notes_of({self.name!r}, {UNSEEN}, {names!r})"
        )
        place = _first(tree)
        tree.body[place:place] = head.body
        ast.fix_missing_locations(tree)
        return super().source_to_code(tree, path, _optimize=_optimize)


def _first(tree: Any) -> int:
    """Where a statement may stand: behind the docstring and what is imported from the future."""
    import ast

    place = 1 if ast.get_docstring(tree, clean=False) is not None else 0
    while place < len(tree.body):
        node = tree.body[place]
        if not (isinstance(node, ast.ImportFrom) and node.module == "__future__"):
            break
        place += 1
    return place


class Noting:
    """A finder that notes the name of each module that is loaded for the first time."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Of the project's modules their place, with a loader that has them tell."""
        top = name.partition(".")[0]
        if top not in PROJECT:
            if top == name:
                note(f"+{name}")
            return None
        note(name)
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and type(spec.loader) is SourceFileLoader:
            spec.loader = NotingLoader(spec.loader.name, spec.loader.path)
        return spec


if NOTES and os.path.isdir(NOTES):
    # Code that tells lies apart from what others compile.
    sys.pycache_prefix = f"{os.path.dirname(NOTES)}/compiled"
    sys.meta_path.insert(0, Noting)
