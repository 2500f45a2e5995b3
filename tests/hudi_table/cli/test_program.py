"""The program itself: help, exit codes, verbs of other packages, what users do wrong, pipes,
secrets."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import uuid
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_table import create_table, write_hudi
from hudi_table.cli import main
from tests.support.s3 import s3_replies

ROOT = Path(__file__).parents[3]
ROWS = pa.table({"id": [f"k{i}" for i in range(50)], "n": range(50)})


@pytest.fixture
def base(tmp_path: Path) -> Path:
    table = create_table(str(tmp_path / "flights"), ROWS.schema, record_key="id", version=6)
    write_hudi(table, ROWS)
    return tmp_path / "flights"


def hudictl(*arguments: str, path: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    """`python -m hudi_table` in a process of its own."""
    found = os.pathsep.join([str(ROOT / "spark_app"), *([str(path)] if path else [])])
    return subprocess.run(
        [sys.executable, "-m", "hudi_table", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": found, **environment},
    )


def test_help_loads_neither_pyarrow_nor_numpy() -> None:
    code = (
        "import sys\nfrom hudi_table.cli import main\ncode = main(['--help'])\n"
        "print([n for n in ('pyarrow', 'numpy', 'pandas', 'yaml', 'obstore', 'kopf', 'pyspark') if n in sys.modules], code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT / "spark_app"
    )
    assert done.stdout.splitlines()[-1] == "[] 0"
    assert (
        "Exit codes: 0 good, 1 failed, 2 usage, 3 findings, 4 conflict or lock, 5 plan not empty, 6 nothing came in"
        in done.stdout
    )


@pytest.mark.parametrize("verb", ["info", "timeline", "files"])
def test_a_question_about_a_table_loads_neither_pandas_nor_datasets(verb: str, base: Path) -> None:
    code = (
        f"import sys\nfrom hudi_table.cli import main\ncode = main([{verb!r}, {str(base)!r}, '-o', 'json'])\n"
        "print([n for n in ('pandas', 'pyarrow.dataset', 'pyspark') if n in sys.modules], code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT / "spark_app"
    )
    assert done.stdout.splitlines()[-1] == "[] 0"


@pytest.mark.parametrize("verb", ["info", "timeline", "files", "read", "query", "explain"])
def test_every_verb_explains_its_arguments(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([verb, "--help"]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"usage: hudictl {verb}")
    assert ("BASE" in out) is (verb != "explain")


class TestExitCodes:
    """0 good, 1 failed, 2 usage, 3 findings, 4 conflict or lock, 5 plan not empty."""

    def test_0_when_all_is_good(self, base: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["info", str(base), "--fail-on", "pending"]) == 0
        captured = capsys.readouterr()
        assert "flights" in captured.out
        assert captured.err == ""

    def test_1_when_it_failed(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["info", str(tmp_path / "nothing")]) == 1
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err.startswith("error: TableNotFound: there is no Hudi table at ")
        assert captured.err.endswith("\nhudictl explain TableNotFound says more\n")

    @pytest.mark.parametrize(("word", "verb"), [("history", "timeline"), ("inof", "info"), ("compat", "compact")])
    def test_2_and_the_nearest_verb_for_a_word_that_is_none(
        self, word: str, verb: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main([word, "lake/flights"]) == 2
        said = f"hudictl has no verb '{word}', hudictl --help lists them: did you mean {verb}?"
        assert said in capsys.readouterr().err

    @pytest.mark.parametrize(
        "arguments",
        [
            ["nope"],
            ["info"],
            ["info", "BASE", "-o", "xml"],
            ["info", "BASE", "--storage", "secret"],
            ["read", "BASE", "--limit", "-1"],
            ["read", "BASE", "--limit", "many"],
            ["read", "BASE", "--filter", "n >"],
            ["read", "BASE", "--columns", "nope"],
            ["read", "BASE", "--as-of", "yesterday"],
            ["read", "BASE", "--query", "changes"],
            ["read", "BASE", "--images", "data_before"],
            ["read", "BASE", "--query", "cdc", "--filter", "n > 1"],
            ["read", "BASE", "--format", "parquet"],
            ["explain", "Nope"],
        ],
    )
    def test_2_when_it_was_asked_wrongly(
        self, arguments: list[str], base: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main([str(base) if a == "BASE" else a for a in arguments]) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert "Traceback" not in captured.err

    def test_3_when_there_are_findings(self, base: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (base / ".hoodie" / "20200101000000000.commit.requested").touch()
        assert main(["info", str(base)]) == 0
        assert main(["info", str(base), "--fail-on", "pending"]) == 3
        assert (
            "1 instant is pending: the next writer finishes or rolls back those whose writer shows no sign of life for 900 s"
            in (capsys.readouterr().err)
        )

    @pytest.mark.parametrize(
        ("code", "body"),
        [
            (4, "from hudi_table.errors import WriteConflictError\n    raise WriteConflictError('lost to another')"),
            (
                4,
                "from hudi_table.errors import CommitStateUnknownError\n    raise CommitStateUnknownError('who knows')",
            ),
            (5, "from hudi_table.cli import exits\n    return exits.PLAN_NOT_EMPTY"),
        ],
    )
    def test_4_and_5_from_the_verbs_of_other_packages(self, code: int, body: str, tmp_path: Path) -> None:
        add_verb(tmp_path, f"def run(arguments):\n    {body}\n")
        done = hudictl("plan", "x.yaml", path=tmp_path)
        assert done.returncode == code
        assert "Traceback" not in done.stderr


def add_verb(folder: Path, source: str) -> None:
    """An installed package that adds the verb `plan`."""
    (folder / "extra_verbs.py").write_text(f'"""compares a manifest with a table\n\nMore."""\n\n{source}')
    info = folder / "extra-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: extra\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[hudictl.verbs]\nplan = extra_verbs:run\n")


def test_a_verb_of_another_package_is_listed_without_being_loaded(tmp_path: Path) -> None:
    add_verb(tmp_path, "raise RuntimeError('loaded')")
    done = hudictl("--help", path=tmp_path)
    assert done.returncode == 0
    assert re.search(r"^ +plan +compares a manifest with a table$", done.stdout, re.MULTILINE)


def test_a_verb_of_another_package_gets_its_arguments(tmp_path: Path) -> None:
    add_verb(tmp_path, "def run(arguments):\n    print(arguments)\n    return 0\n")
    assert hudictl("plan", "--dry-run", "x.yaml", path=tmp_path).stdout == "['--dry-run', 'x.yaml']\n"


def test_a_verb_whose_package_is_broken_does_not_break_help(tmp_path: Path) -> None:
    add_verb(tmp_path, "")
    (tmp_path / "extra_verbs.py").unlink()
    done = hudictl("--help", path=tmp_path)
    assert done.returncode == 0
    assert "plan" in done.stdout


def test_a_bug_ends_in_one_line_and_in_a_traceback_for_who_asks(tmp_path: Path) -> None:
    add_verb(tmp_path, "def run(arguments):\n    return {}['partition']\n")
    done = hudictl("plan", path=tmp_path)
    assert (done.returncode, done.stderr.splitlines()[0]) == (1, "error: Invariant: KeyError: 'partition'")
    assert "Traceback" not in done.stderr
    assert "Traceback" in hudictl("plan", path=tmp_path, HUDICTL_TRACEBACK="1").stderr


def test_output_into_a_closed_pipe_is_no_error(base: Path) -> None:
    command = f"{sys.executable} -m hudi_table read {base} --format jsonl | head -n 1; echo ${{PIPESTATUS[0]}}"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "spark_app")}
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True, env=environment)
    line, code = done.stdout.splitlines()
    assert line.startswith('{"id":')
    assert (code, done.stderr) == ("0", "")


def test_nothing_is_styled_in_a_pipe_and_data_alone_goes_to_stdout(base: Path) -> None:
    done = hudictl("timeline", str(base), TERM="xterm")
    assert "\x1b" not in done.stdout
    assert done.stdout.startswith("INSTANT ")
    assert done.stderr == ""


def test_secrets_are_never_printed(capsys: pytest.CaptureFixture[str]) -> None:
    secret = f"secret-{uuid.uuid4().hex}"
    with s3_replies((403, "SignatureDoesNotMatch")) as store:
        options = ["--storage", "access_key_id=me", "--storage", f"secret_access_key={secret}"]
        options += ["--storage", f"endpoint={store.endpoint}", "--storage", "region=us-east-1"]
        assert main(["info", "s3://lake/flights", *options]) == 1
        captured = capsys.readouterr()
        assert captured.err.startswith("error: AccessDenied: ")
        assert main(["info", "s3://lake/flights", "--storage", secret]) == 2
        assert main(["info", "s3://lake/flights", "--storage", f"={secret}"]) == 2
        captured_again = capsys.readouterr()
    for text in (*captured, *captured_again):
        assert secret not in text


def test_storage_options_come_from_the_environment_too(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with s3_replies((403, "AccessDenied")) as store:
        monkeypatch.setenv("AWS_ENDPOINT_URL", store.endpoint)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "me")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "mine")
        assert main(["info", "s3://lake/flights"]) == 1
        assert store.requests
    assert "error: AccessDenied: " in capsys.readouterr().err
