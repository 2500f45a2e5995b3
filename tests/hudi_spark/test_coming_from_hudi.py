"""`docs/how-to/coming-from-hudi.md` runs as it stands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from hudi_table import open_table
from tests.support.page_blocks import sections

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "coming-from-hudi.md"
REFUSED = "already, and the mode is errorifexists|did you mean|needs hoodie.datasource.read.begin|is refused with the value 'skip_merge'"


@pytest.mark.spark
def test_the_page_says_what_happens(spark: SparkSession, tmp_path: Path) -> None:
    names: dict[str, Any] = {"lake": str(tmp_path)}
    for heading, blocks in sections(PAGE):
        for kind, text in blocks:
            code = compile(text, f"{PAGE.name}: {heading}", "exec")
            if kind == "python":
                exec(code, names)
            else:
                assert kind == "python refused"
                with pytest.raises(Exception, match=REFUSED):
                    exec(code, names)
    for table in ("rides", "copies"):
        found = open_table(str(tmp_path / table)).scan(["id", "fare"]).to_arrow().to_pylist()
        assert {row["id"]: row["fare"] for row in found} == {"r1": 14.0, "r3": 30.0}
