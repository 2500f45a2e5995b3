"""Java's `.properties` text: what `java.util.Properties` loads and stores."""

from __future__ import annotations

import re
from collections.abc import Mapping

_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_WRITTEN = {"\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f"}
_SEPARATOR = re.compile(r"(?<!\\)(?:\\\\)*(?P<sep>[ \t\f]*[=:][ \t\f]*|[ \t\f]+)")
_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|.)", re.DOTALL)


def parse_properties(text: str) -> dict[str, str]:
    """Keys and values, later ones winning; comments, continuation lines and escapes as Java reads
    them."""
    result: dict[str, str] = {}
    for line in _logical_lines(text):
        match = _SEPARATOR.search(line)
        key, value = (line, "") if match is None else (line[: match.start("sep")], line[match.end() :])
        result[_unescape(key)] = _unescape(value)
    return result


def render_properties(properties: Mapping[str, str], comments: tuple[str, ...] = ()) -> str:
    """Text with sorted keys, escaped as Java writes them (non-Latin text as \\uXXXX)."""
    lines = [f"#{comment}" for comment in comments]
    lines += [f"{_escape(key, key=True)}={_escape(properties[key], key=False)}" for key in sorted(properties)]
    return "\n".join(lines) + "\n"


def _logical_lines(text: str) -> list[str]:
    lines: list[str] = []
    pending = ""
    for raw in re.split(r"\r\n|\n|\r", text):
        line = raw.lstrip(" \t\f")
        if not pending and (not line or line[0] in "#!"):
            continue
        trailing = len(line) - len(line.rstrip("\\"))
        if trailing % 2:
            pending += line[:-1]
            continue
        lines.append(pending + line)
        pending = ""
    return [*lines, pending] if pending else lines


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text

    def one(match: re.Match[str]) -> str:
        body = match[1]
        return chr(int(body[1:], 16)) if len(body) == 5 else _ESCAPES.get(body, body)

    plain = _ESCAPE.sub(one, text)
    # Java text is UTF-16: a pair of escaped surrogates is one character.
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _escape(text: str, *, key: bool) -> str:
    out: list[str] = []
    for position, char in enumerate(text):
        if char in _WRITTEN:
            out.append(_WRITTEN[char])
        elif char in "\\:=#!" or (char == " " and (key or position == 0)):
            out.append("\\" + char)
        elif not 0x20 <= ord(char) <= 0x7E:
            raw = char.encode("utf-16-be")
            out.extend(f"\\u{raw[i]:02X}{raw[i + 1]:02X}" for i in range(0, len(raw), 2))
        else:
            out.append(char)
    return "".join(out)
