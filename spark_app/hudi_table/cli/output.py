"""What verbs print: one document in seven formats.

People's formats (`table`, `wide`, `markdown`) humanise values; the others carry them raw, in base
units, under camelCase names that are stable. Tables have no borders, so that grep, cut and awk work
on them.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
import sys
import unicodedata
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, TextIO

FORMATS = ("table", "wide", "json", "yaml", "csv", "name", "markdown")
_GAP = "   "
_LEAST = 12
API_VERSION = "hudi.lakeops.dev/v1alpha1"


def _plain(value: Any) -> str:
    if value is None or value in ("", [], ()):
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


@dataclass(frozen=True, slots=True)
class Column:
    """One field: its raw `key`, its heading, how people see it; `wide` ones show in `-o wide`
    only."""

    key: str
    title: str
    show: Callable[[Any], str] = _plain
    wide: bool = False
    right: bool = False


@dataclass(frozen=True, slots=True)
class Document:
    """A versioned kind with rows. The first column names a row; a `single` document is one record,
    printed downwards; headings of `data` are column names, which keep their case."""

    kind: str
    columns: tuple[Column, ...]
    rows: Sequence[Mapping[str, Any]]
    single: bool = False
    data: bool = False

    def render(self, form: str, *, bold: bool = False, width: int | None = None) -> str:
        """The document as text that ends with a newline (or empty text, where there is nothing to
        say). `width`: the characters of a line; long cells are cut to fit, where that is
        possible."""
        if form in ("json", "yaml"):
            return self._structured(form)
        if form == "csv":
            return self._csv()
        if form == "name":
            return "".join(f"{shown(str(row[self.columns[0].key]))}\n" for row in self.rows)
        wanted = [c for c in self.columns if form == "wide" or not c.wide]
        if self.single:
            cells = [[c.title, shown(c.show(self.rows[0].get(c.key)))] for c in wanted]
            heads, right = ["FIELD", "VALUE"], [False, False]
        else:
            cells = [[shown(c.show(row.get(c.key))) for c in wanted] for row in self.rows]
            heads = [shown(c.title) if self.data else c.title.upper() for c in wanted]
            right = [c.right for c in wanted]
        if form == "markdown":
            return _markdown(heads, cells, right)
        if width is not None and cells:
            cells = _cut(heads, cells, width)
        return _aligned(heads, cells, right, header=not self.single, bold=bold)

    def _structured(self, form: str) -> str:
        head: dict[str, Any] = {"apiVersion": API_VERSION, "kind": self.kind}
        rows = [{c.key: row.get(c.key) for c in self.columns} for row in self.rows]
        document = {**head, **rows[0]} if self.single else {**head, "items": rows}
        if form == "json":
            return json.dumps(document, indent=2, ensure_ascii=False) + "\n"
        import yaml

        return str(yaml.safe_dump(document, sort_keys=False, allow_unicode=True))

    def _csv(self) -> str:
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow([c.key for c in self.columns])
        writer.writerows([[_raw(row.get(c.key)) for c in self.columns] for row in self.rows])
        return text.getvalue()


def emit(document: Document, form: str, out: TextIO | None = None) -> None:
    """Print a document on stdout; headings are bold on a terminal, unless NO_COLOR is set."""
    stream = out or sys.stdout
    stream.write(document.render(form, bold=styled(stream)))
    if form in ("table", "wide") and not document.rows:
        words = re.findall("[A-Z]+(?![a-z])|[A-Z][a-z]+", document.kind.removesuffix("List"))
        note(" ".join(["no", *(word if word.isupper() else word.lower() for word in words), "to show"]))


def styled(stream: TextIO) -> bool:
    """Whether a stream takes styles: a terminal, NO_COLOR unset or empty, and not a dumb one."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def note(text: str) -> None:
    """A remark, on stderr. Its lines stay lines."""
    sys.stderr.write("".join(f"{shown(line)}\n" for line in text.split("\n")))


def shown(text: str) -> str:
    """Text on one line, as a terminal may show it: what it would obey, not show, is written as an
    escape. Names of files, values of rows and what other libraries say of both may hold
    anything."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _raw(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, (list, dict)) else value


def _aligned(heads: list[str], cells: list[list[str]], right: list[bool], *, header: bool, bold: bool) -> str:
    if not cells:
        return ""
    widths = [max(cells_of(line[i]) for line in ([heads] if header else []) + cells) for i in range(len(heads))]

    def padded(text: str, width: int, right: bool) -> str:
        room = " " * (width - cells_of(text))
        return room + text if right else text + room

    def line(values: list[str]) -> str:
        return _GAP.join(map(padded, values, widths, right)).rstrip()

    if header:
        top = line(heads)
        lines = [f"\x1b[1m{top}\x1b[0m" if bold else top, *map(line, cells)]
    else:
        lines = [
            f"\x1b[1m{padded(c[0], widths[0], False)}\x1b[0m   {c[1]}".rstrip() if bold else line(c) for c in cells
        ]
    return "\n".join(lines) + "\n"


def _cut(heads: list[str], cells: list[list[str]], width: int) -> list[list[str]]:
    """Cells that fit a line: the longest columns give way first, none below its heading or `_LEAST`
    characters."""
    least = [max(cells_of(head), _LEAST) for head in heads]
    full = [max(cells_of(head), *(cells_of(line[i]) for line in cells)) for i, head in enumerate(heads)]
    room = width - len(_GAP) * (len(heads) - 1)

    def within(most: int) -> list[int]:
        return [min(found, max(most, small)) for found, small in zip(full, least, strict=True)]

    fits = bisect_left(range(max(full)), True, key=lambda most: sum(within(most + 1)) > room)
    widths = within(fits)
    return [[_within(text, most) for text, most in zip(line, widths, strict=True)] for line in cells]


def _within(text: str, width: int) -> str:
    if cells_of(text) <= width:
        return text
    ends = accumulate(map(cells_of, text))
    return f"{text[: sum(end < width for end in ends)]}…"


def cells_of(text: str) -> int:
    """How many cells of a terminal a text takes: two for a character of East Asia or a picture,
    none for an accent that stands on the character before."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def _markdown(heads: list[str], cells: list[list[str]], right: list[bool]) -> str:
    lines = [heads, ["---:" if r else "---" for r in right], *cells]
    return "".join("| " + " | ".join(v.replace("|", "\\|") for v in values) + " |\n" for values in lines)
