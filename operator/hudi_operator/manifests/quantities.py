"""Kubernetes quantities as bytes."""

from __future__ import annotations

import re

_UNITS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}


def bytes_of(quantity: str) -> int:
    """`120Mi` → 125829120. Raises ValueError for anything else than a whole number with one of the units."""
    match = re.fullmatch(r"([0-9]+)(k|[MGT]i?|Ki)?", quantity)
    if match is None:
        raise ValueError(f"{quantity!r} is not a quantity such as 120Mi")
    return int(match[1]) * _UNITS[match[2] or ""]
