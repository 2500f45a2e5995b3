"""Writes `docs/reference/options.md` from the table of known options: `python -m
scripts.render_options` (`make options`). A test compares."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path

from hudi_table.model.options.known import Fate, KnownOption, known_options

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "options.md"

HEAD = """# Options

Made by `make options` from `spark_app/hudi_table/model/data/options.tsv`; change that file.

Options are the `hoodie.*` keys of Apache Hudi 0.15.0, 1.1.1 and 1.2.1, and some of our own (`hoodie.lakeops.*`). They are taken by `create_table`, by
every write, by every table service, on Spark as without it, by `hudictl --option`, and by `options` of both resources. Everywhere
the same gate stands before them:

- an option that **acts** does what Hudi's does ({acts} keys);
- an option that is **refused** would change rows, keys, layout, what is visible, concurrency or a promise, and we do not do it. Its
  default, and what we do anyhow, are taken; anything else is an error that says what to do instead ({refused} keys);
- **advice** tunes a part of Hudi that has no equal here. It is taken, does nothing, and says so by one `IgnoredOptionWarning`, and in
  a resource's status ({advice} keys);
- an **alias** is another name of an option ({alias} keys);
- any other key is refused, with the nearest known one.

`create_table` stores what an option says of the table. An option of writes and services is checked there too. It is not stored, and does
nothing until they are given it: an `IgnoredOptionWarning` says so.

Values are checked with their keys: numbers are ASCII digits, truth values `true` and `false` in any case. A class is given by the short name
that stands here, or as Hudi writes it. A time zone is a name such as `Europe/Berlin` or an offset such as `GMT+8:00`. Of Hudi 1.2.1 the keys of its common,
client and storage modules are known.
"""


def page() -> str:
    """The text of the page."""
    by_fate = {fate: [option for option in known_options().values() if option.fate is fate] for fate in Fate}
    parts = [HEAD.format(**{fate.value: len(found) for fate, found in by_fate.items()})]
    parts.append("\n".join(_acting(by_fate[Fate.ACTS])))
    parts.append("\n".join(_refused(by_fate[Fate.REFUSED])))
    parts.append("\n".join(_advice(by_fate[Fate.ADVICE])))
    parts.append("\n".join(_aliases(by_fate[Fate.ALIAS])))
    return "\n".join(parts)


def _acting(options: Iterable[KnownOption]) -> Iterator[str]:
    yield "## What acts\n\n| option | without it | values | proved by |\n|---|---|---|---|"
    for option in options:
        file, _, test = option.note.partition("::")
        yield f"| `{option.key}` | {_code(option.default)} | {_values(option.values)} | `{file.removeprefix('tests/')}` {test.removeprefix('test_').replace('_', ' ')} |"
    yield ""


def _refused(options: Iterable[KnownOption]) -> Iterator[str]:
    yield "## What is refused\n\n| option | taken | why, and what instead |\n|---|---|---|"
    for option in options:
        taken = dict.fromkeys(value for value in (option.default, *option.values.split("|")) if value)
        yield f"| `{option.key}` | {', '.join(map(_code, taken)) or '–'} | {option.note} |"
    yield ""


def _advice(options: Iterable[KnownOption]) -> Iterator[str]:
    yield "## What is advice\n"
    for why, found in groupby(
        sorted(options, key=lambda option: (option.note, option.key)), lambda option: option.note
    ):
        yield f"- {why}: {', '.join(f'`{option.key}`' for option in found)}"
    yield ""


def _aliases(options: Iterable[KnownOption]) -> Iterator[str]:
    yield "## Aliases\n\n| alias | option |\n|---|---|"
    for option in options:
        yield f"| `{option.key}` | `{option.note}` |"
    yield ""


def _values(kind: str) -> str:
    name, _, more = kind.partition(" ")
    if name in ("class", "classes", "list"):
        what = {"class": "a class: ", "classes": "one or more classes: ", "list": "one or more of "}[name]
        return what + ", ".join(map(_code, more.split("|")))
    if more:
        return f"{name} number from {more}" if name == "whole" else f"{name} from {more}"
    words = {
        "boolean": "true, false",
        "whole": "whole number",
        "number": "number",
        "fraction": "between 0 and 1",
        "regex": "regular expression",
        "zone": "time zone",
        "text": "text",
    }
    return words.get(kind) or ", ".join(map(_code, kind.split("|")))


def _code(text: str) -> str:
    return f"`{text}`" if text else "–"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
