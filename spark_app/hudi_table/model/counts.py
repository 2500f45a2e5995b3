"""Counts in sentences: one thing is singular."""

from __future__ import annotations


def counted(count: int | None, noun: str) -> str:
    """`1 file`, `2,345 files`, `1 file group`; `- files` where the count is not known."""
    if count == 1:
        return f"1 {noun}"
    return f"{'-' if count is None else f'{count:,}'} {noun}s"
