"""The text form of a filter: SQL-like text → a predicate tree."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from hudi_table.errors import InvalidOptionError

MAX_DEPTH = 64
"""Levels of parentheses and ``not`` that a filter may have."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column; dots lead into structs unless a column bears the whole name."""

    name: str


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant: str, int, float, Decimal, bool, or what the caller put into a tuple."""

    value: Any


Operand = Column | Literal


@dataclass(frozen=True, slots=True)
class Test:
    """`op` of operands: a comparison, ``in`` (first operand against the others), ``like``,
    ``null``."""

    op: str
    operands: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Logic:
    """``and``, ``or``, ``not`` of predicates."""

    op: str
    parts: tuple[Predicate, ...]


Predicate = Test | Logic


def negate(predicate: Predicate, negated: str | None) -> Predicate:
    """`predicate`, or its negation if the word ``not`` was read."""
    return Logic("not", (predicate,)) if negated else predicate


_TOKEN = re.compile(
    r"""\s*(?:
      (?P<string>'(?:[^']|'')*')
    | (?P<quoted>"(?:[^"]|"")+"|`(?:[^`]|``)+`)
    | (?P<number>[+-]?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][+-]?\d+)?(?![\w.]))
    | (?P<word>[^\W\d][\w$]*(?:\.[^\W\d][\w$]*)*)
    | (?P<op><>|!=|<=|>=|==|[=<>(),])
    )""",
    re.VERBOSE,
)
COMPARISONS = {"=": "=", "==": "=", "!=": "!=", "<>": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_SQL = ": a filter compares columns with values and knows no functions and no arithmetic; `hudictl query` and DuckDB do (`where lower(city) = 'sf'`)"
_OPEN = ": the quote has no end; double a quote inside a text"
_QUOTES = frozenset("'\"`")
_ARITHMETIC = frozenset("+-*/%|")
_KEYWORDS = frozenset(["and", "or", "not", "in", "between", "is", "null", "like", "true", "false"])


class Parser:
    """Recursive descent over the tokens of one filter text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.depth = 0
        self.tokens: list[tuple[str, str, int]] = []
        at = 0
        while text[at:].strip():
            match = _TOKEN.match(text, at)
            if match is None:
                first = text[at:].lstrip()[:1]
                hint = _SQL if first in _ARITHMETIC else _OPEN if first in _QUOTES else ""
                raise self.error(at, f"cannot be read here{hint}")
            kind = str(match.lastgroup)
            value, start = match[kind], match.start(kind)
            if kind == "word" and value.lower() in _KEYWORDS:
                kind, value = "keyword", value.lower()
            self.tokens.append((kind, value, start))
            at = match.end()
        self.tokens.append(("end", "the end", len(text)))
        self.next = 0

    def error(self, at: int, why: str) -> InvalidOptionError:
        """An error that names the place in the filter."""
        shown = repr(self.text[at : at + 20].strip()) if self.text[at:].strip() else "the end"
        return InvalidOptionError(f"filter {self.text!r}: {shown} at character {at + 1} {why}")

    def _hint(self) -> str:
        """What to do about a call of a function: the word before a parenthesis."""
        called = self.next > 0 and self.tokens[self.next - 1][0] == "word" and self.tokens[self.next][1] == "("
        return _SQL if called else ""

    def take(self, *values: str) -> str | None:
        """Step over the next token if it is one of these, and give it."""
        kind, value, _ = self.tokens[self.next]
        if kind in ("op", "keyword") and value in values:
            self.next += 1
            return value
        return None

    def expect(self, value: str) -> None:
        """Step over this token. Raises InvalidOptionError if another stands there."""
        if self.take(value) is None:
            raise self.error(self.tokens[self.next][2], f"stands where {value!r} is expected")

    def parse(self) -> Predicate:
        """The condition of the whole text."""
        predicate = self.chain("or")
        if self.tokens[self.next][0] != "end":
            raise self.error(self.tokens[self.next][2], f"is left over{self._hint()}")
        return predicate

    def chain(self, op: str) -> Predicate:
        """Conditions joined by `or`, or by `and`, which binds more closely."""
        parts = [self.chain("and") if op == "or" else self.negation()]
        while self.take(op):
            parts.append(self.chain("and") if op == "or" else self.negation())
        return parts[0] if len(parts) == 1 else Logic(op, tuple(parts))

    def negation(self) -> Predicate:
        """A condition with `not` before it, in parentheses, or as it is."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise InvalidOptionError(f"filter {self.text[:40]!r}…: more than {MAX_DEPTH} levels of parentheses and not")
        if self.take("not"):
            result: Predicate = Logic("not", (self.negation(),))
        elif self.take("("):
            result = self.chain("or")
            self.expect(")")
        else:
            result = self.test()
        self.depth -= 1
        return result

    def test(self) -> Predicate:
        """One comparison."""
        left = self.operand()
        if op := self.take(*COMPARISONS):
            return Test(COMPARISONS[op], (left, self.operand()))
        if self.take("is"):
            negated = self.take("not")
            self.expect("null")
            return negate(Test("null", (left,)), negated)
        negated = self.take("not")
        if self.take("between"):
            low = self.operand()
            self.expect("and")
            high = self.operand()
            return negate(Logic("and", (Test(">=", (left, low)), Test("<=", (left, high)))), negated)
        if self.take("in"):
            self.expect("(")
            values = [self.operand()]
            while self.take(","):
                values.append(self.operand())
            self.expect(")")
            return negate(Test("in", (left, *values)), negated)
        if self.take("like"):
            return negate(Test("like", (left, self.operand())), negated)
        if isinstance(left, Column) and negated is None:
            return Test("=", (left, Literal(True)))
        raise self.error(self.tokens[self.next][2], "stands where a comparison is expected")

    def operand(self) -> Operand:
        """A column or a value."""
        kind, value, at = self.tokens[self.next]
        self.next += 1
        if kind == "string":
            return Literal(value[1:-1].replace("''", "'"))
        if kind == "number":
            return Literal(int(value) if re.fullmatch(r"[+-]?\d+", value) else Digits(value))
        if kind == "keyword" and value in ("true", "false"):
            return Literal(value == "true")
        if kind == "keyword" and value == "null":
            raise self.error(at, "is never equal to anything: write 'is null' or 'is not null'")
        if kind == "quoted":
            return Column(value[1:-1].replace(value[0] * 2, value[0]))
        if kind == "word":
            if value.lower() in ("date", "timestamp") and self.tokens[self.next][0] == "string":
                return self.operand()
            return Column(value)
        raise self.error(at, "stands where a column or a value is expected")


class Digits(float):
    """A number with a fraction or exponent that remembers its digits, so that decimals stay
    exact."""

    def __new__(cls, digits: str) -> Digits:
        """The number that these digits say."""
        number = super().__new__(cls, digits)
        number.digits = digits
        return number

    digits: str
