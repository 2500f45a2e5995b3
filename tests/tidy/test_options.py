"""The table of options: no line without a class, a reason or a proof, and the page that is made of
it."""

from __future__ import annotations

import ast
import functools
import re

from hudi_table.model.options.known import Fate, aliases, known_options
from hudi_table.model.options.values import check_value
from scripts import render_options
from tests.tidy.sources import ROOT
from tests.tidy.spelled import source_file

LINES = [
    line.split("\t")
    for line in (ROOT / "spark_app/hudi_table/model/data/options.tsv").read_text().splitlines()
    if not line.startswith("#")
]


@functools.cache
def functions_of(file: str) -> frozenset[str]:
    """Names of the test functions of a file."""
    tree = ast.parse((ROOT / file).read_text())
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def test_every_key_has_one_line_and_the_lines_are_sorted() -> None:
    keys = [line[0] for line in LINES]
    assert keys == sorted(set(keys))
    assert len(keys) > 700


def test_every_option_that_acts_names_a_test_that_is_there() -> None:
    acting = [option for option in known_options().values() if option.fate is Fate.ACTS]
    missing = [
        (option.key, option.note)
        for option in acting
        if not (ROOT / option.note.partition("::")[0]).is_file()
        or option.note.partition("::")[2] not in functions_of(option.note.partition("::")[0])
    ]
    assert not missing
    assert len(acting) > 100


def test_the_test_of_an_option_that_acts_gives_it() -> None:
    """By its key or an alias, put together of constants or not. A test that never names it proves
    nothing of it."""
    unproven = []
    for option in known_options().values():
        file, _, test = option.note.partition("::")
        names = {option.key, *(alias for alias, key in aliases().items() if key == option.key)}
        if option.fate is Fate.ACTS and not names & source_file(file).strings_of(test):
            unproven.append((option.key, option.note))
    assert not unproven


def test_a_default_is_a_value_of_its_kind() -> None:
    for option in known_options().values():
        if option.fate in (Fate.ACTS, Fate.ADVICE) and option.default:
            check_value(option.key, option.values, option.default)


def test_whatever_is_refused_or_does_nothing_says_why() -> None:
    for option in known_options().values():
        if option.fate in (Fate.REFUSED, Fate.ADVICE):
            assert len(option.note.split()) > 2, option.key
            assert not re.search(r"[.!]$", option.note), option.key


def test_an_alias_stands_for_a_key_that_is_none() -> None:
    for option in known_options().values():
        if option.fate is Fate.ALIAS:
            assert known_options()[option.note].fate is not Fate.ALIAS, option.key


def test_the_page_is_that_of_the_table() -> None:
    assert render_options.PAGE.read_text() == render_options.page(), "type `make options`"
