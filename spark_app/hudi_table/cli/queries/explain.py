"""`hudictl explain [NAME]`: the page of an error, or the list of all."""

from __future__ import annotations

import argparse
import difflib
import sys
from importlib import resources

from hudi_table.cli import exits
from hudi_table.cli.output import Column, Document, emit
from hudi_table.errors import InvalidOptionError

_COLUMNS = (Column("name", "Name"), Column("summary", "What happened"))


def run(args: argparse.Namespace) -> int:
    """Print one page, or without a name all names with their first sentences."""
    if args.name is None:
        rows = [{"name": name, "summary": _summary(page(name))} for name in names()]
        emit(Document("ErrorList", _COLUMNS, rows), args.output)
        return exits.GOOD
    text = page(args.name)
    if args.output in ("table", "wide", "markdown"):
        sys.stdout.write(text)
    else:
        columns = (*_COLUMNS, Column("text", "Text"))
        row = {"name": text.splitlines()[0].removeprefix("# "), "summary": _summary(text), "text": text}
        emit(Document("Error", columns, [row], single=True), args.output)
    return exits.GOOD


def names() -> list[str]:
    """Every name that has a page, sorted."""
    folder = resources.files("hudi_table.cli").joinpath("pages")
    return sorted(each.name.removesuffix(".md") for each in folder.iterdir() if each.name.endswith(".md"))


def page(name: str) -> str:
    """The page of `name`, whose case and a trailing `Error` do not matter. Raises InvalidOptionError, with the nearest."""
    known = {each.lower(): each for each in names()}
    wanted = name.lower().removesuffix("error")
    if wanted not in known:
        near = difflib.get_close_matches(wanted, known, n=1, cutoff=0.5)
        hint = f"did you mean {known[near[0]]}?" if near else f"there are {', '.join(known.values())}"
        raise InvalidOptionError(f"no page explains {name!r}: {hint}")
    return resources.files("hudi_table.cli").joinpath("pages", f"{known[wanted]}.md").read_text("utf-8")


def _summary(text: str) -> str:
    """The first sentence after the heading."""
    return text.splitlines()[2].partition(". ")[0].rstrip(".") + "."
