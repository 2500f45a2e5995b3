"""No block of README and docs is left to itself: each is run, or held against what is there, or
stands here with a reason."""

from __future__ import annotations

import tomllib

from tests.pages.test_stories import ON_KAFKA, ON_SPARK, SPARK_BLOCKS, told
from tests.support.distributions import entry_points
from tests.support.page_blocks import Block, every_block

NOT_RUN = {
    "docs/explanation/e2e.md#2": "packages of Debian, installed before the suite",
    "docs/explanation/simulator.md#1": "seeds that tests/simulation plays, a hundred of them at once",
    "docs/results/acceptance-clustering.md#1": "figures that `make acceptance-clustering` wrote",
}
PROGRAMS = ("kubectl ", "helm ", "make ", "hudictl local ", "python -m hudi_operator run ", "curl ")
"""Commands that test_cluster_blocks.py looks at."""


def looked_at(block: Block) -> bool:
    """Whether a test of this folder, or of tests/hudi_spark, takes the block."""
    if block.page in (*ON_SPARK, *ON_KAFKA) or str(block) in SPARK_BLOCKS or told(block) or block.kind == "yaml":
        return True
    return any(command.startswith(PROGRAMS) for command in block.commands()) or block.kind == "toml"


def test_every_block_is_taken_by_a_test() -> None:
    left = {str(block) for block in every_block() if not looked_at(block)}
    assert left <= set(NOT_RUN), "run it in tests/pages, or say in NOT_RUN why it cannot be"
    assert set(NOT_RUN) <= {str(block) for block in every_block()}


def test_entry_points_that_a_page_shows_are_ours_or_its_own() -> None:
    shown = [tomllib.loads(block.text) for block in every_block() if block.kind == "toml"]
    groups = entry_points()
    assert len(shown) == 3
    for each in shown:
        ((group, entries),) = each["project"]["entry-points"].items()
        for name, value in entries.items():
            # An index and a source of one's own are classes of their pages, which run.
            assert group in ("hudi_table.indexes", "hudi_table.sources") or groups[group][name].startswith(value)
