"""`source.custom` of an ingest: a source of another package."""

from __future__ import annotations

from dataclasses import dataclass

from hudi_operator.api.fields.patterns import DURATION
from hudi_operator.api.ingests.databases import EVERY
from hudi_operator.api.schema import prop


@dataclass(frozen=True, slots=True)
class CustomSpec:
    """A source of a package that is installed in the jobs' image, in the entry-point group
    hudi_table.sources. Secrets come to it by spark.driver.env."""

    name: str = prop("name of the entry point", pattern="^[A-Za-z0-9_.-]+$", min_length=1, max_length=128)
    options: dict[str, str] = prop(
        "settings of the package, no secret among them", dict, max_items=64, item_max_length=4096
    )
    every: str = prop("how often the source is asked", EVERY, pattern=DURATION, max_length=32)
