"""Kubernetes quantities as bytes, durations as seconds; and bytes as people read them."""

from __future__ import annotations

import re

_UNITS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}


def bytes_of(quantity: str) -> int:
    """`120Mi` → 125829120. Raises ValueError for anything else than a whole number with one of the
    units."""
    match = re.fullmatch(r"([0-9]+)(k|[MGT]i?|Ki)?", quantity)
    if match is None:
        raise ValueError(f"{quantity!r} is not a quantity such as 120Mi")
    return int(match[1]) * _UNITS[match[2] or ""]


_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}


def seconds_of(duration: str) -> float:
    """`1h30m` → 5400.0. Raises ValueError for anything else than whole numbers with one of the
    units."""
    parts = re.findall(r"([0-9]+)(ms|s|m|h|d)", duration)
    if not parts or "".join(number + unit for number, unit in parts) != duration:
        raise ValueError(f"{duration!r} is not a duration such as 30m")
    return sum(int(number) * _SECONDS[unit] for number, unit in parts)


def human_bytes(size: float) -> str:
    """`1.2 MiB`."""
    value = float(size)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"
