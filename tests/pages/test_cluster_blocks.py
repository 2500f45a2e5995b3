"""The blocks that speak to a cluster, held against what is there: definitions, charts, manifests,
folders, verbs and columns.

Their steps are run by e2e/test_1_tour.py (the lessons on a cluster) and tests/charts (the
installation).
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from hudi_operator.api.parsing import parse
from hudi_operator.api.resources import SPECS
from hudi_operator.cli import local, run
from hudi_operator.cli.kubectl import program
from hudi_operator.cli.kubectl.verb_status import columns
from hudi_operator.manifests.policies import read_policies
from tests.support.distributions import extras
from tests.support.page_blocks import Block, every_block
from tests.tidy.sources import ROOT

BUILTIN = {
    "secret", "service", "deployment", "job", "jobs", "configmap", "pods", "lease",
    "role", "rolebinding", "clusterrole", "clusterrolebinding",
}  # fmt: skip
VERBS = {"apply", "create", "get", "wait", "port-forward", "annotate", "label", "delete", "describe", "logs", "hudi"}
DEFINITIONS = [yaml.safe_load(path.read_text()) for path in sorted((ROOT / "crds").glob("*.yaml"))]


def called(program_name: str) -> list[tuple[Block, list[str]]]:
    """(block, words) of every call of a program, also behind a pipe; what the shell does with it is
    left out."""
    parts = [(block, part) for block in every_block() for each in block.commands() for part in each.split(" | ")]
    return [
        (block, shlex.split(part.removesuffix(" &"), comments=True)[1:])
        for block, part in parts
        if part.startswith(f"{program_name} ")
    ]


def kinds() -> dict[str, dict[str, Any]]:
    """Every word by which kubectl knows a definition of ours."""
    names = [(each["spec"]["names"], each) for each in DEFINITIONS]
    return {
        word: each
        for known, each in names
        for word in (known["plural"], known["singular"], *known.get("shortNames", ()))
    }


def flag(words: list[str], *names: str) -> list[str]:
    """The values of an option, however it is written."""
    apart = [after for word, after in pairwise(words) if word in names]
    return apart + [word.partition("=")[2] for word in words if word.partition("=")[0] in names and "=" in word]


CALLS = called("kubectl")


@pytest.mark.parametrize(("block", "words"), CALLS, ids=[f"{block}-{at}" for at, (block, _) in enumerate(CALLS)])
def test_kubectl_finds_what_it_is_told(block: Block, words: list[str]) -> None:
    assert words[0] in VERBS
    if words[0] == "hudi":
        assert program._parser().parse_args(words[1:]).verb == words[1]
        return
    for path in flag(words, "-f", "-k"):
        assert path == "-" or (ROOT / path).exists(), f"{block}: {path}"
    if "-k" in words:
        assert (ROOT / flag(words, "-k")[0] / "kustomization.yaml").exists()
    if words[0] in ("get", "annotate", "delete", "describe", "create"):
        assert {*words[1].split(",")} <= {*kinds(), *BUILTIN}, block
    if words[0] in ("annotate", "delete"):
        manifests = [yaml.safe_load_all((ROOT / path).read_text()) for path in applied(block)]
        names = {(each["kind"].lower(), each["metadata"]["name"]) for documents in manifests for each in documents}
        assert (words[1], words[2]) in names


def applied(block: Block) -> list[str]:
    """The files that a page has applied; those of the lesson about a cluster, too, where the next
    lesson goes on."""
    pages = {block.page, *({"docs/tutorials/cluster.md"} if block.page == "docs/tutorials/upkeep.md" else ())}
    return [path for other, words in CALLS if other.page in pages for path in flag(words, "-f") if path != "-"]


@cache
def values_of(chart: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The chart's values and what they may be."""
    return tuple(yaml.safe_load((ROOT / chart / name).read_text()) for name in ("values.yaml", "values.schema.json"))


@pytest.mark.parametrize(("block", "words"), called("helm"), ids=str)
def test_helm_is_given_charts_and_values_that_are_there(block: Block, words: list[str]) -> None:
    assert words[0] in ("install", "upgrade", "test", "history", "rollback")
    if words[0] not in ("install", "upgrade"):
        return
    assert (ROOT / words[2] / "Chart.yaml").exists()
    values, schema = values_of(words[2])
    values = yaml.safe_load(yaml.safe_dump(values))
    for text in flag(words, "--set"):
        for one in re.split(r",(?![^{]*\})", text):
            path, _, value = one.partition("=")
            *outer, last = path.split(".")
            place = values
            for name in outer:
                place = place[name]
            assert last in place, f"{block}: {path} is no value of {words[2]}"
            place[last] = value[1:-1].split(",") if value.startswith("{") else value
    jsonschema.validate(values, schema)


