"""Tables of versions 8 and 9 that Apache Hudi wrote, continued by us: an upsert, a delete, a
compaction or clustering, and a clean.

What Hudi makes of the same tables afterwards: `tests/interop/test_later_versions.py`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from hudi_table.api import open_table
from hudi_table.metadata.lifecycle import kept
from hudi_table.metadata.validate import differences
from hudi_table.model.metadata_table import is_defined
from hudi_table.model.service.findings import Severity
from tests.support import golden
from tests.support.later import continued, expected_after, keyed


@pytest.mark.filterwarnings("ignore::hudi_table.metadata.lifecycle.MetadataDroppedWarning")
@pytest.mark.parametrize("name", golden.LATER)
def test_a_table_of_hudi_goes_on(name: str, tmp_path: Path) -> None:
    base = golden.unpack(name, tmp_path).base
    before = keyed(open_table(base).scan().to_arrow(), open_table(base).context.config)
    there = (base / ".hoodie" / "metadata" / "files").is_dir()
    had = set(open_table(base).context.config.metadata_partitions) if there else set()
    expected = expected_after(base)
    continued(base)
    table = open_table(base)
    assert keyed(table.scan().to_arrow(), table.context.config) == expected
    assert before != expected
    assert not [row for row in table.files().to_pylist() if row["latest"] and row["log_files"]]
    assert set(table.context.config.metadata_partitions) == {
        name for name in had if name in kept(table.context) or is_defined(name)
    }
    assert differences(table.context) == []
    errors = [finding for finding in table.doctor() if finding.severity is Severity.ERROR]
    assert not errors
