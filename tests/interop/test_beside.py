"""Apache Hudi commits between our snapshot and our decision: no update is lost, of either, and both
engines read the same afterwards.

Matrix: {copy-on-write, merge-on-read} × what Hudi does there: an upsert of the same bucket, of
another partition, and one that first rolls back what it takes for failed.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_table.api import open_table
from hudi_table.errors import WriteAbortedError, WriteConflictError
from hudi_table.table.commit.foreign_writers import foreign_commits
from hudi_table.table.timeline.active import load_timeline
from tests.interop import ours
from tests.interop.conftest import Hudis
from tests.interop.model import Model, rows
from tests.interop.test_matrix import upsert
from tests.support.beside import before_last_listing
from tests.support.hudi_oracle import HudiOracle

pytestmark = [pytest.mark.interop, pytest.mark.by_turns]

RETRY = {"hoodie.write.num.retries.on.conflict.failures": "1"}
QUICK = {"hoodie.metadata.enable": "false", "hoodie.compact.inline.max.delta.commits": "100"}
LAZY = {
    "hoodie.cleaner.policy.failed.writes": "LAZY",
    "hoodie.clean.failed.writes.policy": "LAZY",
    # A clean of a lazy writer rolls back what has no heartbeat, and short writes of ours have none.
    "hoodie.clean.automatic": "false",
}
kinds = pytest.mark.parametrize("kind", ["CopyOnWrite", "MergeOnRead"])


@kinds
def test_an_update_beside_a_commit_of_hudi_is_lost_in_no_case(
    hudis: Hudis, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    base, model = tmp_path / "table", Model(partitioned=True)
    ours.create(base, index="bucket", partitioned=True, type=kind)
    step(base, model, rows(range(20), 1))
    late = Late(monkeypatch)

    def each(oracle: HudiOracle, copy: Path) -> None:
        expected = model.copy()

        def hudi(number: int, version: int, **options: str) -> Callable[[], None]:
            def act() -> None:
                data = rows([number], version)
                told = {"hoodie.datasource.write.table.type": open_table(str(copy)).context.config.type.hudi_name}
                upsert(oracle, copy, data, **QUICK, **told, **options)
                expected.apply("upsert", data)

            return act

        late.before(copy, hudi(0, 2, **LAZY))
        with pytest.raises(WriteConflictError, match="another engine changed the same file groups"):
            ours.write(copy, "upsert", rows([0], 3))
        ours.assert_all_read(copy, oracle, expected.rows())
        late.before(copy, hudi(0, 4, **LAZY))
        step(copy, expected, rows([0], 5), RETRY)
        ours.assert_all_read(copy, oracle, expected.rows())
        late.before(copy, hudi(1, 6, **LAZY))
        step(copy, expected, rows([3], 7))
        ours.assert_all_read(copy, oracle, expected.rows())
        late.before(copy, hudi(1, 8))
        with pytest.raises(WriteAbortedError, match="another engine takes the instant"):
            ours.write(copy, "upsert", rows([3], 9))
        ours.assert_all_read(copy, oracle, expected.rows())
        step(copy, expected, rows([3], 10))
        ours.assert_all_read(copy, oracle, expected.rows())
        ctx = open_table(str(copy)).context
        assert len(foreign_commits(ctx, load_timeline(ctx))) == 4

    hudis.each_on_a_copy(base, each)


class Late:
    """What another engine does when the next attempt of ours at a table is about to decide,
    once."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._waiting: dict[str, Callable[[], None]] = {}

        def late(base: str) -> None:
            act = self._waiting.pop(base.rpartition("/")[2], None)
            if act is not None:
                act()

        before_last_listing(patch, late)

    def before(self, base: Path, act: Callable[[], None]) -> None:
        """Let it do this to the table `base`."""
        self._waiting[base.name] = act


def step(base: Path, model: Model, data: pa.Table, options: dict[str, str] | None = None) -> None:
    ours.write(base, "upsert", data, options=options)
    model.apply("upsert", data)
