"""The words of the pages and of the texts in the code: each term of the glossary is used, and Vale
finds nothing."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from scripts.render_reference import GLOSSARY_ROW, terms
from scripts.setup_vale import vale
from tests.tidy.sources import ROOT, project_files
from tests.tidy.texts import TEXTS

GLOSSARY = "docs/glossary.md"
FENCED = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
WRITTEN_BY_PROGRAMS = (
    "docs/results/",
    "docs/reference/options.md",
    "docs/reference/commands.md",
    "docs/reference/fields.md",
    "docs/reference/modules.md",
)
"""Pages whose words come from elsewhere: figures of runs, and texts of the code."""


def prose(page: str) -> str:
    """The text of a page without code, and of links their words alone."""
    text = FENCED.sub("", (ROOT / page).read_text("utf-8"))
    return re.sub(r"\]\([^)\s]*\)", "]", re.sub(r"`[^`\n]*`", "`code`", text))


def pages() -> list[str]:
    """Every page that people write: README, docs, the pages of errors."""
    written = [name for name in project_files() if name.endswith(".md")]
    ours = ("docs/", "spark_app/hudi_table/cli/pages/")
    return [
        name
        for name in written
        if name == "README.md" or (name.startswith(ours) and not name.startswith(WRITTEN_BY_PROGRAMS))
    ]


def test_each_term_is_used_and_defined_once() -> None:
    known = terms()
    assert len(known) > 30
    text = "\n".join(prose(page) for page in pages() if page != GLOSSARY)
    assert not [term for term in known if not re.search(rf"\b{term}(?:s|es|d)?\b", text, re.IGNORECASE)]
    assert (
        len(GLOSSARY_ROW.findall((ROOT / GLOSSARY).read_text("utf-8"))) == len(known) + 3
    )  # three tables, each with its head


def test_vale_finds_nothing_on_the_pages_and_finds_what_its_rules_name(tmp_path: Path) -> None:
    if not vale().exists():
        pytest.skip("Vale is not built: type make setup-vale")
    assert not found_by_vale(ROOT)
    sentence = " ".join(["some", "words"] * 16)
    page = tmp_path / "README.md"
    page.write_text(f"# Utilize the journal\n\n{sentence}.\n\n- It is is an item.\n")
    shutil.copytree(ROOT / "tests/prose/Hudi", tmp_path / "tests/prose/Hudi")
    shutil.copy(ROOT / ".vale.ini", tmp_path)
    rules = {line.split(":")[3] for line in found_by_vale(tmp_path)}
    assert rules == {"Hudi.Plain", "Hudi.Terms", "Hudi.Sentences", "Hudi.Repetition"}


@pytest.mark.parametrize("kind", sorted(TEXTS))
def test_vale_finds_nothing_in_texts_of_the_code_that_users_read(kind: str, tmp_path: Path) -> None:
    if not vale().exists():
        pytest.skip("Vale is not built: type make setup-vale")
    texts = [text for text in TEXTS[kind]() if text]
    assert len(texts) > 80
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / f"{kind}.md").write_text("\n\n".join([*texts, "A journal of the lead."]))
    shutil.copytree(ROOT / "tests/prose/Hudi", tmp_path / "tests/prose/Hudi")
    shutil.copy(ROOT / ".vale.ini", tmp_path)
    *found, journal, lead = found_by_vale(tmp_path)
    assert "journal" in journal
    assert "lead" in lead
    assert not found, "a word of docs/glossary.md's last column"


def found_by_vale(folder: Path) -> list[str]:
    """What Vale says of the pages below a folder, a line each."""
    names = [name for name in ("README.md", "docs", "spark_app/hudi_table/cli/pages") if (folder / name).exists()]
    done = subprocess.run([vale(), "--output=line", *names], cwd=folder, capture_output=True, text=True, check=False)
    assert not done.stderr
    return done.stdout.splitlines()


def test_pages_made_of_the_code_say_what_the_code_says() -> None:
    from scripts import render_pictures, render_reference

    for name, text in render_reference.PAGES.items():
        assert (render_reference.DOCS / name).read_text("utf-8") == text(), "type make reference"
    made = {f"{name}.svg": picture.svg() for name, picture in render_pictures.PICTURES.items()}
    assert {path.name: path.read_text("utf-8") for path in render_pictures.FOLDER.iterdir()} == made, "make pictures"


def test_the_readme_is_short_and_its_race_is_that_of_the_results() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    assert readme.count("\n") <= 120
    race = json.loads((ROOT / "docs/results/bench.json").read_text())["race"]
    walls = {name: race["contenders"][name]["upsert"]["wall"] for name in ("hudi", "spark", "local")}
    said = re.search(r"takes\s+([\d.]+) s on Spark and ([\d.]+) s without it: (\d+) and (\d+) times less", readme)
    assert said
    assert f"{race['updated']:,} rows into a table of {race['rows']:,} rows" in readme
    assert [float(said[1]), float(said[2])] == [round(walls["spark"], 1), round(walls["local"], 1)]
    assert [int(said[3]), int(said[4])] == [int(walls["hudi"] / walls[name]) for name in ("spark", "local")]
