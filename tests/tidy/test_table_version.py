"""What differs by table version stands in one module, so that another version is a second implementation and not a search."""

from __future__ import annotations

import re

from tests.tidy.sources import production_sources

LAYOUT = "spark_app/hudi_table/table/timeline/layout.py"
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
