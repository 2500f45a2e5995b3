"""Random turns of two writers on one table, ours and a release of Hudi, agree with a dictionary.

Matrix, drawn from a seed: {0.15.0 on version 6; 1.0.2 on 8; 1.1.1 and 1.2.0 on 8 and 9} ×
{copy-on-write, merge-on-read} × {bucket, consistent hashing, simple, bloom, record index, record
index by partition} × {flat, partitioned, hive style} × {with the metadata table, without} × {by
event time, by commit time} × {made by us, by Hudi}; then twelve steps, each by one of the two:
writes, compaction and clustering or their plans alone, clean, rollback, savepoint, restore,
archive. Of the rows of an upsert some are late and some are flagged deletes (`disorder.py`). We and
hudi-rs read after each step, Hudi at the end and at two random places. By a record index both find
keys, in the metadata table that both keep.

`make test` takes three histories, each long shard fifteen of its own (`HUDI_TURNS_SHARD`). A
failure prints the steps and its seed: `HUDI_TURNS=17` with `-k 1.1.1` takes that history alone.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import count, islice
from pathlib import Path

import pytest

from tests.interop.conftest import Hudis
from tests.interop.further import Releases
from tests.interop.history import History
from tests.interop.test_later_versions import ORACLE
from tests.interop.turns import chance_of, drawn_kind
from tests.support.scale import scale

pytestmark = [
    pytest.mark.interop,
    pytest.mark.filterwarnings("ignore::hudi_table.metadata.lifecycle.MetadataDroppedWarning"),
]


def seeds(release: str) -> list[int]:
    """Those of this run. At a scale of 1 they are 24 without a metadata table, which Hudi is slow
    to build; `make test` takes a twelfth of them."""
    if alone := os.environ.get("HUDI_TURNS"):
        return [int(alone)]
    if scale() == 1:
        quick = (seed for seed in count() if not drawn_kind(chance_of(release, seed), release).metadata)
        return list(islice(quick, 24))
    first = 1000 * int(os.environ.get("HUDI_TURNS_SHARD", "0"))
    return list(range(first, first + round(7.5 * scale())))


def take(history: History, figure: Callable[[int, str], None]) -> None:
    history.run()
    figure(1, "random histories with Hudi")
    figure(history.looks_back, "looks back within them")


FIRST = [pytest.param("0.15.0", seed, marks=pytest.mark.at_scale(2)) for seed in seeds("0.15.0")]
FURTHER = [(release, seed) for release in ("1.0.2", "1.2.0") for seed in seeds(release)]


@pytest.mark.parametrize(("release", "seed"), [*((ORACLE, seed) for seed in seeds(ORACLE)), *FIRST])
def test_random_turns_with_hudi_agree_with_a_dictionary(
    hudis: Hudis, tmp_path: Path, figure: Callable[[int, str], None], release: str, seed: int
) -> None:
    take(History(tmp_path / "table", hudis[release], seed), figure)


@pytest.mark.at_scale(2)
@pytest.mark.parametrize(("release", "seed"), FURTHER)
def test_random_turns_with_a_further_release_agree_with_a_dictionary(
    releases: Releases, tmp_path: Path, figure: Callable[[int, str], None], release: str, seed: int
) -> None:
    take(History(tmp_path / "table", releases[release], seed), figure)
