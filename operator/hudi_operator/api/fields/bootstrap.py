"""`bootstrap` of a HudiTable: files that are there become the table, once."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from hudi_operator.api.fields.patterns import LOCATION, is_pattern
from hudi_operator.api.schema import Rule, prop


class BootstrapMode(StrEnum):
    """Whether the rows stay in the files where they are, or are copied."""

    METADATA_ONLY = "MetadataOnly"
    FULL_RECORD = "FullRecord"


@dataclass(frozen=True, slots=True)
class BootstrapSpec:
    """A folder of Parquet files that becomes the table before anything else writes it."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "!has(self.pattern) || ''.matches(self.pattern) in [true, false]",
            "pattern is a regular expression of RE2, such as month=2013-.*",
            "pattern",
            lambda b: b.pattern is None or is_pattern(b.pattern),
        ),
    )

    path: str = prop("their folder, as a URI such as s3://exported/flights/", pattern=LOCATION, max_length=1024)
    mode: BootstrapMode = prop(
        "MetadataOnly writes a skeleton beside each file, and the table needs the files; FullRecord copies the rows",
        BootstrapMode.METADATA_ONLY,
    )
    pattern: str | None = prop(
        "partitions whose whole path this regular expression matches are of mode, all others of the other one; absent: all are of mode",
        None,
        min_length=1,
        max_length=256,
    )

    @property
    def in_place(self) -> bool:
        """Whether some rows may stay where they are."""
        return self.mode is BootstrapMode.METADATA_ONLY or self.pattern is not None
