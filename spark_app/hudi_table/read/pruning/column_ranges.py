"""What a filter cannot match by the smallest and largest values of a file's columns.

Every test is asked of all files at once: whether some row of a file may pass it. What is not
understood, and what nothing is known of, may always pass, so that skipping changes no rows. Facts
(measured on Hudi 0.15.0 and 1.1.1), from which three silences follow:

- A floating point column with a NaN has 0.0 as its smallest and largest value: nothing follows from
  such columns.
- A column of texts longer than 4,096 bytes has no bounds, and as many nulls as values: nothing
  follows from absent bounds.
- Hudi puts the bounds of row groups together in the order of Java's strings, which differs from
  that of bytes beyond U+DFFF: nothing follows from bounds with such characters.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from hudi_table.read.filter.expression_tree import Call, Constant, Part, Reference

Flags = npt.NDArray[np.bool_]
FLIPPED: Final = {
    "less": "greater",
    "less_equal": "greater_equal",
    "greater": "less",
    "greater_equal": "less_equal",
    "equal": "equal",
    "not_equal": "not_equal",
}
"""The comparisons, each with the one that says the same with its sides exchanged."""
_MEMBERS_EACH: Final = 64
"""So many values of an `in` are looked at one by one, of more only the smallest and the largest."""
_FIRST_FOREIGN_BYTE: Final = 0xEE


@dataclass(frozen=True, slots=True)
class Ranges:
    """One column in every file: smallest and largest value, both null where they are not known or
    nothing is in the column, and the number of nulls, null where it is not known. No floating point
    column."""

    low: pa.Array
    high: pa.Array
    nulls: pa.Array

    def may_be(self, low: pa.Scalar | None, high: pa.Scalar | None, *, strict: bool = False) -> Flags:
        """Whether a value may lie in [low, high] (None: no end), without the ends if `strict`."""
        above = operator.lt if strict else operator.le
        passes = self._known()
        for bound, end, test in ((high, self.low, above), (low, self.high, _turned(above))):
            if bound is not None:
                passes &= _compared(end, bound, test)
        return passes | self.unknown()

    def any_null(self) -> Flags:
        """Whether a file may hold a null."""
        return _flags(pc.greater(self.nulls, 0), unknown=True) | self.unknown()

    def only(self, value: pa.Scalar) -> Flags:
        """Whether every value is surely this one."""
        both = _compared(self.low, value, operator.eq) & _compared(self.high, value, operator.eq)
        return both & self._known()

    def _known(self) -> Flags:
        return ~self.unknown()

    def unknown(self) -> Flags:
        """Files of which the bounds tell nothing."""
        found = _flags(pc.or_(self.low.is_null(), self.high.is_null()), unknown=True)
        if pt.is_string(self.low.type):
            found = found | _foreign(self.low) | _foreign(self.high)
        return found


def may_match(part: Part, columns: Mapping[str, Ranges], files: int) -> Flags:
    """For each file whether a row of it may pass the filter `part`; `columns` that are absent tell
    nothing."""
    if not isinstance(part, Call):
        return np.ones(files, bool)
    if part.function in ("and", "and_kleene", "or", "or_kleene"):
        each = [may_match(inside, columns, files) for inside in part.parts]
        both = part.function.startswith("and")
        found: Flags = np.logical_and.reduce(each) if both else np.logical_or.reduce(each)
        return found
    try:
        flags = _test(part, columns)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError, TypeError, ValueError):
        # Values that do not compare with the column's: Arrow says so again when rows are read.
        flags = None
    return np.ones(files, bool) if flags is None else flags


def _test(call: Call, columns: Mapping[str, Ranges]) -> Flags | None:
    names = [part.name for part in call.parts if isinstance(part, Reference)]
    if len(names) != 1 or names[0] not in columns:
        return None
    ranges = columns[names[0]]
    if call.function in FLIPPED and len(call.parts) == 2:
        return _comparison(call, ranges)
    if call.function == "is_null":
        return ranges.any_null()
    if call.function == "is_in" and isinstance(call.options, pa.StructScalar):
        return _membership(call.options["value_set"].values, ranges)
    if call.function in ("starts_with", "match_like") and isinstance(call.options, pa.StructScalar):
        pattern_options = call.options.as_py()
        start = (
            pattern_options["pattern"] if call.function == "starts_with" else _literal_start(pattern_options["pattern"])
        )
        return None if pattern_options["ignore_case"] else _prefixed(start, ranges)
    return None


def _comparison(call: Call, ranges: Ranges) -> Flags | None:
    first, second = call.parts
    function = call.function if isinstance(first, Reference) else FLIPPED[call.function]
    constant = second if isinstance(first, Reference) else first
    if not isinstance(constant, Constant) or not constant.value.is_valid:
        return None
    value = constant.value
    if function == "equal":
        return ranges.may_be(value, value)
    if function == "not_equal":
        return ~ranges.only(value)
    strict = not function.endswith("_equal")
    return ranges.may_be(*((None, value) if function.startswith("less") else (value, None)), strict=strict)


def _membership(values: pa.Array, ranges: Ranges) -> Flags | None:
    present = values.drop_null()
    found: Flags = ranges.any_null() if values.null_count else np.zeros(len(ranges.low), bool)
    if len(present) > _MEMBERS_EACH:
        ends = pc.min_max(present)
        return found | ranges.may_be(ends["min"], ends["max"])
    for value in present:
        found = found | ranges.may_be(value, value)
    return found


def _prefixed(prefix: Any, ranges: Ranges) -> Flags | None:
    """A text that starts with `prefix` lies between it and the first text that is greater than all
    of them."""
    start = prefix if isinstance(prefix, bytes) else str(prefix).encode()
    if not pt.is_string(ranges.low.type) or not start or max(start) >= _FIRST_FOREIGN_BYTE:
        return None
    after = start[:-1] + bytes([start[-1] + 1])
    low, high = (end.cast(pa.binary()) for end in (ranges.low, ranges.high))
    inside = _compared(high, pa.scalar(start, pa.binary()), operator.ge)
    inside &= _compared(low, pa.scalar(after, pa.binary()), operator.lt)
    return inside | ranges.unknown()


def _literal_start(pattern: Any) -> str:
    """What a text that is `like` the pattern starts with."""
    text = pattern.decode() if isinstance(pattern, bytes) else str(pattern)
    ends = [place for place in (text.find(mark) for mark in "%_\\") if place >= 0]
    return text[: min(ends)] if ends else text


def _compared(ends: pa.Array, bound: pa.Scalar, test: Callable[[Any, Any], Any]) -> Flags:
    kernel = {operator.lt: pc.less, operator.le: pc.less_equal, operator.eq: pc.equal}
    kernel |= {operator.gt: pc.greater, operator.ge: pc.greater_equal}
    if pt.is_floating(bound.type):
        raise TypeError("whole numbers and decimals are compared with a floating point number by rounding")
    if pt.is_decimal(ends.type):
        bound = bound.cast(ends.type)
    return _flags(kernel[test](ends, bound), unknown=False)


def _turned(test: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return operator.gt if test is operator.lt else operator.ge


def _foreign(texts: pa.Array) -> Flags:
    """Whether a text has a character that Java and UTF-8 may order differently."""
    whole = texts.cast(pa.large_string())
    _, places, data = whole.buffers()
    bounds = (
        np.frombuffer(places, np.int64)[whole.offset : whole.offset + len(whole) + 1]
        if len(whole)
        else np.zeros(1, int)
    )
    units = np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)
    running = np.zeros(len(units) + 1, np.int64)
    np.cumsum(units >= _FIRST_FOREIGN_BYTE, out=running[1:])
    found: Flags = np.diff(running[bounds]) > 0
    return found


def _flags(values: pa.Array, *, unknown: bool) -> Flags:
    found: Flags = np.asarray(values.fill_null(unknown), bool)
    return found
