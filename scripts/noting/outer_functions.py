"""The functions of a module that the notes tell apart: those that lie in no other function."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TypeAlias

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
_BLOCKS = ("body", "orelse", "finalbody", "handlers")


def outer_functions(tree: ast.AST, owner: str = "") -> Iterator[tuple[str, Function]]:
    """Each with its name, `Class.method` of a class. Two of one name are told as one."""
    for node in (each for block in _BLOCKS for each in getattr(tree, block, ())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield owner + node.name, node
        else:
            yield from outer_functions(node, f"{owner}{node.name}." if isinstance(node, ast.ClassDef) else owner)
