"""Advice on an index follows from what was measured, and measuring opens few files.

Aspects: the pure function over made facts, for each index; facts of real tables; the bound on what
is opened; what `hudictl info` shows.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hudi_table.api import HudiTable, create_table
from hudi_table.cli.program import main
from hudi_table.codec.bloom.filters import BloomFilter, BloomFilterSpec
from hudi_table.model.service.index_facts import FileFact, IndexFacts, UpsertFact
from hudi_table.model.table.config import IndexType
from hudi_table.services.index.advice import advice_words, advise, expected_error, overlap
from hudi_table.services.index.facts import COMMITS_SEEN_MAX, FILES_SEEN_MAX, index_facts
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.view.file_system_view import FileSystemView
from tests.hudi_table.codec.bloom.test_claims import numbered
from tests.support.recording import RecordingStorage, Trace
from tests.support.written import SCHEMA, new_table, rows

MIB = 1 << 20
RANDOM = FileFact("x", 1_000_000, 12 * MIB, 4_000, "0001", "fffe")
FILTERED = replace(
    RANDOM, footer_bytes=866_724, filter_bytes=862_724, fills=(0.5, 0.5), error=2e-9, rows=120_000, key_bytes=2 * MIB
)
FEW = UpsertFact(2_000, 5, 1)
NO_PACKING = {"hoodie.parquet.small.file.limit": "0"}


def facts(index: IndexType = IndexType.SIMPLE, **more: Any) -> IndexFacts:
    """A partition of 100 files whose ranges all overlap, and upserts that meet five of them."""
    given: dict[str, Any] = {
        "partitioned": True, "partitions": 1, "files": 100, "seen": (RANDOM,) * 4, "upserts": (FEW,) * 3,
    }  # fmt: skip
    return IndexFacts(index, **(given | more))


def ordered(each: FileFact = RANDOM) -> tuple[FileFact, ...]:
    """Files whose ranges lie one behind the other."""
    return tuple(replace(each, smallest=f"{number:03d}0", largest=f"{number:03d}9") for number in range(4))


def test_where_ranges_overlap_and_updates_meet_few_files_filters_spare_most_reading() -> None:
    sound = replace(RANDOM, rows=100_000, key_bytes=2 * MIB)
    advice = advise(facts(seen=(sound,) * 4))
    assert advice.better is IndexType.BLOOM
    assert advice.now is not None
    assert advice.then is not None
    assert advice.now.files_opened == advice.then.files_opened == 100
    assert advice.now.bytes_read == pytest.approx(200 * MIB, rel=0.01)
    assert advice.then.bytes_read == pytest.approx(100 * 862_760 + 5 * 2 * MIB, rel=0.01)
    assert "100 of 100 files" in advice.why
    assert "in 5 of them" in advice.why


def test_files_of_more_keys_than_a_default_filter_holds_get_no_such_advice() -> None:
    advice = advise(facts())
    assert expected_error(1_000_000) > 0.99
    assert advice.better is IndexType.BUCKET


def test_a_global_index_is_never_told_to_become_one_that_is_not() -> None:
    sound = replace(RANDOM, rows=100_000, key_bytes=2 * MIB)
    assert advise(facts(IndexType.GLOBAL_SIMPLE, seen=(sound,) * 4)).better is IndexType.RECORD_INDEX
    every = (UpsertFact(100_000_000, 100, 1),)
    assert advise(facts(IndexType.GLOBAL_SIMPLE, upserts=every)).better is None
    assert advise(facts(IndexType.GLOBAL_SIMPLE, upserts=every, partitioned=False)).better is IndexType.BUCKET


def test_a_few_keys_in_many_files_are_found_for_least_by_a_record_index() -> None:
    advice = advise(facts(IndexType.GLOBAL_SIMPLE))
    assert advice.better is IndexType.RECORD_INDEX
    assert advice.then is not None
    assert advice.then.files_opened == 10
    assert advice.then.bytes_read == 2_000 * (20 << 10)
    assert "opens 100 files to find keys in 5 of them" in advice.why
    assert advise(facts(IndexType.RECORD_INDEX)).better is None
    one = replace(RANDOM, key_bytes=1_000)
    cheap = advise(facts(IndexType.RECORD_INDEX, seen=ordered(one), files=4, upserts=(UpsertFact(5_000_000, 4, 1),)))
    assert cheap.better is IndexType.GLOBAL_SIMPLE
    assert "little is read of the files" in cheap.why


def test_a_global_index_looks_into_all_files_and_another_into_those_of_the_partitions_written_to() -> None:
    spread = {"partitions": 20, "upserts": (UpsertFact(10, 1, 2),)}
    for index, opened in ((IndexType.SIMPLE, 10), (IndexType.GLOBAL_SIMPLE, 100)):
        now = advise(facts(index, **spread)).now
        assert now is not None
        assert now.files_opened == opened


def test_where_updates_meet_every_file_no_filter_helps_and_buckets_do() -> None:
    advice = advise(facts(upserts=(UpsertFact(1_000_000, 100, 1),)))
    assert advice.better is IndexType.BUCKET
    assert "written anew" in advice.why


def test_where_ranges_tell_the_file_a_simple_index_costs_less_than_filters() -> None:
    assert overlap(ordered()) == 0
    few = (UpsertFact(100, 1, 1),)
    assert advise(facts(seen=ordered(), upserts=few)).better is None
    advice = advise(facts(IndexType.BLOOM, seen=ordered(FILTERED), upserts=few))
    assert advice.better is IndexType.SIMPLE


def test_small_savings_and_tables_without_upserts_are_not_worth_a_word() -> None:
    tiny = replace(RANDOM, key_bytes=10_000)
    assert not advise(facts(seen=(tiny,) * 4)).matters
    assert not advise(facts(upserts=())).matters
    assert advise(facts(upserts=())).now is None
    assert not advise(facts(seen=(), files=0)).matters


def test_a_filter_too_full_is_told_with_the_capacity_that_it_should_have() -> None:
    full = replace(FILTERED, rows=512_345, fills=(0.95, 0.95), error=0.33)
    advice = advise(facts(IndexType.BLOOM, seen=(full, FILTERED, FILTERED)))
    assert "1 of 3 files" in advice.warnings[0]
    assert "33.0%" in advice.warnings[0]
    assert "hoodie.index.bloom.num_entries=520000" in advice.warnings[0]
    assert advise(facts(IndexType.SIMPLE, seen=(full,))).warnings == ()


def test_files_that_have_no_filter_are_told_to_a_bloom_index_alone() -> None:
    advice = advise(facts(IndexType.BLOOM, seen=(RANDOM, FILTERED)))
    assert ["without a bloom filter: 1 of 2" in words for words in advice.warnings] == [True]


@pytest.mark.parametrize(
    ("sizes", "words"),
    [
        ((100 * MIB, 110 * MIB, 90 * MIB), ""),
        ((300 * MIB, 280 * MIB), "more buckets"),
        ((1000, 2000, 3000), "fewer buckets"),
        ((1000,), ""),
        ((200 * MIB, 10 * MIB, 10 * MIB, 10 * MIB), "uneven"),
        ((), ""),
    ],
)
def test_buckets_are_judged_by_their_sizes(sizes: tuple[int, ...], words: str) -> None:
    advice = advise(facts(IndexType.BUCKET, bucket_bytes=sizes, seen=(), upserts=()))
    assert bool(advice.warnings) == bool(words)
    assert all(words in told for told in advice.warnings)


@pytest.mark.parametrize("keys", [60_000, 120_000, 300_000])
def test_the_expected_error_of_a_filter_is_that_of_real_ones(keys: int) -> None:
    real = BloomFilter.from_keys(numbered(keys), BloomFilterSpec()).false_positive_rate()
    assert expected_error(keys) == pytest.approx(real, rel=0.1, abs=1e-8)


def view_of(table: HudiTable) -> FileSystemView:
    return FileSystemView(table.context, load_timeline(table.context))


def test_facts_are_those_of_footers_and_commits() -> None:
    small = {
        "hoodie.index.bloom.num_entries": "10",
        "hoodie.index.bloom.fpp": "0.1",
        "hoodie.bloom.index.filter.type": "SIMPLE",
    }
    table = new_table(index="Bloom")
    for number in range(3):
        made = [(f"k{number}-{n:03d}", "x", n) for n in range(100)]
        table.insert(rows(*made), options=NO_PACKING | small)
    table.upsert(rows(("k1-000", "x", 1), ("k1-001", "x", 1), ("k2-000", "x", 2), ("new", "y", 3)), options=small)
    found = index_facts(view_of(table))
    assert found is not None
    assert (found.index, found.partitions, found.files, found.keys) == (IndexType.BLOOM, 2, 4, 301)
    assert found.upserts == (UpsertFact(4, 2, 2),)
    assert [fact.rows for fact in found.seen] == sorted((fact.rows for fact in found.seen), key=lambda n: n == 1)
    first = next(fact for fact in found.seen if fact.smallest == "k0-000")
    assert first.largest == "k0-099"
    assert first.fills[0] > 0.99
    assert first.error > 0.9
    assert 0 < first.filter_bytes < first.footer_bytes
    assert overlap(found.seen) == 0
    words = advice_words(advise(found))
    assert "3 of 4 files are too full" in words[0]


def test_of_many_files_a_sample_is_opened_and_of_many_commits_the_newest() -> None:
    table = new_table(index="Simple")
    for number in range(COMMITS_SEEN_MAX + 12):
        table.upsert(rows((f"k{number}", "x", number)), options=NO_PACKING)
    trace = Trace()
    recorded = replace(table.context, storage=RecordingStorage(table.context.storage, trace))
    timeline = load_timeline(table.context)
    found = index_facts(FileSystemView(recorded, timeline))
    assert found is not None
    assert found.files == COMMITS_SEEN_MAX + 12
    assert len(found.seen) == FILES_SEEN_MAX
    assert len([step for step in trace.steps if step.call == "open_read"]) == FILES_SEEN_MAX
    assert len([step for step in trace.steps if step.call == "get" and "commit" in step.key]) <= COMMITS_SEEN_MAX
    assert len(found.upserts) == COMMITS_SEEN_MAX


def test_of_a_bucket_table_nothing_is_opened() -> None:
    table = new_table(index={"type": "Bucket", "buckets": 3})
    table.upsert(rows(*((f"k{n}", "x", n) for n in range(30))))
    trace = Trace()
    recorded = replace(table.context, storage=RecordingStorage(table.context.storage, trace))
    found = index_facts(FileSystemView(recorded, load_timeline(table.context)))
    assert found is not None
    assert len(found.bucket_bytes) == 3
    assert not [step for step in trace.steps if step.call in ("open_read", "get")]


@pytest.mark.parametrize("moves", ["true", "false"])
def test_no_lookup_is_judged_of_a_record_index_whose_keys_stay_for_it_becomes_no_other(moves: str) -> None:
    table = new_table(index="RecordIndex", options={"hoodie.record.index.update.partition.path": moves})
    table.upsert(rows(("a", "x", 1)))
    found = index_facts(FileSystemView(table.context, load_timeline(table.context)))
    assert found is not None
    assert bool(found.seen) == bool(found.upserts) == (moves == "true")


def test_info_shows_what_lookups_cost_and_what_would_be_better(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = create_table(tmp_path / "t", SCHEMA, record_key="id", partition_by="city", index="Bloom")
    full = {
        "hoodie.index.bloom.num_entries": "1",
        "hoodie.index.bloom.fpp": "0.5",
        "hoodie.bloom.index.filter.type": "SIMPLE",
    }
    table.upsert(rows(*((f"k{n}", "x", n) for n in range(50))), options=full)
    assert main(["info", str(tmp_path / "t"), "-o", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    told = told["items"][0] if "items" in told else told
    assert told["indexLookups"] == {"rows": 50, "filesOpened": 1, "bytesRead": told["indexLookups"]["bytesRead"]}
    assert "too full" in told["indexAdvice"][0]
    assert main(["info", str(tmp_path / "t")]) == 0
    shown = capsys.readouterr().out
    assert "a write of 50 rows opens 1 file" in shown
    assert "too full" in shown
