"""Numbers as people read them."""

from __future__ import annotations

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def size(count: int | None) -> str:
    """Bytes with three significant digits: `412 B`, `1.18 MiB`."""
    if count is None:
        return "-"
    value, unit = float(count), 0
    while value >= 999.5 and unit < len(_UNITS) - 1:
        value, unit = value / 1024, unit + 1
    if unit == 0:
        return f"{count} B"
    return f"{value:.{2 if value < 9.995 else 1 if value < 99.95 else 0}f} {_UNITS[unit]}"


def age(seconds: float | None) -> str:
    """A duration in its two largest units, as kubectl prints ages: `42s`, `5m10s`, `3h`, `12d`."""
    if seconds is None:
        return "-"
    left = max(int(seconds), 0)
    days, hours, minutes, rest = left // 86400, left // 3600, left // 60, left % 60
    if minutes < 2:
        return f"{left}s"
    if minutes < 10:
        return f"{minutes}m{rest}s" if rest else f"{minutes}m"
    if hours < 3:
        return f"{minutes}m"
    if hours < 48:
        return f"{hours}h"
    return f"{days}d"


def number(count: int | None) -> str:
    """A count with thousands marked: `336,776`."""
    return "-" if count is None else f"{count:,}"