def test_what_kubectl_get_prints_are_the_columns_of_the_definitions() -> None:
    shown = 0
    for block in every_block():
        for command, lines in zip(block.commands(), block.printed(), strict=False):
            words = shlex.split(command)
            if words[:2] == ["kubectl", "get"]:
                columns = kinds()[words[2]]["spec"]["versions"][0]["additionalPrinterColumns"]
                wanted = [each["name"].upper() for each in columns if not each.get("priority")]
                assert re.split(r" {2,}", lines[0].strip()) == ["NAME", *wanted], block
                shown += 1
            if words[:2] == ["kubectl", "describe"]:
                fields = {line.strip().partition(":")[0] for line in lines if re.match(r"^ +[A-Z][A-Za-z ]*:", line)}
                known = kinds()[words[2]]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]
                assert fields <= described(known), block
                shown += 1
    assert shown == 3


def described(schema: dict[str, Any]) -> set[str]:
    """The names of a schema's fields as `kubectl describe` writes them."""
    inner = [*schema.get("properties", {}).items()]
    own = {re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).title() for name, _ in inner}
    below = [each for _, each in inner] + ([schema["items"]] if "items" in schema else [])
    return own.union(*(described(each) for each in below))


def test_what_the_plugin_and_the_probe_print_is_what_they_print_now() -> None:
    pages = {str(block): block for block in every_block()}
    status = pages["docs/reference/kubectl-hudi.md#1"].printed()[0][0]
    assert re.split(r" {2,}", status.strip()) == [
        each.title.upper() for each in columns(everywhere=False) if not each.wide
    ]
    health = (ROOT / "operator/hudi_operator/metrics/health.py").read_text()
    for line in pages["docs/reference/metrics.md#1"].printed()[0][:-1]:
        name, said = re.fullmatch(r"\[\+\] (\w+): (.*)", line).groups()  # type: ignore[union-attr] # an odd line fails here
        assert f'"{name}"' in health
        assert said.split(" ")[0].isdigit() or said.split(" ")[0] in health


PARSERS: dict[str, Callable[[], argparse.ArgumentParser]] = {
    "hudictl local": local._parser,
    "python -m hudi_operator run": run._parser,
}


@pytest.mark.parametrize("start", PARSERS)
def test_long_running_programs_take_the_options_that_they_are_given(start: str) -> None:
    """`make demo` and tests/hudi_operator/cli run them."""
    found = 0
    for block in every_block():
        for command in block.commands():
            if command.startswith(start):
                parsed = PARSERS[start]().parse_args(shlex.split(command, comments=True)[len(start.split()) :])
                files = [path for path in getattr(parsed, "files", ()) if path.parts[0] == "examples"]
                assert all((ROOT / path).exists() for path in files), block
                found += 1
    assert found


def test_commands_of_the_checkout_name_what_is_in_it() -> None:
    targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    made = called("make")
    asked = {word for _, words in made for word in words}
    assert asked
    assert asked <= targets
    for _, words in called(".venv/bin/python"):
        assert (ROOT / words[0]).exists()
    for _, words in called("pip"):
        for word in words[1:]:
            path, _, extra = word.removesuffix("]").partition("[")
            assert (ROOT / path / "pyproject.toml").exists()
            assert not extra or extra in extras(Path(path).name)
    assert (ROOT / "charts/hudi-operator/files/argocd-health.lua").exists()


@pytest.mark.parametrize("block", [block for block in every_block() if block.kind == "yaml"], ids=str)
def test_manifests_are_taken_by_the_definitions(block: Block) -> None:
    for document in yaml.safe_load_all(block.text):
        whole = document.get("kind") in SPECS
        for part in ("spec", "status"):
            if part in document:
                kind = document["kind"] if whole else "TableService"  # the fragments of docs/reference/services.md
                if part == "spec":
                    _, errors = parse(SPECS[kind], document[part], part)
                    assert not errors, block
                definition = next(each for each in DEFINITIONS if each["spec"]["names"]["kind"] == kind)
                schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"][part]
                jsonschema.validate(document[part], schema)
                assert not unknown(document[part], schema), block
        if not whole and "jobs" in document:
            jsonschema.validate(document, values_of("charts/hudi-operator")[1])
            read_policies(json.dumps(document["jobs"]))
        if not whole and "resources" in document:
            (base,) = document["resources"]
            assert (ROOT / base.partition("…/")[2] / "kustomization.yaml").exists()


def unknown(value: Any, schema: dict[str, Any]) -> list[str]:
    """Fields that an API server would drop."""
    if isinstance(value, list):
        return [name for each in value for name in unknown(each, schema.get("items", {}))]
    if not isinstance(value, dict) or "properties" not in schema:
        return []
    strays = [name for name in value if name not in schema["properties"]]
    return strays + [
        name for key in value if key not in strays for name in unknown(value[key], schema["properties"][key])
    ]
