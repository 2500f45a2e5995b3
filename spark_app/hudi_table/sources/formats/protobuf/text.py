"""Definitions of Protocol Buffers, as people write them (`.proto`): messages and enums by their
full names. What says nothing of the bytes of a message (services, options, reserved names) is
passed over.

Facts (the language guides of proto2, proto3 and editions): a name is looked for in the message
around it, then further out; a leading dot makes it whole. In proto3 a field of a number or text has
no presence unless it is `optional` or in a `oneof`; in editions it has presence unless the feature
`field_presence` is IMPLICIT. A map is a repeated message of a key (1) and a value (2).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

SCALARS = frozenset(
    [
        "double",
        "float",
        "int32",
        "int64",
        "uint32",
        "uint64",
        "sint32",
        "sint64",
        "fixed32",
        "fixed64",
        "sfixed32",
        "sfixed64",
        "bool",
        "string",
        "bytes",
    ]
)
DEPTH_MAX = 64
_TOKEN = re.compile(
    r"""\s*(?:(?://[^\n]*|/\*.*?\*/)\s*)*(?P<token>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|[A-Za-z_][\w.]*|\.[A-Za-z_][\w.]*|[0-9][\w.+]*|\S)?""",
    re.ASCII | re.DOTALL,
)
_NUMBER = re.compile(r"0[xX][0-9a-fA-F]+|[0-9]+", re.ASCII)
_NUMBER_MAX = (1 << 29) - 1
_INT32 = 1 << 31


class ProtoTextError(ValueError):
    """A text is no definition that can be used, and why."""


@dataclass(frozen=True, slots=True)
class ProtoField:
    """A field. `kind`: one of SCALARS, else the full name of a message or an enum. `presence`:
    whether one that is not set can be told from one that holds its default. `oneof`: of which it
    is. `key`: of a map, the kind of its keys."""

    name: str
    number: int
    kind: str
    repeated: bool = False
    presence: bool = False
    oneof: str = ""
    key: str = ""


@dataclass(frozen=True, slots=True)
class ProtoMessage:
    """A message, and the messages in it, in their order."""

    name: str
    fields: tuple[ProtoField, ...] = ()
    nested: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ProtoFile:
    """One text. `messages` and `enums` by their full names; `top`: its own messages in their order.
    Kinds of fields are as they were written until `resolved`."""

    package: str = ""
    imports: tuple[str, ...] = ()
    top: tuple[str, ...] = ()
    messages: Mapping[str, ProtoMessage] = field(default_factory=dict)
    enums: Mapping[str, Mapping[int, str]] = field(default_factory=dict)

    def at(self, path: tuple[int, ...]) -> ProtoMessage:
        """The message of a path of places: among those of the file, then among those in it. Raises
        ProtoTextError."""
        names, found = self.top, None
        for place in path:
            if not 0 <= place < len(names):
                raise ProtoTextError(f"it has no message at {'/'.join(map(str, path))}")
            found = self.messages[names[place]]
            names = found.nested
        if found is None:
            raise ProtoTextError("it names no message")
        return found


def parsed(text: str) -> ProtoFile:
    """A text by itself: what it takes from others is not looked for. Raises ProtoTextError."""
    return _Parser(text).file()


def resolved(file: ProtoFile, imported: Mapping[str, ProtoFile]) -> ProtoFile:
    """A file with all messages and enums that it can name, each kind by its full name. `imported`:
    the other files, by the names under which they are imported. Raises ProtoTextError."""
    files, todo = [file], list(file.imports)
    seen: set[str] = set()
    while todo:
        name = todo.pop()
        if name in seen:
            continue
        seen.add(name)
        other = imported.get(name)
        if other is None:
            raise ProtoTextError(f"it imports {name}, which is none of its references and not built in")
        files.append(other)
        todo += other.imports
    messages = {name: message for each in files for name, message in each.messages.items()}
    enums = {name: values for each in files for name, values in each.enums.items()}

    def whole(scope: str, kind: str) -> str:
        if kind in SCALARS:
            return kind
        if kind.startswith("."):
            candidates = [kind[1:]]
        else:
            parts = scope.split(".") if scope else []
            candidates = [".".join([*parts[:end], kind]) for end in range(len(parts), -1, -1)]
        found = next((each for each in candidates if each in messages or each in enums), None)
        if found is None:
            raise ProtoTextError(f"{kind} in {scope or 'it'} is not defined")
        return found

    def settled(message: ProtoMessage) -> ProtoMessage:
        fields = []
        for each in message.fields:
            kind = whole(message.name, each.kind)
            # A message always tells whether it is there.
            presence = not each.repeated and (each.presence or kind in messages)
            fields.append(replace(each, kind=kind, presence=presence))
        return replace(message, fields=tuple(fields))

    return replace(file, messages={name: settled(each) for name, each in messages.items()}, enums=enums)


class _Parser:
    def __init__(self, text: str) -> None:
        self._tokens = _tokens(text)
        self._at = 0
        self._syntax = "proto2"
        self._implicit = False
        self._package = ""
        self._imports: list[str] = []
        self._messages: dict[str, ProtoMessage] = {}
        self._enums: dict[str, Mapping[int, str]] = {}

    def file(self) -> ProtoFile:
        """The whole text."""
        top = []
        while self._peek():
            word = self._next()
            if word in ("syntax", "edition"):
                self._take("=")
                found = _text(self._next())
                self._syntax = found if word == "syntax" else "editions"
                self._take(";")
            elif word == "package":
                self._package = self._name()
                self._take(";")
            elif word == "import":
                named = self._next()
                self._imports.append(_text(self._next() if named in ("public", "weak", "option") else named))
                self._take(";")
            elif word == "message":
                top.append(self._message(self._package, 0))
            elif word == "enum":
                self._enum(self._package)
            elif word == "option":
                self._option()
            elif word in ("service", "extend"):
                self._skip_block()
            elif word != ";":
                raise self._wrong(word)
        return ProtoFile(self._package, tuple(self._imports), tuple(top), self._messages, self._enums)

    def _option(self) -> None:
        """Of the file; one of a message or an enum says nothing here."""
        words = self._until(";")
        if "features.field_presence" in words:
            self._implicit = "IMPLICIT" in words

    def _message(self, scope: str, depth: int) -> str:
        name = _joined(scope, self._name())
        if depth > DEPTH_MAX:
            raise ProtoTextError(f"messages lie more than {DEPTH_MAX} deep in each other")
        if name in self._messages:
            raise ProtoTextError(f"{name} is defined twice")
        self._messages[name] = ProtoMessage(name)
        fields: list[ProtoField] = []
        nested: list[str] = []
        others: dict[str, Callable[[], object]] = {
            "message": lambda: nested.append(self._message(name, depth + 1)),
            "enum": lambda: self._enum(name),
            "oneof": lambda: fields.extend(self._oneof()),
            "extend": self._skip_block,
            "option": lambda: self._until(";"),
            "reserved": lambda: self._until(";"),
            "extensions": lambda: self._until(";"),
            ";": lambda: None,
        }
        self._take("{")
        while (word := self._next()) != "}":
            # What is followed by a name and a number is a field, whatever its type is called.
            if word in others and (word == ";" or not self._is_field()):
                others[word]()
            else:
                fields.append(self._field(word))
        numbers = [each.number for each in fields]
        if len(set(numbers)) < len(numbers) or len({each.name for each in fields}) < len(fields):
            raise ProtoTextError(f"{name} has a number or a name of a field twice")
        self._messages[name] = ProtoMessage(name, tuple(fields), tuple(nested))
        return name

    def _is_field(self) -> bool:
        """Whether a name, = and a number come next."""
        return self._peek(1) == "=" and _NUMBER.fullmatch(self._peek(2)) is not None

    def _field(self, word: str, oneof: str = "") -> ProtoField:
        label = ""
        if word in ("optional", "required", "repeated") and not self._is_field():
            label, word = word, self._next()
        key = ""
        if word == "map" and self._peek() == "<":
            self._take("<")
            key = self._name()
            if key not in SCALARS - {"double", "float", "bytes"}:
                raise ProtoTextError(f"a map has keys of {key}")
            self._take(",")
            word = self._name()
            self._take(">")
        elif word == "group":
            raise ProtoTextError(f"field {self._peek()} is a group, which no column can hold")
        name = self._name()
        self._take("=")
        number = self._number()
        words = self._options()
        self._take(";")
        implicit = "IMPLICIT" in words or (
            self._implicit and "EXPLICIT" not in words and "LEGACY_REQUIRED" not in words
        )
        presence = bool(oneof) or label in ("optional", "required") or (self._syntax == "editions" and not implicit)
        repeated = label == "repeated" or bool(key)
        return ProtoField(name, number, _kind(word), repeated, presence and not repeated, oneof, key)

    def _oneof(self) -> list[ProtoField]:
        name, found = self._name(), []
        self._take("{")
        while (word := self._next()) != "}":
            if word == "option" and not self._is_field():
                self._until(";")
            elif word != ";":
                found.append(self._field(word, name))
        return found

    def _enum(self, scope: str) -> None:
        name = _joined(scope, self._name())
        values: dict[int, str] = {}
        self._take("{")
        while (word := self._next()) != "}":
            if word in ("option", "reserved") and self._peek() != "=":
                self._until(";")
            elif word != ";":
                self._take("=")
                negative = self._peek() == "-"
                if negative:
                    self._take("-")
                number = self._integer()
                if number > _INT32 - (not negative):
                    raise ProtoTextError(f"{name}.{word} is {number}, which no enum holds")
                self._options()
                self._take(";")
                # Of names for one number the first one counts.
                values.setdefault(-number if negative else number, word)
        self._enums[name] = values

    def _options(self) -> list[str]:
        if self._peek() != "[":
            return []
        self._take("[")
        return self._until("]")

    def _until(self, end: str) -> list[str]:
        """The words up to an end that lies in no bracket."""
        found, depth = [], 0
        while (word := self._next()) != end or depth:
            depth += (word in ("{", "[", "<")) - (word in ("}", "]", ">"))
            found.append(word)
        return found

    def _skip_block(self) -> None:
        while self._next() != "{":
            pass
        self._until("}")

    def _number(self) -> int:
        found = self._integer()
        if not 1 <= found <= _NUMBER_MAX:
            raise ProtoTextError(f"{found} is no number of a field")
        return found

    def _integer(self) -> int:
        word = self._next()
        if _NUMBER.fullmatch(word) is None:
            raise self._wrong(word)
        try:
            return int(word, 16 if word[:2] in ("0x", "0X") else 8 if word[0] == "0" else 10)
        except ValueError:
            raise self._wrong(word) from None

    def _name(self) -> str:
        word = self._next()
        if not (word[:1].isalpha() or word[:1] in "_."):
            raise self._wrong(word)
        return word

    def _take(self, word: str) -> None:
        found = self._next()
        if found != word:
            raise ProtoTextError(f"{word!r} is expected and {found!r} found")

    def _next(self) -> str:
        if self._at >= len(self._tokens):
            raise ProtoTextError("it ends too early")
        self._at += 1
        return self._tokens[self._at - 1]

    def _peek(self, ahead: int = 0) -> str:
        place = self._at + ahead
        return self._tokens[place] if place < len(self._tokens) else ""

    @staticmethod
    def _wrong(word: str) -> ProtoTextError:
        return ProtoTextError(f"{word[:40]!r} is not expected")


def _tokens(text: str) -> list[str]:
    return [found["token"] for found in _TOKEN.finditer(text) if found["token"] is not None]


def _text(word: str) -> str:
    if len(word) < 2 or word[0] not in "\"'" or word[-1] != word[0]:
        raise ProtoTextError(f"{word[:40]!r} is no text")
    return word[1:-1]


def _kind(word: str) -> str:
    if not (word[:1].isalpha() or word[:1] in "_."):
        raise ProtoTextError(f"{word[:40]!r} is no type")
    return word


def _joined(scope: str, name: str) -> str:
    return f"{scope}.{name}" if scope else name
