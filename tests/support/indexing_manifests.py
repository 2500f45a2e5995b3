"""Specs of services of type Indexing: what the definitions take, and what they refuse with which
words."""

from __future__ import annotations

from typing import Any


def service(**fields: Any) -> tuple[str, dict[str, Any]]:
    return "TableService", {"tableRef": {"name": "flights"}, "type": "Cleaning", **fields}


BY_N = {"name": "by_n", "column": "n"}
UPPER = {"name": "up", "column": "n", "function": "upper"}
AT = {"name": "at", "column": "at", "function": "date_format", "options": {"format": "y, M"}, "using": "bloom_filters"}
SECTIONS_BAD: list[tuple[dict[str, Any], str]] = [
    ({"indexes": [BY_N | {"name": "by-n"}]}, "letters, digits and _"),
    ({"indexes": [{"name": "by_n"}]}, "column"),
    ({"indexes": [BY_N | {"column": "a,b"}]}, "no comma, bracket or quote"),
    ({"indexes": [BY_N | {"column": "upper(n)"}]}, "no comma, bracket or quote"),
    ({"indexes": [BY_N, BY_N | {"column": "m"}]}, "two entries whose name is 'by_n'"),
    ({"indexes": [BY_N | {"using": "bloom_filters"}]}, "using and options belong to an index with a function"),
    ({"indexes": [BY_N | {"options": {"format": "yyyy"}}]}, "using and options belong to an index with a function"),
    ({"indexes": [UPPER | {"function": "sha"}]}, "must be one of upper, lower"),
    ({"indexes": [UPPER | {"using": "record_index"}]}, "must be one of column_stats, bloom_filters"),
    ({"indexes": [UPPER | {"options": {"trimString": "a'b"}}]}, "their values hold no '"),
    ({"indexes": [UPPER | {"options": {"trim string": "a"}}]}, "options are named by letters"),
    ({"indexes": [UPPER, UPPER | {"name": "low", "function": "lower"}]}, "a column has one index of an expression"),
    ({"indexes": [BY_N], "partitions": ["partitioned_record_index"]}, "needs record_index, not partitioned_record"),
    ({"indexes": [BY_N], "drop": ["by_n"]}, "to be built and to be dropped"),
    ({"drop": ["by-n"]}, "drop names indexes by letters"),
]
INDEXING_GOOD = [
    service(type="Indexing"),
    service(type="Indexing", indexing={}, mode="Plan"),
    service(type="Indexing", indexing={"partitions": ["column_stats", "record_index"]}, schedule="0 4 * * *"),
    service(type="Indexing", indexing={"partitions": ["files", "bloom_filters", "partitioned_record_index"]}),
    service(type="Indexing", indexing={"indexes": [BY_N, UPPER | {"column": "first name"}, AT], "drop": ["old"]}),
]
INDEXING_BAD = [
    (service(indexing={"partitions": ["column_stats"]}), "indexing belongs to type Indexing"),
    (service(type="Indexing", indexing={"partitions": ["expr_index"]}), "must be one of files, column_stats"),
    (service(type="Indexing", indexing={"partitions": ["column_stats"] * 2}), "has 'column_stats' twice"),
    (
        service(type="Indexing", indexing={"partitions": ["record_index", "partitioned_record_index"]}),
        "give one of record_index and partitioned_record_index",
    ),
    *((service(type="Indexing", indexing=section), said) for section, said in SECTIONS_BAD),
    (service(type="Indexing", when={"commitsSince": "> 20"}), "Indexing builds what is not there: it takes no when"),
    (service(type="Indexing", mode="Execute"), "modes Schedule and Execute are for services with a plan"),
]
