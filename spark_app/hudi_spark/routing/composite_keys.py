"""Composite record keys whose text is one though their values differ, refused before any row is
moved (`write.keygen.composite_keys` tells why).

Rows of one key are made one by Spark itself where an index is global, so tasks would come too late.
Without such text it is two more counts in a pass that is made anyhow; only rows whose text may be
another's too are grouped by their keys.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql import types as st

from hudi_spark.routing.key_columns import quoted
from hudi_table.model.names import RECORD_KEY
from hudi_table.model.table.config import TableConfig
from hudi_table.write.keygen.composite_keys import WORDS, one_text, word_in_key
from hudi_table.write.keygen.table_keys import TableKeys


def doubts(frame: DataFrame, config: TableConfig) -> dict[str, Column]:
    """Counts by name, for an aggregation over rows with their record key: the rows whose text may
    be another key's too, and of each field of the key those that hold a word for null or empty.
    Nothing for a key of one field."""
    if len(config.record_key) < 2 or TableKeys.of(config).function is not None:
        return {}
    counts = {_DOUBTFUL: sf.count_if(_doubtful(config))}
    for number, name in enumerate(config.record_key):
        if isinstance(frame.schema[name].dataType, st.StringType):
            for at, (word, _) in enumerate(WORDS):
                counts[f"word_{number}_{at}"] = sf.count_if(sf.col(quoted(name)) == word)
    return counts


def refuse_doubts(rows: DataFrame, counted: dict[str, int], config: TableConfig, place: str | None) -> None:
    """Raise InvalidDataError if the counts of `doubts` say that rows of different keys would be
    one.

    `place`: the column in whose values keys are unique, None where they are in the whole table.
    """
    for number, name in enumerate(config.record_key):
        for at, (word, meaning) in enumerate(WORDS):
            if counted.get(f"word_{number}_{at}"):
                raise word_in_key(name, word, meaning)
    if not counted.get(_DOUBTFUL):
        return
    values = sf.struct(*(sf.col(quoted(name)) for name in config.record_key))
    found = (
        rows.where(_doubtful(config))
        .groupBy(*([place] if place else []), RECORD_KEY)
        .agg(sf.count_distinct(values).alias("values"))
        .where("values > 1")
        .limit(1)
        .collect()
    )
    if found:
        raise one_text(found[0][RECORD_KEY])


_DOUBTFUL = "doubtful"


def _doubtful(config: TableConfig) -> Column:
    """Whether the pattern between two fields stands more than once in the text of a key."""
    found = sf.lit(False)
    for name in config.record_key[1:]:
        pattern = sf.lit(f",{name}:")
        rest = sf.replace(sf.col(RECORD_KEY), pattern, sf.lit(""))
        found = found | (sf.length(RECORD_KEY) - sf.length(rest) != sf.length(pattern))
    return sf.coalesce(found, sf.lit(False))
