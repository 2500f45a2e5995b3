"""What differs by table version stands behind one interface, so that another version is a second
implementation and not a search."""

from __future__ import annotations

import re

from tests.tidy.sources import production_sources

LAYOUT = "spark_app/hudi_table/table/timeline/layout.py"
LAYOUTS = "spark_app/hudi_table/model/table/layouts.py"
COMPARED = re.compile(
    r"""
    version\b[^\n]{0,20}?(
        ([=!]=|[<>]=?)\s*["']?[689]\b             # version >= 8, and the CEL tableVersion == 6
        | \bin\b\s*[({\[][^)}\]\n]*\b[689]\b     # version not in (None, 6)
    )
    | \b[689]["']?\s*([=!]=|[<>]=?)\s*[\w.]*version\b
    | version["']?\s*=\s*[({\[]?[689]\b(?=[)}\],\s689]*$)   # a constant, which others compare
    """,
    re.IGNORECASE | re.VERBOSE,
)
MAY_COMPARE = {
    "spark_app/hudi_table/write/checks/table_options.py": "what an option asks for: new tables have version 6",
}
ELSEWHERE = {
    # Where a timeline file lies, and what is encoded in it how.
    "timeline_path": re.compile(r'f"\{HOODIE\}/\{(?!FOLDER)|list_dir\(HOODIE\)'),
    "encode_commit, decode_commit": re.compile(r"CommitMetadata\.from_json|metadata\.to_json\("),
    "encode_record, decode_records": re.compile(r"\b(read|write)_container\("),
}


def test_the_place_and_the_encoding_of_a_timeline_file_are_asked_of_one_module():
    found = {
        f"{source.path}:{number}": f"ask {asked} of {LAYOUT}"
        for source in production_sources()
        if source.path != LAYOUT and "/codec/" not in source.path and source.path.startswith("spark_app/hudi_table/")
        for number, line in enumerate(source.text.splitlines(), 1)
        for asked, pattern in ELSEWHERE.items()
        if pattern.search(line)
    }
    assert found == {}


def test_no_module_but_one_compares_a_table_version():
    found = [
        f"{source.path}:{number}: {line.strip()}"
        for source in production_sources()
        if source.path != LAYOUTS and source.path not in MAY_COMPARE
        for number, line in enumerate(source.text.splitlines(), 1)
        if COMPARED.search(line)
    ]
    assert found == []


def test_a_comparison_of_a_version_would_be_found():
    for line in (
        "if config.version != 6:",
        'if version == "8":',
        "config.version in (8, 9)",
        "if table.config.version >= 8 and x:",
        "return kind == COPY_ON_WRITE and version in (None, 6)",
        "or t.table_version not in {8, 9}",
        'f"!has(self.tableVersion) || self.tableVersion == 6",',
        "if 8 <= config.version:",
        "VERSION = 6",
        "_LATER_VERSION = (8, 9)",
    ):
        assert COMPARED.search(line), line
    for line in (
        '"table version 6 has none"',
        "version_9 = later(table)",
        "bring_to(version=9, table=t)",
        "in version 6",
    ):
        assert not COMPARED.search(line), line


def test_layouts_are_told_apart_by_what_they_do():
    """Nothing asks which of the two it has: only their own module and what opens a table name
    them."""
    found = {
        source.path
        for source in production_sources()
        if source.path != LAYOUTS and re.search(r"\bLAYOUT_[12]\b", source.text)
    }
    assert found == {"spark_app/hudi_table/table/timeline/timeline.py"}
