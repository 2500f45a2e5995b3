"""Numbers that texts of others hold: Python takes '²' for a digit and '٣' for a number, the format
and Java's parsers of it do not."""

from __future__ import annotations

LONG_DIGITS_MAX = 18
"""Every number of so many digits is a Java long; Python would also refuse to read one of some
thousands."""


def is_digits(text: str) -> bool:
    """Whether a text is one or more of the ten ASCII digits."""
    return text.isascii() and text.isdigit()


def whole(text: str, least: int = 0) -> int | None:
    """The whole number from `least` that a text of ASCII digits writes, None for any other text."""
    if not is_digits(text) or len(text.lstrip("0")) > LONG_DIGITS_MAX:
        return None
    number = int(text[-LONG_DIGITS_MAX:])
    return number if number >= least else None
