"""The words of the pages: each term of the glossary is used, its banned synonyms are not, and sentences are short."""

from __future__ import annotations

import json
import re

from tests.tidy.sources import ROOT, project_files

GLOSSARY = "docs/glossary.md"
ROW = re.compile(r"^\| ([^|]+) \| ([^|]+) \| ?([^|]*) ?\|$", re.MULTILINE)
FENCED = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
WRITTEN_BY_PROGRAMS = (
    "docs/results/",
    "docs/reference/options.md",
    "docs/reference/commands.md",
    "docs/reference/fields.md",
    "docs/reference/modules.md",
)
"""Pages whose words come from elsewhere: figures of runs, and texts of the code."""
FOR_PEOPLE = (
    "README.md", "docs/index.md", "docs/architecture.md", GLOSSARY, "docs/tutorials/", "docs/how-to/", "docs/errors/",
    "docs/runbooks/", "spark_app/hudi_table/cli/pages/",
    *(f"docs/reference/{name}.md" for name in ("cli", "index", "kubectl-hudi", "metrics", "packages", "resources", "services")),
    *(f"docs/explanation/{name}.md" for name in (
        "archiving", "cleaning", "clustering", "compaction", "e2e", "foreign-writers", "index", "operator", "security",
    )),
)  # fmt: skip
"""Pages that are read from one end to the other; the rest are lists of facts and proofs."""
WORDS_MOST = 30
"""Words of a sentence on these pages. A colon or a semicolon ends one, too."""


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


def terms() -> dict[str, list[str]]:
    """Term → its banned synonyms."""
    rows = ROW.findall((ROOT / GLOSSARY).read_text("utf-8"))
    found = {term.strip(): [each.strip() for each in banned.split(",") if each.strip()] for term, _, banned in rows}
    return {term: banned for term, banned in found.items() if term not in ("Term", "---")}


def spoken(phrase: str) -> re.Pattern[str]:
    return re.compile(rf"\b{re.escape(phrase).replace(chr(92) + ' ', chr(92) + 's+')}\b", re.IGNORECASE)


def sentences(text: str) -> list[str]:
    """Sentences of paragraphs and items; rows of tables and headings are none."""
    kept = [line for line in text.splitlines() if not line.lstrip().startswith(("|", "#"))]
    parts = re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )", "\n".join(kept))
    return [one for part in parts for one in re.split(r"(?<=[.!?:;])(?:\*\*)?\s+", " ".join(part.split())) if one]


def test_each_term_is_used_and_defined_once() -> None:
    known = terms()
    assert len(known) > 30
    text = "\n".join(prose(page) for page in pages() if page != GLOSSARY)
    assert not [term for term in known if not re.search(rf"\b{term}(?:s|es|d)?\b", text, re.IGNORECASE)]
    assert len(ROW.findall((ROOT / GLOSSARY).read_text("utf-8"))) == len(known) + 3  # three tables, each with its head


def test_no_page_uses_a_banned_synonym() -> None:
    found = [
        f"{page}: “{phrase}”, say {term}"
        for page in pages()
        if page != GLOSSARY
        for text in [prose(page)]
        for term, banned in terms().items()
        for phrase in banned
        if spoken(phrase).search(text)
    ]
    assert not found, "\n".join(found)


def test_a_sentence_for_people_is_short() -> None:
    long = [
        f"{page}: {len(one.split())} words: {one[:100]}"
        for page in pages()
        if page.startswith(FOR_PEOPLE)
        for one in sentences(prose(page))
        if len(one.split()) > WORDS_MOST
    ]
    assert not long, "\n".join(long)


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
