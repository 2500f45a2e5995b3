"""Writes the pages of the reference that follow from the code: `python -m scripts.render_reference`
(`make reference`). A test compares.

`docs/reference/commands.md` comes from the parsers of `hudictl`, `docs/reference/fields.md` from
the definitions in `crds/`. The packages in `docs/architecture.md` and `docs/reference/modules.md`
come from the docstrings of packages and modules.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from hudi_table.cli.program import command_parsers
from hudi_table.model.table.readers import FACTS, Fact, Feature

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
SOURCES = (
    "spark_app/hudi_table",
    "spark_app/hudi_spark",
    "spark_app/pyspark_hudi",
    "spark_app/pyspark_org_apache_hudi",
    "operator/hudi_operator",
)

COMMANDS = """# Commands

Made by `make reference` from the parsers of `hudictl`. [hudictl](cli.md) says how its verbs are used; verbs about the
resources of a cluster are those of [kubectl hudi](kubectl-hudi.md).
"""
FIELDS = """# Fields

Made by `make reference` from the definitions in `crds/`. [Resources](resources.md) and [services](services.md) say how the fields
are used. A field is shown by its path; `[]` is each item of a list, and `{}` each value of a map.
"""


def commands() -> str:
    """The page of every verb with its arguments."""
    parts = [COMMANDS]
    for name, parser in command_parsers().items():
        arguments = [action for action in parser._actions if not isinstance(action, argparse._HelpAction)]
        parts.append(f"## hudictl {name}\n\n{parser.description}\n")
        parts.append("\n".join(["| argument | what it says |", "|---|---|", *map(_argument, arguments), ""]))
    return "\n".join(parts)


def _argument(action: argparse.Action) -> str:
    value = action.metavar or ("|".join(map(str, action.choices)) if action.choices else action.dest.upper())
    if not action.option_strings:
        shown = f"`{value}`" if action.required else f"`[{value}]`"
    else:
        value = "" if action.nargs == 0 else f" {value}"
        shown = ", ".join(f"`{flag}{value}`" for flag in action.option_strings)
    return f"| {_cell(shown)} | {_cell((action.help or '').replace('%%', '%'))} |"


def fields() -> str:
    """The page of every field of all resources."""
    parts = [FIELDS]
    for path in sorted((ROOT / "crds").glob("*.yaml")):
        definition = yaml.safe_load(path.read_text())["spec"]
        schema = definition["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
        for part in ("spec", "status"):
            parts.append(f"## {definition['names']['kind']} {part}\n")
            rows = [f"| `{name}` | {_type(each)} | {_cell(_says(each))} |" for name, each in _below(schema[part], "")]
            parts.append("\n".join(["| field | type | what it says |", "|---|---|---|", *rows, ""]))
    return "\n".join(parts)


def _below(schema: dict[str, Any], path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """(path, schema) of each field under a schema, a field before those within it."""
    for name, each in schema.get("properties", {}).items():
        inner = f"{path}{name}"
        yield inner, each
        # What a set's template holds is said of HudiTable spec.
        if inner != "template.spec":
            yield from _inside(each, inner)


def _inside(schema: dict[str, Any], path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    yield from _below(schema, f"{path}.")
    if "items" in schema:
        yield from _inside(schema["items"], f"{path}[]")
    if isinstance(schema.get("additionalProperties"), dict):
        yield from _inside(schema["additionalProperties"], f"{path}.{{}}")


def _type(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        return _cell(", ".join(f"`{value}`" for value in schema["enum"]))
    if schema.get("x-kubernetes-int-or-string"):
        return "integer or string"
    if "items" in schema:
        return f"list of {_type(schema['items'])}"
    return str(schema.get("type", "any"))


def _says(schema: dict[str, Any]) -> str:
    said = [schema.get("description", "").rstrip(".")]
    said += [f"default `{_value(schema['default'])}`"] if "default" in schema else []
    said += [f"{word} {schema[key]}" for key, word in (("minimum", "from"), ("maximum", "up to")) if key in schema]
    return "; ".join(part for part in said if part)


def _value(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


READERS = """# Who reads what

Made by `make reference` from the facts in `hudi_table/model/table/readers.py`. A version stands for all of its line: `0.15` is 0.15.0, too. Of several
facts that of the nearest version counts. What stands in no row is not known: an engine, a version, or a feature of one; nor is a row that says `unknown`.

