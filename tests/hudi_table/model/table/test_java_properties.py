"""Properties are written as `java.util.Properties.store` writes them, and read as its `load` reads
them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_table.model.table.java_properties import parse_properties, render_properties

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (" a b ", "\\ a b "),
        ("  a", "\\  a"),
        ("a=b:c#d!e\\f", "a\\=b\\:c\\#d\\!e\\\\f"),
        ("\t\n\r\f", "\\t\\n\\r\\f"),
        ("é", "\\u00E9"),
        ("\U0001f600", "\\uD83D\\uDE00"),
        ("\x7f~", "\\u007F~"),
    ],
)
def test_values_are_escaped_as_java_does(value: str, written: str) -> None:
    """Of the spaces in a value only the first character is one that Java escapes."""
    assert render_properties({"k": value}) == f"k={written}\n"


def test_each_space_of_a_key_is_escaped() -> None:
    assert render_properties({" a b ": ""}) == "\\ a\\ b\\ =\n"


@given(st.dictionaries(TEXTS, TEXTS, max_size=4))
def test_what_is_written_is_read_again(properties: dict[str, str]) -> None:
    assert parse_properties(render_properties(properties, ("a comment",))) == properties


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("a = b", {"a": "b"}),
        ("a b", {"a": "b"}),
        ("a:b=c", {"a": "b=c"}),
        ("  a=b \n#x=y\n!z=1\n\n", {"a": "b "}),
        ("a=b\\\n   c", {"a": "bc"}),
        ("a\\=b=c", {"a=b": "c"}),
        ("a", {"a": ""}),
        ("a=1\na=2", {"a": "2"}),
        ("a=\\u00e9\\q", {"a": "éq"}),
    ],
)
def test_texts_are_read_as_java_does(text: str, read: dict[str, str]) -> None:
    assert parse_properties(text) == read
