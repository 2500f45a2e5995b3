"""`kubectl hudi` without a cluster: help, which program a verb belongs to, and what cannot be
asked."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hudi_operator.api.fields.sections import MetadataPartition
from hudi_operator.cli.kubectl.program import TYPES, VERBS, main
from hudi_operator.cli.kubectl.services import INDEXES
from hudi_table.model.service.services import ServiceType
from tests.support.distributions import PROJECTS, entry_points

ROOT = Path(__file__).resolve().parents[4]
FOLDER = ROOT / "operator" / "hudi_operator" / "cli" / "kubectl"
HEAVY = ("kubernetes", "pyarrow", "numpy", "kopf", "yaml", "obstore", "prometheus_client")


@pytest.mark.parametrize("arguments", [["--help"], ["status", "--help"], ["report", "--help"], ["nonsense-of-hudictl"]])
def test_help_and_usage_load_no_client_and_no_arrow(arguments: list[str]) -> None:
    code = (
        "import sys\nfrom hudi_operator.cli.kubectl.program import main\n"
        f"main({arguments!r})\nprint([name for name in {HEAVY!r} if name in sys.modules])"
    )
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True,
        env={"PYTHONPATH": f"{ROOT / 'spark_app'}:{ROOT / 'operator'}", "PATH": "/usr/bin"},
    )  # fmt: skip
    assert done.stdout.splitlines()[-1] == "[]"
    assert time.monotonic() - began < 5


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_a_verb_loads_a_client_and_neither_arrow_nor_the_operator(verb: str) -> None:
    code = (
        f"import sys\nimport hudi_operator.cli.kubectl.verb_{verb}\n"
        "print([name for name in ('pyarrow', 'numpy', 'kopf', 'obstore', 'prometheus_client') if name in sys.modules],"
        " sum(name.startswith('hudi_') for name in sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True,
        env={"PYTHONPATH": f"{ROOT / 'spark_app'}:{ROOT / 'operator'}", "PATH": "/usr/bin"},
    )  # fmt: skip
    heavy, _, ours = done.stdout.rstrip().rpartition(" ")
    assert heavy == "[]"
    # Who explains reads the spec of a resource; who lists resources takes what their status says.
    assert int(ours) <= (118 if verb in ("logs", "report", "why") else 45)


@pytest.mark.parametrize(
    "verb", sorted({"status", "sets", "timeline", "plan", "approve", "run", "lag", "why", "logs", "report"})
)
def test_every_verb_explains_its_arguments(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([verb, "--help"]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"usage: kubectl hudi {verb}")
    assert all(flag in out for flag in ("--namespace", "--context", "--kubeconfig"))
    assert "Exit codes: 0 good" in out


def test_the_help_of_a_verb_is_the_first_line_of_its_module() -> None:
    """`hudictl --help` takes it from there."""
    told = {
        name: (ast.get_docstring(ast.parse((FOLDER / f"verb_{name}.py").read_text())) or "").splitlines()[0]
        for name in VERBS
    }
    assert told == VERBS


def test_the_page_speaks_of_every_verb_and_every_option(capsys: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "docs" / "reference" / "kubectl-hudi.md").read_text()
    for verb in VERBS:
        assert f"`kubectl hudi {verb} " in page
        main([verb, "--help"])
        options = set(re.findall(r"--[a-z-]+", capsys.readouterr().out)) - {"--help", "--namespace", "--output"}
        short = {"--watch": "-w", "--all-namespaces": "-A", "--follow": "-f"}
        assert not {name for name in options if short.get(name, name) not in page}, verb


def test_every_type_of_service_can_be_asked_for() -> None:
    assert set(TYPES) == {kind.value for kind in ServiceType}
    assert {*INDEXES, MetadataPartition.FILES} == {partition.value for partition in MetadataPartition}


def test_hudictl_has_the_verbs_but_those_of_its_own() -> None:
    verbs = entry_points()["hudictl.verbs"]
    added = {name for name in VERBS if verbs.get(name) == f"hudi_operator.cli.kubectl.verb_{name}:main"}
    assert set(VERBS) - added == {"timeline"}
    assert PROJECTS["hudi-operator"]["scripts"]["kubectl-hudi"] == "hudi_operator.cli.kubectl.program:main"


@pytest.mark.parametrize(
    "arguments", [["status", "--nope"], ["plan"], ["run", "flights"], ["run", "flights", "Compact"], ["why"], ["logs"]]
)
def test_2_when_it_was_asked_wrongly(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "usage: kubectl hudi" in captured.err


def test_a_path_is_asked_of_hudictl_and_a_name_of_the_cluster(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["timeline", f"{tmp_path}/flights"]) == 1
    assert "TableNotFound" in capsys.readouterr().err
    assert main(["timeline", "flights", "--kubeconfig", str(tmp_path / "none")]) == 2
    assert "no cluster to ask" in capsys.readouterr().err
