"""The texts of the code that users read: help of every command, descriptions of the resources,
docstrings of the public names and of every module."""

from __future__ import annotations

import argparse
import ast
import importlib
import inspect
import re
from collections.abc import Iterator
from typing import Any

import yaml

from hudi_operator.cli import local, run
from hudi_operator.cli.kubectl import program as kubectl
from hudi_table.cli import program as hudictl
from tests.tidy.sources import ROOT, production_sources

SHOWN = re.compile(r"^::: ([\w.]+)$", re.MULTILINE)
"""A name that a page of the reference shows with its docstring."""


def help_texts() -> Iterator[str]:
    """What `--help` says: of hudictl, kubectl-hudi, `hudictl local` and the operator."""
    for parser in (hudictl._parser({}), kubectl._parser(), local._parser(), run._parser()):
        yield from _help_of(parser)


def _help_of(parser: argparse.ArgumentParser) -> Iterator[str]:
    yield from (text for text in (parser.description, parser.epilog) if text)
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            yield from (str(each.help) for each in action._choices_actions)
            for verb in {id(each): each for each in action.choices.values()}.values():
                yield from _help_of(verb)
        elif action.help:
            yield action.help.replace("%%", "%")


def resource_texts() -> Iterator[str]:
    """The descriptions of all fields, and what the API server says of a value that a rule
    refuses."""
    for path in sorted((ROOT / "crds").glob("*.yaml")):
        yield from _descriptions(yaml.safe_load(path.read_text()))


def _descriptions(node: Any) -> Iterator[str]:
    if isinstance(node, list):
        node = dict(enumerate(node))
    if isinstance(node, dict):
        yield from (node[key] for key in ("description", "message") if isinstance(node.get(key), str))
        for each in node.values():
            yield from _descriptions(each)


def public_names() -> set[str]:
    """What the reference shows, and what `import hudi_table`, `hudi_table.arguments` and `import
    hudi_spark` give."""
    pages = (ROOT / "docs" / "reference" / "api").glob("*.md")
    named = {name for page in pages for name in SHOWN.findall(page.read_text())}
    for module in ("hudi_table", "hudi_spark"):
        named |= {f"{module}.{name}" for name in importlib.import_module(module).__all__ if name != "__version__"}
    return named | {"hudi_table.arguments"}


def public_docstrings() -> Iterator[str]:
    """The docstrings of public names, of the classes of public modules and of public methods."""
    for name in sorted(public_names()):
        module, _, last = name.rpartition(".")
        found = getattr(importlib.import_module(module), last, None)
        yield from _docstrings(found if found is not None else importlib.import_module(name), name)


def _docstrings(found: Any, name: str) -> Iterator[str]:
    if doc := inspect.getdoc(found):
        yield doc
    if inspect.ismodule(found):
        own = {key: each for key, each in vars(found).items() if getattr(each, "__module__", "") == found.__name__}
    elif inspect.isclass(found):
        # What a class takes over from another one of ours is shown as its own.
        ours = [vars(each) for each in reversed(found.__mro__) if each.__module__.startswith("hudi_")]
        own = {key: each for members in ours for key, each in members.items()}
    else:
        return
    for key, each in own.items():
        if not key.startswith("_") and (callable(each) or isinstance(each, property | classmethod)):
            yield from _docstrings(each, f"{name}.{key}")


def module_docstrings() -> Iterator[str]:
    """The docstrings of all modules: the page of modules shows them."""
    for source in production_sources():
        yield ast.get_docstring(source.tree) or ""


TEXTS = {
    "help": help_texts,
    "resources": resource_texts,
    "api": public_docstrings,
    "modules": module_docstrings,
}
