"""Texts of others on their way to people: one line, without what a terminal or a log would take for
more than text."""

from __future__ import annotations

import unicodedata

_UNSEEN = frozenset({"Cc", "Cf", "Zl", "Zp", "Cs", "Co", "Cn"})
"""Unicode's categories of characters that are not seen but do something: controls, directions, ends
of lines, halves of pairs."""


def one_line(text: str, length_max: int) -> str:
    """The text with every unseen character as its escape (`\\n`, `\\u202e`), and at most
    `length_max` characters of it."""
    if text.isascii() and text.isprintable():
        return text[:length_max]
    shown = (
        c.encode("unicode_escape").decode("ascii") if unicodedata.category(c) in _UNSEEN else c
        for c in text[:length_max]
    )
    return "".join(shown)[:length_max]
