"""Columns of few values in a stream: whatever a table's own dictionary is, the stream has one."""

from __future__ import annotations

import pyarrow as pa

from hudi_table.codec.dictionaries import SharedDictionaries


def table(values: list[str | None], *, dictionary: bool = True) -> pa.Table:
    column = pa.chunked_array([pa.array(values, pa.string())])
    return pa.table(
        {"city": column.dictionary_encode() if dictionary else column, "n": pa.array(range(len(values)), pa.int64())}
    )


def test_tables_with_dictionaries_of_their_own_or_none_come_back_with_a_common_one() -> None:
    given: list[list[str | None]] = [["a", None, "b"], ["b", "c"], [], ["a"]]
    shared = SharedDictionaries()
    encoded = [shared.encoded(table(values, dictionary=number != 1)) for number, values in enumerate(given)]
    assert {str(found.schema.field("city").type) for found in encoded} == {"int32"}
    decoded = pa.concat_tables([shared.decoded(found) for found in encoded])
    assert decoded["city"].to_pylist() == [value for values in given for value in values]
    assert {tuple(chunk.dictionary.to_pylist()) for chunk in decoded["city"].chunks} == {("a", "b", "c")}


def test_a_column_that_has_none_in_the_first_table_stays_plain() -> None:
    shared = SharedDictionaries()
    shared.encoded(table(["a"], dictionary=False))
    assert shared.encoded(table(["b"])).schema.field("city").type == pa.string()
