"""HTML of tables and scans for notebooks: plain, escaped, without scripts or colours of its own."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

_CELL = 'style="text-align: left"'


def key_values_html(title: str, facts: Sequence[tuple[str, str]]) -> str:
    """A titled two-column table."""
    rows = "".join(f"<tr><th {_CELL}>{escape(key)}</th><td {_CELL}>{escape(text)}</td></tr>" for key, text in facts)
    return f"<div><strong>{escape(title)}</strong><table>{rows}</table></div>"
