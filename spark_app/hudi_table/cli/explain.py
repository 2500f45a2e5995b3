"""`hudictl explain NAME`: the page of an error, from the pages in this package."""

from __future__ import annotations

import difflib
from importlib import resources

from hudi_table.errors import InvalidOptionError


def names() -> list[str]:
    """Every name that has a page, sorted."""
    folder = resources.files("hudi_table.cli").joinpath("pages")
    return sorted(page.name.removesuffix(".md") for page in folder.iterdir() if page.name.endswith(".md"))


def page(name: str) -> str:
    """The page of `name`, whose case and a trailing `Error` do not matter. Raises InvalidOptionError, with the nearest."""
    known = {each.lower(): each for each in names()}
    wanted = name.lower().removesuffix("error") or name.lower()
    if wanted not in known:
        near = difflib.get_close_matches(wanted, known, n=1, cutoff=0.5)
        hint = f"did you mean {known[near[0]]}?" if near else f"there are {', '.join(known.values())}"
        raise InvalidOptionError(f"no page explains {name!r}: {hint}")
    return resources.files("hudi_table.cli").joinpath("pages", f"{known[wanted]}.md").read_text("utf-8")


def summary(name: str) -> str:
    """The first sentence of a page."""
    lines = page(name).splitlines()
    return next(line for line in lines[1:] if line.strip())
