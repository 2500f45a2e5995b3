"""Sizes: files, functions, parameters. There is no list of exceptions; what is too long is split by
noun."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.tidy.sources import Source, production_sources, python_sources

FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 60
POSITIONAL_PARAMETERS_MAX = 6
DOCSTRING_COLUMNS_MAX = 100
LAID_OUT = ("    ", "| ", ">>> ", "$ ")
"""How lines of a docstring begin that are laid out by hand: listings, and rows of tables."""


def functions(source: Source) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(source.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def test_there_is_something_to_measure() -> None:
    assert len(production_sources()) > 10


def test_no_file_is_longer_than_the_limit() -> None:
    long = {source.path: lines for source in python_sources() if (lines := source.text.count("\n")) > FILE_LINES_MAX}
    assert not long, f"more than {FILE_LINES_MAX} lines: {long}"


def test_no_function_is_longer_than_the_limit() -> None:
    long = [
        f"{source.path}:{function.lineno} {function.name}: {lines} lines"
        for source in python_sources()
        for function in functions(source)
        if (lines := body_lines(function)) > FUNCTION_LINES_MAX
    ]
    assert not long, f"more than {FUNCTION_LINES_MAX} lines without the docstring:\n" + "\n".join(long)


def test_no_function_takes_more_positional_parameters_than_the_limit() -> None:
    many = [
        f"{source.path}:{function.lineno} {function.name}: {count} parameters"
        for source in production_sources()
        for function in functions(source)
        if (count := positional_parameters(function)) > POSITIONAL_PARAMETERS_MAX
    ]
    assert not many, f"more than {POSITIONAL_PARAMETERS_MAX} positional parameters:\n" + "\n".join(many)


def test_no_line_of_a_docstring_is_wider_than_the_limit() -> None:
    wide = [
        f"{source.path}:{number}"
        for source in python_sources()
        for first, last, indentation in docstrings(source)
        for number, line in enumerate(source.text.split("\n")[first - 1 : last], first)
        if len(line) > DOCSTRING_COLUMNS_MAX and not line[indentation:].startswith(LAID_OUT)
    ]
    assert not wide, f"more than {DOCSTRING_COLUMNS_MAX} columns:\n" + "\n".join(wide)


def docstrings(source: Source) -> Iterator[tuple[int, int, int]]:
    """First and last line and the indentation of each, of attributes too."""
    for node in ast.walk(source.tree):
        for line in getattr(node, "body", []) if not isinstance(node, ast.Lambda | ast.IfExp | ast.Expression) else []:
            if (
                isinstance(line, ast.Expr)
                and isinstance(line.value, ast.Constant)
                and isinstance(line.value.value, str)
            ):
                assert line.end_lineno is not None
                yield line.lineno, line.end_lineno, line.col_offset


def body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines from the first statement after the docstring to the last."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    if not body:
        return 0
    assert body[-1].end_lineno is not None
    return body[-1].end_lineno - body[0].lineno + 1


def positional_parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    names = [argument.arg for argument in (*function.args.posonlyargs, *function.args.args)]
    return len([name for name in names if name not in ("self", "cls")])