A `HudiTable` names its readers in [`spec.readers`](resources.md#readers), Python and `hudictl` in
[an upgrade](../how-to/table-versions.md#who-reads-it). What one of them cannot read is refused by its name.

| engine | version | feature | reads it | to be known | source |
|---|---|---|---|---|---|
"""


def readers() -> str:
    """The page of who reads what."""
    order = list(Feature)
    rows = sorted(
        ((fact, feature) for fact in FACTS for feature in fact.features),
        key=lambda row: (row[0].engine.lower(), row[0].version, order.index(row[1])),
    )
    return READERS + "".join(map(_fact, rows))


def _fact(row: tuple[Fact, Feature]) -> str:
    fact, feature = row
    source = (
        fact.source if fact.source.startswith("https:") else f"../../{fact.source}".replace("../../docs/reference/", "")
    )
    name = fact.source.rpartition("/")[2]
    return f"| {fact.engine} | {fact.version} | {feature} | {fact.reads} | {fact.why} | [{name}]({source}) |\n"


MODULES = """# Modules

Made by `make reference` from the docstrings. [Architecture](../architecture.md) shows how the packages hang together.
"""
MARKED = "<!-- {0}, by make reference -->", "<!-- end of {0} -->"


def modules() -> str:
    """The page of every module, package by package."""
    parts = [MODULES]
    for package in packages():
        # What is a link in the docstring's own folder leads nowhere from here, so texts stay texts.
        rows = [
            f"| `{path.name}` | {_cell(_docstring(path).splitlines()[0])} |"
            for path in sorted(package.glob("*.py"))
            if path.name != "__init__.py"
        ]
        lines = [_paragraphs(package / "__init__.py"), "", "| module | what it is |", "|---|---|", *rows, ""]
        parts.append("\n".join([f"## {_dotted(package)}", "", *lines]))
    return "\n".join(parts)


def architecture() -> str:
    """`docs/architecture.md` with its layers and its table of packages made anew."""
    page = (DOCS / "architecture.md").read_text("utf-8")
    rows = [f"| `{_dotted(each)}` | {_first(each)} | {_begin(each)} |" for each in packages()]
    table = "\n".join(["| package | what it is | begin with |", "|---|---|---|", *rows])
    return _with(_with(page, "layers", "\n".join(_layers())), "packages", table)


def _with(page: str, name: str, text: str) -> str:
    """A page with another text between the marks of a name."""
    begin, end = (mark.format(name) for mark in MARKED)
    before, _, rest = page.partition(begin)
    return f"{before}{begin}\n{text}\n{end}{rest.partition(end)[2]}"


def _layers() -> Iterator[str]:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    yield "| in | layers |\n|---|---|"
    for each in contracts:
        if each["type"] == "layers":
            layers = [
                re.sub(r"\w+", lambda name: f"`{name[0]}`", re.sub(r"[()]", "", layer)) for layer in each["layers"]
            ]
            yield f"| `{each['containers'][0]}` | {_cell(' → '.join(layers))} |"


def packages() -> list[Path]:
    """The folders of all packages, each after the one it lies in."""
    return [path.parent for source in SOURCES for path in sorted((ROOT / source).rglob("__init__.py"))]


def _dotted(package: Path) -> str:
    return ".".join(package.relative_to(ROOT).parts[1:])


def _docstring(path: Path) -> str:
    return ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""


def _paragraphs(path: Path) -> str:
    return _docstring(path).replace("|", "\\|")


def _first(package: Path) -> str:
    return _cell(_docstring(package / "__init__.py").split("\n\n")[0]).rstrip(".")


def _begin(package: Path) -> str:
    """The first module that the docstring says to begin with."""
    found = re.search(r"\bBegin with (`[\w/.]+`)", _docstring(package / "__init__.py"))
    return found[1] if found else ""


GLOSSARY_ROW = re.compile(r"^\| ([^|]+) \| ([^|]+) \| ?([^|]*) ?\|$", re.MULTILINE)


def terms() -> dict[str, list[str]]:
    """Term of the glossary → the words that stand for it nowhere."""
    rows = GLOSSARY_ROW.findall((DOCS / "glossary.md").read_text("utf-8"))
    found = {term.strip(): [each.strip() for each in banned.split(",") if each.strip()] for term, _, banned in rows}
    return {term: banned for term, banned in found.items() if term not in ("Term", "---")}


def vale_terms() -> str:
    """The rule by which Vale holds the glossary."""
    rule = {
        "extends": "substitution",
        "message": "Say '%s' instead of '%s', as docs/glossary.md does.",
        "level": "error",
        "ignorecase": True,
        "swap": {phrase: term for term, banned in terms().items() for phrase in banned},
    }
    return "# Made by `make reference` from docs/glossary.md.\n" + yaml.safe_dump(rule, sort_keys=False, width=200)


PAGES = {
    "architecture.md": architecture,
    "reference/commands.md": commands,
    "reference/fields.md": fields,
    "reference/modules.md": modules,
    "reference/readers.md": readers,
    "../tests/prose/Hudi/Terms.yml": vale_terms,
}

if __name__ == "__main__":
    for page, text in PAGES.items():
        (DOCS / page).write_text(text(), encoding="utf-8")
