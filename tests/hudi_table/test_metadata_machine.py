"""Writes and every table service in random order, on tables that keep a metadata table: after every
step it agrees with the folders.

Matrix: {bucket, simple} × {copy-on-write, merge-on-read}. Where its partition `files` is ready, its
listing is what lies in the folders, views by either have the same groups now and at the moments of
pinned readers, and every visible base file has its bloom filter and its column statistics. What
takes commits back drops it, and the next write builds it again.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis.stateful import invariant

from hudi_table.metadata.files_listing import metadata_files
from hudi_table.metadata.validate import differences
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.view.file_system_view import FileSystemView
from tests.hudi_table.test_services_machine import OPTIONS, STEPS, ServedTable
from tests.support.histories import run_histories
from tests.support.metadata_table import groups_by_folders, missing_entries
from tests.support.scale import scaled

WITH_METADATA = OPTIONS | {
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.index.bloom.filter.enable": "true",
    "hoodie.metadata.compact.max.delta.commits": "4",
}
compared = 0


class Indexed(ServedTable):
    """The served table with a metadata table, which every write wants."""

    options = WITH_METADATA

    @invariant()
    def metadata_agrees(self) -> None:
        global compared
        if not hasattr(self, "rows"):
            return
        ctx = self.table.context
        timeline = load_timeline(ctx)
        if metadata_files(ctx, timeline) is None:
            return
        compared += 1
        assert differences(ctx) == []
        for moment in {None, *(instant for instant, _ in self.pins[-2:])}:
            by_metadata = FileSystemView(ctx, timeline, moment).groups()
            assert by_metadata == groups_by_folders(ctx, timeline, moment), f"groups at {moment}"
        assert missing_entries(ctx, ("id", "value")) == []

    def teardown(self) -> None:
        super().teardown()
        if hasattr(self, "rows"):
            self.metadata_agrees()


@pytest.mark.thinned("values")
@pytest.mark.parametrize("logs", [False, True], ids=["copy-on-write", "merge-on-read"])
@pytest.mark.parametrize("buckets", [False, True], ids=["simple", "bucket"])
@pytest.mark.timeout(1800)
def test_the_metadata_table_agrees_with_the_folders_through_every_order_of_writes_and_services(
    buckets: bool, logs: bool, figure: Callable[[int, str], None]
) -> None:
    begun = compared
    machine = type("Kept", (Indexed,), {"buckets": buckets, "logs": logs})
    run_histories(machine, scaled(2), STEPS)
    figure(compared - begun, "comparisons of the metadata table with the folders")
    assert compared - begun > STEPS / 2
