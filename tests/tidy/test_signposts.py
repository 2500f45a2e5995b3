"""Signposts: questions of somebody new, and the file that answers each. A file name or one grep
leads there; if it moves away, say so here."""

from __future__ import annotations

import re

import pytest

from tests.tidy.sources import ROOT, production_sources

SEARCHED_MAX = 4
"""So many files a stranger opens after one search."""

# Question → what is searched for, in the names of files and in their text, and the file that answers.
SIGNPOSTS = {
    "Where is a marker written?": (r"marker_path\(", "hudi_table/table/commit/write_permit.py"),
    "Where is a commit published?": (r"/publish\.py", "hudi_table/table/commit/publish.py"),
    "Where are conflicts decided?": (r"/conflicts\.py", "hudi_table/table/commit/conflicts.py"),
    "What does a write beside a pending compaction do?": (r"the pending compaction of", "hudi_table/write/workload.py"),
    "Which bucket does a key go to?": (r"/bucket\.py", "hudi_table/index/hashing/bucket.py"),
    "What are the bytes of a bloom filter?": (r"/bloom/filters\.py", "hudi_table/codec/bloom/filters.py"),
    "Where is the heartbeat?": (r"signs of life of an attempt", "hudi_table/table/commit/beside/heartbeat.py"),
    "Which payload classes are known?": (r"payload classes", "hudi_table/model/table/merging.py"),
    "Where is the z-order?": (r"z-order", "hudi_table/codec/curves.py"),
    "How long is the backoff?": (r"backoff_first_seconds:", "hudi_operator/plan/schedule/runs.py"),
    "Where do small files get new rows?": (
        r"fill_small_files",
        "hudi_table/write/workload.py",
    ),
    "How is a metadata table bootstrapped?": (r"/bootstrap\.py", "hudi_table/metadata/bootstrap.py"),
    "What does an incremental query read?": (r"/incremental\.py", "hudi_table/read/incremental.py"),
    "How does a schema evolve?": (r"/schema_evolution\.py", "hudi_table/write/checks/schema_evolution.py"),
    "What is a file slice?": (r"class FileSlice\b", "hudi_table/table/view/file_groups.py"),
    "Where are the key generators?": (r"/keygen/columns\.py", "hudi_table/write/keygen/columns.py"),
    "Where do column statistics come from?": (r"/column_stats\.py", "hudi_table/codec/metadata/column_stats.py"),
    "What is in a SparkApplication?": (r"/spark_applications\.py", "hudi_operator/manifests/spark_applications.py"),
    "Who holds the lease?": (r"/lease\.py", "hudi_operator/kube/lease.py"),
    "What do the cleaning policies keep?": (r"/cleaning/policy\.py", "hudi_table/services/cleaning/policy.py"),
}


@pytest.mark.parametrize("question", SIGNPOSTS)
def test_a_file_name_or_one_search_leads_to_the_answer(question: str) -> None:
    searched, answer = SIGNPOSTS[question]
    sources = {source.path.partition("/")[2]: source.text for source in production_sources()}
    assert answer in sources, f"{answer} has moved away"
    pattern = re.compile(searched, re.IGNORECASE)
    found = [path for path, text in sources.items() if pattern.search(path) or pattern.search(text)]
    assert answer in found
    assert len(found) <= SEARCHED_MAX, f"too many to open: {found}"


def test_the_page_of_the_architecture_shows_every_question_with_its_file() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    said = dict(re.findall(r"^\| (.+\?) \| `(hudi_\S+\.py)` \|$", page, re.MULTILINE))
    assert said == {question: answer for question, (_, answer) in SIGNPOSTS.items()}
