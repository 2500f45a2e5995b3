"""How log entries merge in the words of table versions 8 and 9: a mode, ordering fields, and what
is left of a row.

Facts (read in Hudi's source, measured on 1.0.2 and 1.1.1): version 8 stores a mode and a payload
class, version 9 the mode, perhaps a partial update mode, and as `hoodie.record.merge.property.*`
the settings of a payload class. Only CUSTOM calls code of others: a class of ours does to base
files what it does in version 6, and releases differ in what they make of its logs. In every other
mode two entries merge by one rule: a delete by operation beats what is before it, and anything
after beats it; else the later one wins unless its ordering is smaller, flagged deletes included. By
commit time ordering values are ignored, also where fields are stored.
"""

from __future__ import annotations

from collections.abc import Mapping

from hudi_table.model.table.index_properties import names_in
from hudi_table.model.table.merge_settings import LaterMerge, PartialUpdates
from hudi_table.model.table.merging import PAYLOADS, UNAVAILABLE
from hudi_table.model.table.version_properties import BY_CLASS

MODE = "hoodie.record.merge.mode"
PARTIAL_MODE = "hoodie.table.partial.update.mode"
_PAYLOAD = "hoodie.compaction.payload.class"
_STRATEGY = "hoodie.record.merge.strategy.id"
_PROPERTY = "hoodie.record.merge.property."
_DELETE_FIELD, _DELETE_MARKER = f"{_PROPERTY}hoodie.payload.delete.field", f"{_PROPERTY}hoodie.payload.delete.marker"
_UNAVAILABLE = f"{_PROPERTY}hoodie.write.partial.update.unavailable.value"
_BY_TIME = {"COMMIT_TIME_ORDERING": False, "EVENT_TIME_ORDERING": True}
_PARTIAL = {"IGNORE_DEFAULTS": PartialUpdates.IGNORE_DEFAULTS, "FILL_UNAVAILABLE": PartialUpdates.FILL_UNAVAILABLE}


def later_merge(properties: Mapping[str, str]) -> LaterMerge | None:
    """What the properties of a table of version 8 or 9 tell; None where a class of ours merges, as
    in version 6."""
    if _by_class(properties):
        return None
    fields = names_in(
        properties.get("hoodie.table.ordering.fields") or properties.get("hoodie.table.precombine.field", "")
    )
    mode = properties.get(MODE) or ("EVENT_TIME_ORDERING" if fields else "COMMIT_TIME_ORDERING")
    partial = properties.get(PARTIAL_MODE, "")
    field, text = properties.get(_DELETE_FIELD, ""), properties.get(_DELETE_MARKER, "")
    unavailable = properties.get(_UNAVAILABLE, UNAVAILABLE)
    refused = ""
    if mode not in _BY_TIME:
        by = properties.get(_PAYLOAD) or properties.get(_STRATEGY) or "a class of its own"
        refused = f"by {by} ({MODE}={mode})"
    elif partial and partial not in _PARTIAL:
        refused = f"by partial updates of a mode that is not known ({PARTIAL_MODE}={partial})"
    elif unavailable != UNAVAILABLE:
        refused = f"by a marker of its own for values that a change has not touched ({_UNAVAILABLE}={unavailable})"
    return LaterMerge(
        ordering=fields if _BY_TIME.get(mode) else (),
        partial=_PARTIAL.get(partial),
        marker=(field, text) if field and text else None,
        refused=refused,
    )


def _by_class(properties: Mapping[str, str]) -> bool:
    """Whether rows meet in base files alone, and a class merges them."""
    copied = properties.get("hoodie.table.type", "COPY_ON_WRITE") == "COPY_ON_WRITE"
    return copied and properties.get(MODE) == BY_CLASS and properties.get(_PAYLOAD) in PAYLOADS
