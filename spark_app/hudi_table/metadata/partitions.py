"""What a table's properties say of its metadata table."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from hudi_table.model.metadata_table import MetadataPartition


@dataclass(frozen=True, slots=True)
class Partitions:
    """What the data table's properties say: `ready` partitions are read, `inflight` ones are being
    built; both are written to. `begun_shards`: with how many file groups a record index by
    partition goes on for a new data partition. `awaits` and `holds`: instants that were beside a
    building (`untold.py`)."""

    ready: tuple[str, ...] = ()
    inflight: tuple[str, ...] = ()
    begun_shards: int = 1
    awaits: tuple[str, ...] = ()
    holds: tuple[str, ...] = ()

    @property
    def all(self) -> tuple[str, ...]:
        """Both, each once."""
        return tuple(dict.fromkeys([*self.ready, *self.inflight]))

    def without(self, names: Collection[str]) -> Partitions:
        """Without these, ready or inflight."""
        ready, inflight = (tuple(n for n in some if n not in names) for some in (self.ready, self.inflight))
        return replace(self, ready=ready, inflight=inflight)

    def without_ready(self, names: Collection[str]) -> Partitions:
        """With these as inflight ones, if they are ready."""
        if not names:
            return self
        late = tuple(name for name in self.ready if name in names)
        return replace(self, ready=tuple(n for n in self.ready if n not in names), inflight=(*self.inflight, *late))

    @property
    def unknown(self) -> tuple[str, ...]:
        """Those that have no meaning here."""
        return tuple(name for name in self.all if name not in set(MetadataPartition))
