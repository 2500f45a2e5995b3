"""Instants as texts by a pattern of Java's, in UTC.

Facts (measured on Spark 3.5): a year of more than four digits has a sign before it, and so has one
before the year 0, which is there; what is smaller than a second is cut off, never rounded.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

DEFAULT_FORMAT = "yyyy-MM-dd HH:mm:ss"
YEARS_OF_FOUR_DIGITS = -62_167_219_200, 253_402_300_800
"""Seconds since 1970 at which the years 0 and 10000 begin."""
_ORDER = ("yyyy", "MM", "dd", "HH", "mm", "ss")
_TOKEN = re.compile(r"yyyy|MM|dd|HH|mm|ss|'T'|[-/:., _]", re.ASCII)
_SECOND, _DAY = 1_000_000, 86_400_000_000
_PLACES = {"MM": 1, "dd": 2}
_OF_SECONDS = {"HH": (3600, 24), "mm": (60, 60), "ss": (1, 60)}
Numbers: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Format:
    """A pattern taken apart: fields of an instant, and signs between them."""

    tokens: tuple[str, ...]

    @classmethod
    def parse(cls, pattern: str) -> Format | None:
        """None for a pattern with anything else, or with one field twice side by side."""
        tokens = _TOKEN.findall(pattern)
        beside = any(a.isalpha() and a == b for a, b in itertools.pairwise(tokens))
        return cls(tuple(tokens)) if tokens and "".join(tokens) == pattern and not beside else None

    @property
    def keeps_order(self) -> bool:
        """Whether the texts of instants have their order, in years of four digits."""
        fields = tuple(token for token in self.tokens if token.isalpha())
        return self.tokens[0] == _ORDER[0] and fields == _ORDER[: len(fields)]

    def texts(self, micros: pa.Array) -> pa.Array:
        """The text of each instant, microseconds since 1970."""
        numbers = np.asarray(micros.fill_null(0), np.int64)
        days = numbers // _DAY
        parts, seconds = day_parts(days), numbers % _DAY // _SECOND
        columns = []
        for token in self.tokens:
            if token == "yyyy":  # noqa: S105 - a field of an instant
                columns.append(_years(parts[0]))
            elif token in _PLACES:
                columns.append(_padded(parts[_PLACES[token]], 2))
            elif token in _OF_SECONDS:
                unit, most = _OF_SECONDS[token]
                columns.append(_padded(seconds // unit % most, 2))
            else:
                columns.append(pa.scalar(token.strip("'")))
        joined = pc.binary_join_element_wise(*columns, "")
        return pc.if_else(micros.is_valid(), joined, pa.scalar(None, pa.string()))


def day_parts(days: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """(year, month, day) of days since 1970, of the calendar that has always been as it is now."""
    shifted = days + 719_468
    era = shifted // 146_097
    of_era = shifted - era * 146_097
    year_of_era = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    from_march = (5 * of_year + 2) // 153
    day = of_year - (153 * from_march + 2) // 5 + 1
    month = np.where(from_march < 10, from_march + 3, from_march - 9)
    return year_of_era + era * 400 + (month <= 2), month, day


def _padded(numbers: Numbers, width: int) -> pa.Array:
    return pc.utf8_lpad(pa.array(numbers).cast(pa.string()), width, "0")


def _years(years: Numbers) -> pa.Array:
    found = pa.array(years)
    signs = pc.if_else(pc.less(found, 0), "-", pc.if_else(pc.greater(found, 9999), "+", ""))
    return pc.binary_join_element_wise(signs, _padded(np.abs(years), 4), "")
