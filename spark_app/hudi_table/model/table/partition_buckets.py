"""Numbers of buckets by partition: expressions as Hudi writes them, and the number that they give a
partition.

Facts (measured on Hudi 1.1.1; 0.15.0 does not know them): `expression,number` pairs joined by `;`,
the number behind the last comma; the first regular expression that is found in the partition path,
anywhere in it, counts, else the table's number.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from hudi_table.model.digits import whole

Rules = tuple[tuple[str, int], ...]
"""Pairs of expression and number, the first match counts."""


def buckets_in(partition: str, rules: Rules, default: int) -> int:
    """The number of buckets of a partition."""
    for expression, number in rules:
        if _compiled(expression).search(partition):
            return number
    return default


def parse_rules(text: str) -> Rules:
    """The rules of Hudi's text. Raises ValueError that names what is none."""
    found = []
    for item in filter(None, (part.strip() for part in text.split(";"))):
        expression, _, number = item.rpartition(",")
        buckets = whole(number.strip())
        if not expression or buckets is None:
            raise ValueError(f"{item!r} is no pair of an expression and a number of buckets, such as '2024-.*,16'")
        found.append((expression, buckets))
    return checked(found)


def render_rules(rules: Rules) -> str:
    """The inverse of `parse_rules`."""
    return ";".join(f"{expression},{number}" for expression, number in rules)


def checked(rules: Iterable[tuple[str, int]]) -> Rules:
    """The rules, if each can be used and written. Raises ValueError that names the first that
    cannot."""
    pairs = tuple(rules)
    for expression, number in pairs:
        if number < 1:
            raise ValueError(f"partitions {expression!r} have {number} buckets; give at least 1")
        if not expression or ";" in expression:
            raise ValueError(f"the expression {expression!r} is empty or holds ';', which separates expressions")
        try:
            _compiled(expression)
        except re.error as error:
            raise ValueError(f"the expression {expression!r} is no regular expression: {error}") from error
    return pairs


@lru_cache(maxsize=1024)
def _compiled(expression: str) -> re.Pattern[str]:
    return re.compile(expression)
