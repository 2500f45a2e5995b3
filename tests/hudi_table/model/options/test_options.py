"""Options: what is known, what it means, what is refused."""

from __future__ import annotations

import re

import pytest

from hudi_table.errors import InvalidOptionError
from hudi_table.model.options.known import check_options, known_options
from hudi_table.model.options.write_options import Operation, SortMode, WriteOptions


def test_the_defaults_are_those_of_hudi_but_for_codec_and_filter() -> None:
    options = WriteOptions.parse({})
    assert (options.target_file_size, options.small_file_limit, options.record_size) == (125829120, 104857600, 1024)
    assert (options.combine_before_insert, options.allow_duplicate_inserts, options.allow_empty_commit) == (
        False,
        True,
        True,
    )
    assert (options.sort_mode, options.conflict_retries) == (SortMode.NONE, 0)
    assert (options.codec, options.bloom_enabled) == ("zstd", None)
    assert (options.bloom_type, options.bloom_entries, options.bloom_fpp) == ("DYNAMIC_V0", 60000, 1e-9)


def test_values_are_read_in_the_spellings_that_hudi_takes() -> None:
    options = WriteOptions.parse(
        {
            "hoodie.bulkinsert.sort.mode": "GLOBAL_SORT",
            "hoodie.parquet.compression.codec": "UNCOMPRESSED",
            "hoodie.combine.before.insert": "TRUE",
            "hoodie.index.bloom.fpp": "0.01",
        }
    )
    assert (options.sort_mode, options.codec, options.combine_before_insert) == (SortMode.GLOBAL, "none", True)
    assert options.bloom_fpp == 0.01


@pytest.mark.parametrize(
    ("key", "near"),
    [
        ("hoodie.parquet.max.filesize", "hoodie.parquet.max.file.size"),
        ("hoodie.bucket.index.num.bucket", "hoodie.bucket.index.num.buckets"),
        ("hoodie.lakeops.bucket.colon", "hoodie.lakeops.bucket.colon.rule"),
    ],
)
def test_an_unknown_key_is_refused_with_the_nearest_one(key: str, near: str) -> None:
    with pytest.raises(InvalidOptionError) as caught:
        check_options({key: "1"})
    assert f"unknown option {key!r}; did you mean {near!r}?" in str(caught.value)


def test_a_key_that_resembles_nothing_is_refused_without_a_guess() -> None:
    # What nearly all keys begin with makes no two of them alike.
    for key in ("zzz", "hoodie.zzz"):
        with pytest.raises(InvalidOptionError, match=f"'{key}'; remove it"):
            check_options({key: "1"})


def test_a_known_key_that_means_nothing_here_is_accepted() -> None:
    check_options({"hoodie.clean.automatic": "true", "hoodie.datasource.hive_sync.table": "t"})
    assert len(known_options()) > 600


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("hoodie.parquet.max.file.size", "0", "'0' is not a whole number from 1"),
        ("hoodie.parquet.max.file.size", "1MB", "'1MB' is not a whole number"),
        ("hoodie.combine.before.insert", "yes", "'yes' is neither 'true' nor 'false'"),
        ("hoodie.index.bloom.fpp", "2", "2 is not between 0 and 1"),
        ("hoodie.index.bloom.fpp", "x", "'x' is not a number"),
        ("hoodie.bloom.index.filter.type", "CUCKOO", "'CUCKOO' is none of SIMPLE, DYNAMIC_V0"),
    ],
)
def test_a_value_that_cannot_be_used_is_named_with_its_key(key: str, value: str, message: str) -> None:
    with pytest.raises(InvalidOptionError) as caught:
        WriteOptions.parse({key: value})
    assert f"option {key!r}: {message}" in str(caught.value)


@pytest.mark.parametrize("mode", ["PARTITION_PATH_REPARTITION", "partition_path_repartition_and_sort"])
def test_modes_that_bring_rows_of_a_partition_together_ask_for_what_is_always_so(mode: str) -> None:
    assert WriteOptions.parse({"hoodie.bulkinsert.sort.mode": mode}).sort_mode is SortMode.NONE


def test_a_value_that_is_no_text_is_refused() -> None:
    with pytest.raises(InvalidOptionError, match="must be a string, not 5; write it as '5'"):
        check_options({"hoodie.parquet.max.file.size": 5})  # type: ignore[dict-item]
    # A boolean is written as Hudi does, not as Python.
    with pytest.raises(InvalidOptionError, match="must be a string, not True; write it as 'true'"):
        check_options({"hoodie.combine.before.insert": True})  # type: ignore[dict-item]


def test_operations_have_the_names_that_hudi_gives_them() -> None:
    assert {operation.hudi_name for operation in Operation} == {
        "INSERT", "UPSERT", "DELETE", "BULK_INSERT", "INSERT_OVERWRITE", "INSERT_OVERWRITE_TABLE", "DELETE_PARTITION",
    }  # fmt: skip
    assert {operation.value for operation in Operation if operation.replaces} == {
        "insert_overwrite", "insert_overwrite_table", "delete_partition",
    }  # fmt: skip


NAMES = {
    "hoodie.bulkinsert.sort.mode": ("GLOBAL_SORT", "partition"),
    "hoodie.parquet.compression.codec": ("SNAPPY", "uncompressed"),
    "hoodie.layout.optimize.strategy": ("z-order", "HILBERT"),
    "hoodie.keygen.timebased.timestamp.type": ("DATE_STRING", "unix_timestamp"),
    "hoodie.keygen.timebased.timestamp.scalar.time.unit": ("SECONDS", "days"),
}


@pytest.mark.parametrize("key", NAMES)
def test_a_name_among_few_is_checked_by_the_gate_whoever_would_act_on_it(key: str) -> None:
    """A write took any layout, and a creation any codec, since neither acts on it."""
    for value in NAMES[key]:
        check_options({key: value})
    with pytest.raises(InvalidOptionError, match=rf"option '{re.escape(key)}': 'wat' is none of"):
        check_options({key: "wat"})


@pytest.mark.parametrize(
    "key",
    [
        "hoodie.partition.ttl.strategy.max.delete.partitions",
        "hoodie.bucket.index.split.threshold",
        "hoodie.bucket.index.merge.threshold",
    ],
)
def test_no_number_of_partitions_or_size_of_buckets_is_negative(key: str) -> None:
    with pytest.raises(InvalidOptionError, match=re.escape(key)):
        check_options({key: "-5"})
