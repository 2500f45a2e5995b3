"""The strings that a test gives: its own, those of the functions, fixtures and constants of its
file that it uses, and constants that it imports."""

from __future__ import annotations

import ast
import functools
import importlib
from collections.abc import Iterator
from dataclasses import dataclass

from tests.tidy.sources import ROOT


@dataclass(frozen=True)
class SourceFile:
    """A test file. `nodes`: what its top level defines, by name; `texts`: the strings that a name
    stands for."""

    nodes: dict[str, list[ast.AST]]
    texts: dict[str, set[str]]

    def strings_of(self, test: str) -> frozenset[str]:
        """Every string that the test can give."""
        found: set[str] = set()
        waiting, seen = [test], set[str]()
        while waiting:
            name = waiting.pop()
            if name in seen:
                continue
            seen.add(name)
            found |= self.texts.get(name, set())
            for node in self.nodes.get(name, []):
                found |= _strings_in(node, self.texts)
                waiting += _used_in(node)
        return frozenset(found)


@functools.cache
def source_file(file: str) -> SourceFile:
    """The file, read."""
    tree = ast.parse((ROOT / file).read_text())
    nodes: dict[str, list[ast.AST]] = {}
    texts: dict[str, set[str]] = {}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            texts |= _imported(node)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            nodes.setdefault(node.name, []).append(node)
        for name, value in _assigned(node):
            nodes.setdefault(name, []).append(value)
            text = _text_of(value, texts)
            texts |= {} if text is None else {name: {text}}
    return SourceFile(nodes, texts)


def _imported(node: ast.ImportFrom) -> dict[str, set[str]]:
    """The strings, and the keys of the tables, that a file imports from the project."""
    if not (node.module or "").startswith(("hudi_", "tests.")):
        return {}
    module = importlib.import_module(node.module or "")
    values = {item.asname or item.name: getattr(module, item.name, None) for item in node.names}
    texts = {name: {str(value)} for name, value in values.items() if isinstance(value, str)}
    return texts | {name: set(map(str, value)) for name, value in values.items() if isinstance(value, dict)}


def _assigned(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """The names that a statement gives a value, each with its own."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    value = getattr(node, "value", None)
    for target in targets:
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            yield from (
                (str(getattr(one, "id", "")), other) for one, other in zip(target.elts, value.elts, strict=True)
            )
        elif isinstance(target, ast.Name) and value is not None:
            yield target.id, value


def _strings_in(node: ast.AST, texts: dict[str, set[str]]) -> set[str]:
    known = dict(texts)
    for inner in ast.walk(node):
        for name, value in _assigned(inner):
            text = _text_of(value, known)
            known |= {} if text is None else {name: {text}}
    found = (_text_of(inner, known) for inner in ast.walk(node))
    # On a command line it stands before its value.
    return {text.partition("=")[0] for text in found if text is not None}


def _used_in(node: ast.AST) -> list[str]:
    """Names that it uses; of a test its arguments, which are fixtures."""
    named = [inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)]
    return named + [inner.arg for inner in ast.walk(node) if isinstance(inner, ast.arg)]


def _text_of(node: ast.AST, texts: dict[str, set[str]]) -> str | None:
    """The string that an expression of literals and constants comes to, None for any other."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.Name(id=name) if len(texts.get(name, ())) == 1:
            return next(iter(texts[name]))
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            parts = [_text_of(left, texts), _text_of(right, texts)]
        case ast.JoinedStr(values=values):
            parts = [_text_of(value, texts) for value in values]
        case ast.FormattedValue(value=value):
            return _text_of(value, texts)
        case _:
            return None
    return None if None in parts else "".join(map(str, parts))
