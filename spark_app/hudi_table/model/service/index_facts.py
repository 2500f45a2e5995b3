"""What is measured of a table's index, and what follows from it. Sizes are bytes."""

from __future__ import annotations

from dataclasses import dataclass

from hudi_table.model.table.config import IndexType


@dataclass(frozen=True, slots=True)
class FileFact:
    """One base file by its footer: rows, range of keys, size of its key column, of its footer, and
    of the filter in that.

    `fills`: the part of the bits that is set, per row of the filter, empty without one. `error`:
    the part of keys that it does not hold and lets pass.
    """

    partition: str
    rows: int
    key_bytes: int
    footer_bytes: int
    smallest: str | None = None
    largest: str | None = None
    filter_bytes: int = 0
    fills: tuple[float, ...] = ()
    error: float = 1.0

    @property
    def has_filter(self) -> bool:
        """Whether the footer holds one."""
        return bool(self.fills)


@dataclass(frozen=True, slots=True)
class UpsertFact:
    """One commit that looked keys up: its rows, the files in which it found some, the partitions
    that it wrote to."""

    rows: int
    files: int
    partitions: int


@dataclass(frozen=True, slots=True)
class IndexFacts:
    """A table as its index meets it. `seen` is a sample of its `files` base files, `upserts` are of
    its newest commits.

    `bucket_bytes`: the size of every file group of a bucket table. `target_bytes`: the size that
    files should have.
    """

    index: IndexType
    partitioned: bool
    partitions: int
    files: int
    seen: tuple[FileFact, ...]
    upserts: tuple[UpsertFact, ...]
    bucket_bytes: tuple[int, ...] = ()
    target_bytes: int = 120 << 20

    @property
    def keys(self) -> int:
        """Rows of all base files, of a sample estimated."""
        return round(sum(fact.rows for fact in self.seen) / len(self.seen) * self.files) if self.seen else 0


@dataclass(frozen=True, slots=True)
class LookupCost:
    """What one write of usual size opens and reads to find its keys."""

    files_opened: int
    bytes_read: int


@dataclass(frozen=True, slots=True)
class IndexAdvice:
    """What lookups cost `now` (None if nobody looks keys up), which index would cost less, and
    `why`.

    `warnings`: what is wrong with the index that there is.
    """

    index: IndexType
    rows: int = 0
    now: LookupCost | None = None
    better: IndexType | None = None
    then: LookupCost | None = None
    why: str = ""
    warnings: tuple[str, ...] = ()

    @property
    def matters(self) -> bool:
        """Whether somebody should hear of it."""
        return self.better is not None or bool(self.warnings)
