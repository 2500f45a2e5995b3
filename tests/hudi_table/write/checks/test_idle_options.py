"""Options that say nothing of the table that they are given to, and names that nobody can read:
refused, or told."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from hudi_table.api import create_table
from hudi_table.errors import InvalidOptionError, InvalidRequestError
from hudi_table.model.options.known import IgnoredOptionWarning
from hudi_table.model.options.write_options import COLON_RULE
from hudi_table.write.checks.table_options import refuse_contradictions
from tests.support.written import SCHEMA


@pytest.mark.parametrize("argument", ["name", "database"])
@pytest.mark.parametrize("text", ["a/b\n", "a\x00b", "tab\tbed", "\u2028", "\ud800"])
def test_a_name_with_characters_that_are_not_printed_is_refused(argument: str, text: str) -> None:
    more: dict[str, Any] = {argument: text}
    with pytest.raises(InvalidRequestError, match=f"{argument} .* not printed"):
        create_table(f"memory://{uuid.uuid4()}", SCHEMA, record_key="id", **more)


def test_a_rule_of_hashing_is_refused_where_nothing_is_hashed() -> None:
    uri = f"memory://{uuid.uuid4()}"
    with pytest.raises(InvalidOptionError, match=f"{COLON_RULE} is of a bucket index, and the table's is Simple"):
        create_table(uri, SCHEMA, record_key="id", options={COLON_RULE: "1.x"})
    table = create_table(uri, SCHEMA, record_key="id")
    with pytest.raises(InvalidOptionError, match=f"{COLON_RULE} is of a bucket index, and the table's is Simple"):
        table.clean({COLON_RULE: "1.x"})


def test_an_encoding_of_keys_is_told_to_do_nothing_where_there_is_but_one() -> None:
    encoding = {"hoodie.write.complex.keygen.new.encoding": "true"}
    with pytest.warns(IgnoredOptionWarning, match="it is of a complex key of one field, and the table has none"):
        table = create_table(f"memory://{uuid.uuid4()}", SCHEMA, record_key="id", options=encoding)
    with pytest.warns(IgnoredOptionWarning, match="it is of a complex key of one field, and the table has none"):
        refuse_contradictions(table.context.config, encoding)
