"""Faults of indexes, of keys and of partition paths: rows that are not found again, and come
twice."""

from __future__ import annotations

from tests.museum.mutant import Mutant

MUTANTS = (
    Mutant(
        name="the range of keys in a footer is wrong, so that a file's keys are looked for elsewhere",
        bug="HUDI-4992",
        file="codec/keyrange.py",
        old="return min(first[0], second[0], key=_code_units), max(first[1], second[1], key=_code_units)",
        new="return first[0], second[1]",
        test="hudi_table/codec/test_keyrange.py::test_merged_ranges_are_the_range_of_all_keys",
    ),
)
