"""Change data capture: what a table writes down of each change.

Facts (measured on Hudi 0.15.0): `hoodie.table.cdc.enabled` switches it on,
`hoodie.table.cdc.supplemental.logging.mode` says in capitals what the `.cdc` log files hold.
Operations are `i`, `u` and `d`.
"""

from __future__ import annotations

from enum import StrEnum

CDC_ENABLED = "hoodie.table.cdc.enabled"
CDC_MODE = "hoodie.table.cdc.supplemental.logging.mode"
OP, TIME, KEY, BEFORE, AFTER = "op", "ts_ms", "record_key", "before", "after"
INSERT, UPDATE, DELETE = "i", "u", "d"


class Images(StrEnum):
    """How much of a change is told: `columns` are those of a CDC block."""

    OP_KEY_ONLY = "op_key_only"
    DATA_BEFORE = "data_before"
    DATA_BEFORE_AFTER = "data_before_after"

    @property
    def columns(self) -> tuple[str, ...]:
        """Names in the order of Hudi's schema; only the largest form carries the instant, and it
        alone no key."""
        if self is Images.DATA_BEFORE_AFTER:
            return (OP, TIME, BEFORE, AFTER)
        return (OP, KEY) if self is Images.OP_KEY_ONLY else (OP, KEY, BEFORE)
