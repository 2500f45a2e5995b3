"""Texts of others in events and logs: one line, bounded, and nothing unseen in it."""

from __future__ import annotations

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_operator.api.words import one_line
from hudi_operator.cli.logs import FORMAT, MESSAGE_LENGTH_MAX, LineFormatter


@given(st.text(max_size=60), st.integers(1, 40))
def test_any_text_becomes_one_bounded_line_of_what_is_seen(text: str, length_max: int) -> None:
    found = one_line(text, length_max)
    assert len(found) <= length_max
    assert len(found.splitlines()) <= 1
    assert not set(found) & set("\n\r\x1b\x00\x7f\x85\u2028\u2029\u202e\u200b")
    found.encode()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("table flights is ready", "table flights is ready"),
        ("Zürich 東京 😀", "Zürich 東京 😀"),
        ("a\n2026-01-01 ERROR forged", "a\\n2026-01-01 ERROR forged"),
        ("\x1b[2Jgone", "\\x1b[2Jgone"),
        ("abc\u202ecod.exe", "abc\\u202ecod.exe"),
    ],
)
def test_what_is_seen_stays_and_the_rest_is_spelled_out(text: str, shown: str) -> None:
    assert one_line(text, 100) == shown


def test_a_message_is_one_line_of_the_log_and_a_traceback_keeps_its_lines() -> None:
    try:
        raise ValueError("first\nsecond")
    except ValueError as error:
        caught = (type(error), error, error.__traceback__)
    record = logging.LogRecord("x", logging.INFO, "", 0, "of %s", ("a\nb" + "c" * 2 * MESSAGE_LENGTH_MAX,), None)
    assert "\n" not in LineFormatter(FORMAT).format(record)
    assert len(LineFormatter(FORMAT).format(record)) == MESSAGE_LENGTH_MAX
    record.exc_info = caught
    assert len(LineFormatter(FORMAT).format(record).splitlines()) > 2
