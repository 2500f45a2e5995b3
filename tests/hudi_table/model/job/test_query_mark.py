"""Checkpoints of ingests from statements over tables."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_table.model.job.checkpoint_text import form_of
from hudi_table.model.job.query_mark import QUERY_FORMAT, QueryMark

MARKS = st.builds(
    QueryMark, st.text(), st.text(), st.text(), st.dictionaries(st.text(), st.text()), st.text(), st.text()
)
WHOLE = json.loads(QueryMark("b", "run-1", "5f", {"orders": "1a"}).to_text())


@given(MARKS)
def test_a_mark_survives_its_text(mark: QueryMark) -> None:
    text = mark.to_text()
    assert form_of(text) == QUERY_FORMAT
    assert QueryMark.from_text(text) == mark


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '"query-1"',
        "{}",
        '{"format":null}',
        '{"format":"query-0"}',
        '{"format":"query-2"}',
        '{"format":1}',
    ],
)
def test_what_is_no_checkpoint_of_a_statement_is_refused(text: str) -> None:
    assert form_of(text) != QUERY_FORMAT
    with pytest.raises(ValueError, match="is no checkpoint of a statement"):
        QueryMark.from_text(text)


@pytest.mark.parametrize("name", ["batch", "attempt", "statement", "tables", "column", "value"])
def test_a_mark_that_lacks_something_is_refused(name: str) -> None:
    for text in (
        json.dumps({key: value for key, value in WHOLE.items() if key != name}),
        json.dumps(WHOLE | {"tables": ["orders"]}),
    ):
        with pytest.raises(ValueError, match="is no checkpoint of a statement"):
            QueryMark.from_text(text)
