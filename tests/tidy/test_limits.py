"""Sizes: files, functions, parameters. There is no list of exceptions; what is too long is split by noun."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.tidy.sources import Source, production_sources, python_sources

FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 60
POSITIONAL_PARAMETERS_MAX = 6


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
