"""What a shard of the long tests depends on: its tests, what they import, and what lies beside
both.

Imports are read, not run. A name of a module in a string counts as an import too: so are
subprocesses (`python -m hudi_table`) and registries of functions found. Tests of the operator on a
cluster start what nothing imports: for them it is all code of the product too. Other tests, of
pages say, depend on more than imports tell: for them it is the whole tree.

Much of what could be imported never is, and of what is loaded not every function runs. Where a run
noted what its processes did (`scripts/noting`), code of the product counts as far as it was loaded,
functions as far as they ran, and of packages of others those that were loaded, by their pinned
versions. Nor do comments and docstrings count there.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import json
import subprocess
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

from scripts.noting.outer_functions import outer_functions

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = {
    "spark_app/": "",
    "operator/": "",
    "tests/": "tests.",
    "e2e/": "e2e.",
    "scripts/": "scripts.",
    "examples/": "examples.",
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
WITH_ALL_CODE = ("tests/cluster", "tests/hudi_operator", "tests/streams")
CODE = ("spark_app/", "crds/", "charts/", "config/", "Dockerfile", "Makefile")
OF_STREAMS, OF_OTHERS = ("examples/streaming/",), ("operator/", "examples/")
"""What streams start is the data plane; those that ask the operator import it."""
ALWAYS = ("pyproject.toml", "requirements/", "tests/data/", "tests/conftest.py")
PINS = "requirements/dev.txt"
PINS_OF_OTHERS = {"tests/interop": ("requirements/hudi.txt", "requirements/jars.sha256")}
"""What runs in an environment of its own, by the folder of its tests."""


@functools.cache
def tracked() -> tuple[str, ...]:
    """All files that tests may depend on; pages and results do not count."""
    command = ["git", "ls-files", "--", ".", ":!docs/results", ":!*.md"]
    return tuple(subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines())


def files_of(args: Sequence[str], ran: Sequence[str] = ()) -> tuple[str, ...]:
    """The files that a shard with these arguments of pytest depends on, sorted; of the product, and
    of what pins packages, those that a run noted, if it noted any."""
    asked = _asked(args)
    if _all_in(asked, WITH_ALL_CODE):
        more = OF_STREAMS if _all_in(asked, ("tests/streams",)) else OF_OTHERS
        code = (name for name in tracked() if name.startswith((*CODE, *more)))
        return tuple(sorted({*_reached(asked), *code}))
    if not _all_in(asked, BY_IMPORTS):
        return tracked()
    if not ran:
        return _reached(asked)
    loaded = frozenset(ran)
    pins = [name for folder, names in PINS_OF_OTHERS.items() for name in names if asked[0].startswith(folder)]
    return tuple(
        name
        for name in _reached(asked)
        if ((module_of(name) in loaded) if _is_product(name) else name in pins or not name.startswith("requirements/"))
    )


def _asked(args: Sequence[str]) -> tuple[str, ...]:
    return tuple(arg.partition("::")[0] for arg in args if arg.startswith("tests/"))


def _all_in(asked: Sequence[str], folders: tuple[str, ...]) -> bool:
    return bool(asked) and all(path.startswith(folders) for path in asked)


def _is_product(name: str) -> bool:
    return name.startswith(("spark_app/", "operator/")) and name.endswith(".py")


def module_of(name: str) -> str:
    """The dotted name of a file of the product."""
    return name.partition("/")[2].removesuffix(".py").replace("/", ".").removesuffix(".__init__")


def ran_of(args: Sequence[str], notes: Iterable[str]) -> list[str]:
    """What of the notes of a run tells on what its result depends; nothing for shards that depend
    on more than they load. Modules of others become packages."""
    if not _all_in(_asked(args), BY_IMPORTS):
        return []
    owners = metadata.packages_distributions()
    found = {note for note in notes if not note.startswith("+")}
    found |= {f"+{_plain(owner)}" for note in notes if note.startswith("+") for owner in owners.get(note[1:], ())}
    return sorted(found)


def digest_of(args: Sequence[str], ran: Sequence[str] = ()) -> str:
    """What stands in the files that a shard depends on, in a line. Of a shard by imports what its
    code says, and not how it is commented; where a run noted it, of functions those that ran."""
    files, total = files_of(args, ran), hashlib.sha256()
    by_notes = bool(ran) and _all_in(_asked(args), BY_IMPORTS)
    functions: dict[str, list[str]] = {}
    for note in ran if by_notes else ():
        module, _, function = note.partition(":")
        functions.setdefault(module, []).append(function)
    for name in files:
        path = ROOT / name
        held = path.read_bytes() if path.is_file() else b""
        total.update(name.encode() + b"\0")
        if by_notes and _is_product(name):
            code = _code(held)
            total.update(code.rest)
            for function in sorted(filter(None, functions[module_of(name)])):
                total.update(function.encode() + b"\0" + code.functions.get(function, b""))
        else:
            total.update(held if files is tracked() else _meant(name, held))
    pins = _pins() if by_notes else {}
    for package in sorted(note[1:] for note in ran if by_notes and note.startswith("+")):
        total.update(f"{package}=={pins.get(package)}\0".encode())
    return total.hexdigest()


@dataclass(frozen=True, slots=True)
class Code:
    """What a module says: `rest` what runs, or is looked up, when it is loaded; `functions`, those
    that lie in no other one, with what they use of the imports."""

    rest: bytes
    functions: dict[str, bytes] = field(default_factory=dict)


@functools.cache
def _code(held: bytes) -> Code:
    tree = _without_texts(held)
    imports = {
        (alias.asname or alias.name.partition(".")[0]): node
        for node in tree.body
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    functions: dict[str, bytes] = {}
    for name, function in outer_functions(tree):
        used = sorted(_used(function) & {*imports})
        said = ast.dump(function) + "".join(_bound(imports[each], each) for each in used)
        functions[name] = functions.get(name, b"") + hashlib.sha256(said.encode()).digest()
    tree.body = [node for node in tree.body if not _is_bare(node)]
    for _, function in outer_functions(tree):
        # Of others what counts though they do not run: that they are there, for what inherits or decorates them.
        yields = any(isinstance(node, ast.Yield | ast.YieldFrom) for node in ast.walk(function))
        function.body = [ast.Expr(ast.Yield())] if yields else [ast.Pass()]
    needed = sorted(_used(tree) & {*imports})
    rest = ast.dump(tree) + "".join(_bound(imports[each], each) for each in needed)
    return Code(hashlib.sha256(rest.encode()).digest(), functions)


def _is_bare(node: ast.stmt) -> bool:
    """Whether a statement of a module matters only to who uses the names that it binds."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return not node.decorator_list
    return isinstance(node, ast.Import | ast.ImportFrom)


def _used(tree: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def _bound(node: ast.Import | ast.ImportFrom, name: str) -> str:
    """How a name is imported."""
    whence = f"{node.level}{node.module}" if isinstance(node, ast.ImportFrom) else ""
    return f"{whence} {[(a.name, a.asname) for a in node.names if name in (a.asname, a.name.partition('.')[0])]}"


@functools.cache
def _pins() -> dict[str, str]:
    """Package → version, as pinned."""
    lines = (line.partition(" ")[0].partition("==") for line in (ROOT / PINS).read_text().splitlines())
    return {_plain(name): version for name, found, version in lines if found}


def _plain(package: str) -> str:
    return package.lower().replace("_", "-").replace(".", "-")


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
    return ast.dump(_without_texts(code)).encode()


def _without_texts(code: bytes) -> ast.Module:
    tree = ast.parse(code)
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            if isinstance(lines := getattr(node, name, None), list):
                setattr(node, name, [line for line in lines if not _is_text(line)])
    return tree


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
