"""`hudictl explain [NAME]`: the page of an error, or what a condition, its reason or a check of the
doctor means; or the list of all errors."""

from __future__ import annotations

import argparse
import difflib
import sys
from importlib import resources
from importlib.abc import Traversable

from hudi_table.cli import exits
from hudi_table.cli.output import Column, Document, emit, note
from hudi_table.errors import InvalidOptionError

_COLUMNS = (Column("name", "Name"), Column("summary", "What happened"))


def run(args: argparse.Namespace) -> int:
    """Print one page, or without a name all names with their first sentences."""
    if args.name is None:
        rows = [{"name": name, "summary": _summary(page(name))} for name in names()]
        emit(Document("ErrorList", _COLUMNS, rows), args.output)
        note("conditions of resources, their reasons and the checks of the doctor are explained, too")
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
    return sorted(each.name.removesuffix(".md") for each in _files("pages"))


def terms() -> dict[str, list[tuple[str, str, str]]]:
    """Conditions, their reasons and the doctor's checks by name: of each where it stands, what it
    is and what to do."""
    found: dict[str, list[tuple[str, str, str]]] = {}
    for file in _files("terms"):
        title, *lines = file.read_text("utf-8").splitlines()
        for line in lines[3:]:
            name, what, todo = (cell.strip() for cell in line.strip("|").split("|"))
            found.setdefault(name, []).append((title.removeprefix("# "), what, todo))
    return found


def page(name: str) -> str:
    """The page of `name`, whose case and a trailing `Error` do not matter. Raises
    InvalidOptionError, with the nearest."""
    known, others = {each.lower(): each for each in names()}, terms()
    words = {each.lower(): each for each in others}
    wanted = name.lower().removesuffix("error")
    if wanted in known:
        return resources.files("hudi_table.cli").joinpath("pages", f"{known[wanted]}.md").read_text("utf-8")
    if wanted in words:
        parts = (f"{title}. {what}\n\n## What to do\n\n{todo}\n" for title, what, todo in others[words[wanted]])
        return f"# {words[wanted]}\n\n" + "\n".join(parts)
    near = difflib.get_close_matches(wanted, {**words, **known}, n=1, cutoff=0.6)
    hint = f"did you mean {(words | known)[near[0]]}?" if near else f"there are {', '.join(known.values())}"
    raise InvalidOptionError(f"no page explains {name!r}: {hint}")


def _files(folder: str) -> list[Traversable]:
    every = resources.files("hudi_table.cli").joinpath(folder).iterdir()
    return sorted((each for each in every if each.name.endswith(".md")), key=lambda each: each.name)


def _summary(text: str) -> str:
    """The first sentence after the heading; it may go on in the next line."""
    paragraph = " ".join(text.split("\n\n")[1].split())
    return paragraph.partition(". ")[0].rstrip(".") + "."
