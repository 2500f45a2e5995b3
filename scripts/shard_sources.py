"""What a shard of the long tests depends on: its tests, what they import, and what lies beside
both.

Imports are read, not run. A name of a module in a string counts as an import too: so are
subprocesses (`python -m hudi_table`) and registries of functions found. Tests of the operator on a
cluster start what nothing imports: for them it is all code of the product too. Other tests, of
pages say, depend on more than imports tell: for them it is the whole tree.

Much of what could be imported never is, since modules are loaded by need. Where a run noted what
its processes loaded, the rest does not count. Nor do comments and docstrings count there.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import json
import subprocess
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = {
    "spark_app/": "",
    "operator/": "",
    "tests/": "tests.",
    "e2e/": "e2e.",
    "scripts/": "scripts.",
    "bench/": "bench.",
}
"""Folders of modules, and what their dotted names begin with."""
BY_IMPORTS = (
    "tests/hudi_table",
    "tests/soak",
    "tests/simulation",
    "tests/interop",
    "tests/model",
    "tests/hudi_spark",
    "tests/endurance",
)
WITH_ALL_CODE = ("tests/cluster", "tests/hudi_operator")
CODE = ("spark_app/", "operator/", "crds/", "charts/", "config/", "Dockerfile", "Makefile")
ALWAYS = ("pyproject.toml", "requirements/", "tests/data/", "tests/conftest.py")


@functools.cache
def tracked() -> tuple[str, ...]:
    """All files that tests may depend on; pages and results do not count."""
    command = ["git", "ls-files", "--", ".", ":!docs/results", ":!*.md"]
    return tuple(subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines())


def files_of(args: Sequence[str], idle: Sequence[str] = ()) -> tuple[str, ...]:
    """The files that a shard with these arguments of pytest depends on, sorted; without the modules
    and packages that a run did not load."""
    asked = _asked(args)
    if _all_in(asked, WITH_ALL_CODE):
        return tuple(sorted({*_reached(asked), *(name for name in tracked() if name.startswith(CODE))}))
    if not _all_in(asked, BY_IMPORTS):
        return tracked()
    places = tuple(f"spark_app/{name.replace('.', '/')}{end}" for name in idle for end in ("/", ".py"))
    return tuple(name for name in _reached(asked) if not (name.endswith(".py") and name.startswith(places)))


def _asked(args: Sequence[str]) -> tuple[str, ...]:
    return tuple(arg.partition("::")[0] for arg in args if arg.startswith("tests/"))


def _all_in(asked: Sequence[str], folders: tuple[str, ...]) -> bool:
    return bool(asked) and all(path.startswith(folders) for path in asked)


def idle_of(args: Sequence[str], loaded: Iterable[str]) -> list[str]:
    """Which modules of the data plane a shard could import and did not load: dotted names, of whole
    packages where nothing in them was loaded."""
    if not _all_in(_asked(args), BY_IMPORTS):
        return []
    used = {
        ".".join(parts[:count]) for each in loaded for parts in [each.split(".")] for count in range(1, len(parts) + 1)
    }
    files = {*files_of(args)}
    names = [name for name, file in _modules().items() if file in files and file.startswith("spark_app/")]
    unused = {name for name in names if name not in used}
    return sorted(name for name in unused if name.rpartition(".")[0] not in unused)


def digest_of(args: Sequence[str], idle: Sequence[str] = ()) -> str:
    """What stands in the files that a shard depends on, in a line. Of a shard by imports what its
    code says, and not how it is commented."""
    files, total = files_of(args, idle), hashlib.sha256()
    for name in files:
        path = ROOT / name
        held = path.read_bytes() if path.is_file() else b""
        total.update(name.encode() + b"\0")
        total.update(held if files is tracked() else _meant(name, held))
    return total.hexdigest()


def _meant(name: str, held: bytes) -> bytes:
    """What a file says to tests that run code."""
    if name == "pyproject.toml":
        settings = tomllib.loads(held.decode())
        return json.dumps([settings.get("project"), settings.get("tool", {}).get("pytest")], sort_keys=True).encode()
    if name == "tests/shards.toml":  # What is said of the shard itself counts in any case.
        return b""
    return _said(held) if name.endswith(".py") else held


@functools.cache
def _said(code: bytes) -> bytes:
    tree = ast.parse(code)
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            if isinstance(lines := getattr(node, name, None), list):
                setattr(node, name, [line for line in lines if not _is_text(line)])
    return ast.dump(tree).encode()


def _is_text(line: ast.AST) -> bool:
    return isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant) and isinstance(line.value.value, str)


@functools.cache
def _reached(asked: tuple[str, ...]) -> tuple[str, ...]:
    """What the tests at these paths import or start, and what lies beside it: many shards are parts
    of the same tests."""
    known, beside = _modules(), _data()
    begun = [name for name in tracked() if name.startswith(asked) or name in _conftests(asked)]
    seen, waiting = set(begun), list(begun)
    while waiting:
        name = waiting.pop()
        found = {known[each] for each in _imports(name) if each in known} | beside.get(name.rpartition("/")[0], set())
        waiting += found - seen
        seen |= found
    return tuple(sorted(seen | {name for name in tracked() if name.startswith(ALWAYS)}))


def _conftests(asked: Iterable[str]) -> set[str]:
    folders = {parent.as_posix() for path in asked for parent in (Path(path), *Path(path).parents)}
    return {f"{folder}/conftest.py" for folder in folders}


@functools.cache
def _modules() -> dict[str, str]:
    """Dotted name → file, packages by their `__init__.py`."""
    found = {}
    for name in tracked():
        for folder, prefix in PACKAGES.items():
            if name.startswith(folder) and name.endswith(".py"):
                dotted = prefix + name[len(folder) : -len(".py")].replace("/", ".")
                found[dotted.removesuffix(".__init__").removesuffix(".__main__")] = name
    return found


@functools.cache
def _data() -> dict[str, set[str]]:
    """Folder → the files in it that are no Python, which code beside them may open."""
    found: dict[str, set[str]] = {}
    for name in tracked():
        if not name.endswith(".py"):
            found.setdefault(name.rpartition("/")[0], set()).add(name)
    return found


@functools.cache
def _imports(name: str) -> frozenset[str]:
    """The dotted names that a file may import; of each its packages too."""
    if not name.endswith(".py"):
        return frozenset()
    names = set(_names(ast.parse((ROOT / name).read_text())))
    return frozenset(
        ".".join(parts[:count]) for each in names for parts in [each.split(".")] for count in range(1, len(parts) + 1)
    )


def _names(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < 200:
            yield node.value.partition(":")[0]
