"""Which index would find a table's keys for less: a pure function of measured facts.

The model is plain and counts what a lookup opens and reads, since that is what it waits for. Of a
write of usual size: every file of the partitions that it touches (of a global index: every file) is
opened for its range; a simple index reads the key columns of those whose range meets a key, a bloom
index asks their filters first and reads those that hold a key or err, a bucket index reads nothing.
A record index opens its own file groups and reads of them the blocks of the keys, at most all.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from statistics import fmean

from hudi_table.model.counts import counted
from hudi_table.model.metadata_table import ShardLimits
from hudi_table.model.service.index_facts import FileFact, IndexAdvice, IndexFacts, LookupCost
from hudi_table.model.table.config import IndexType
from hudi_table.read.output.human import number, size

SAVING_LEAST = 16 << 20
"""Bytes that a write has to save before another index is worth a word."""
ERROR_MOST = 0.01
"""From this part of wrong answers on a filter is called too full."""
_INDEXED_KEY_BYTES = 32
"""Stored bytes of one key in a record index (measured with keys of 36 characters,
docs/reference/format.md)."""
_INDEX_BLOCK_BYTES = 20 << 10
"""Stored bytes of the block that has to be read for one key."""
_FILTER_KEYS = 60_000
_FILTER_BITS = 2_587_966
_FILTER_HASHES = 30
_FILTER_CHARACTERS = 431_380
_FILTER_ROWS_MAX = 2
_UNEVEN = 3.0
_LARGE = 2.0
_TINY = 1 / 32


def advise(facts: IndexFacts) -> IndexAdvice:
    """What lookups cost, and what would cost less. No advice where nothing was measured."""
    if facts.index.has_fixed_buckets:
        return IndexAdvice(facts.index, warnings=tuple(_bucket_warnings(facts)))
    warnings = tuple(_filter_warnings(facts))
    others = LOOKED_UP.get(facts.index)
    if not facts.upserts or not facts.seen or others is None:
        return IndexAdvice(facts.index, warnings=warnings)
    usual = _Usual(facts)
    now = usual.cost(facts.index)
    advice = IndexAdvice(facts.index, usual.rows, now, warnings=warnings)
    other = min(others, key=lambda kind: usual.cost(kind).bytes_read)
    then = usual.cost(other)
    if _worth(now, then):
        return _with(advice, other, then, usual.why_other(other))
    # A bucket is found by the key alone, so that one per partition cannot tell in which partition a key was before.
    if (not facts.index.is_global or not facts.partitioned) and _worth(now, LookupCost(0, 0)):
        return _with(advice, IndexType.BUCKET, LookupCost(0, 0), usual.why_bucket())
    return advice


def advice_words(advice: IndexAdvice) -> list[str]:
    """The advice in sentences, empty if there is nothing to do."""
    words = list(advice.warnings)
    if advice.better is not None and advice.now is not None and advice.then is not None:
        words.append(
            f"index {advice.better.value} would read {size(advice.then.bytes_read)} instead of "
            f"{size(advice.now.bytes_read)}: {advice.why}"
        )
    return words


LOOKED_UP = {
    IndexType.SIMPLE: (IndexType.BLOOM,),
    IndexType.BLOOM: (IndexType.SIMPLE,),
    IndexType.GLOBAL_SIMPLE: (IndexType.GLOBAL_BLOOM, IndexType.RECORD_INDEX),
    IndexType.GLOBAL_BLOOM: (IndexType.GLOBAL_SIMPLE, IndexType.RECORD_INDEX),
    IndexType.RECORD_INDEX: (IndexType.GLOBAL_SIMPLE, IndexType.GLOBAL_BLOOM),
}
"""Indexes that look keys up, of whose costs this module knows, and for each the other ways to do
the same."""

JUDGED = frozenset({IndexType.BUCKET, *LOOKED_UP})
"""Indexes of which something can be said at all."""


def _with(advice: IndexAdvice, better: IndexType, then: LookupCost, why: str) -> IndexAdvice:
    return IndexAdvice(advice.index, advice.rows, advice.now, better, then, why, advice.warnings)


def _worth(now: LookupCost, then: LookupCost) -> bool:
    return then.bytes_read * 2 <= now.bytes_read and now.bytes_read - then.bytes_read >= SAVING_LEAST


class _Usual:
    """The write of usual size: the mean of those that were measured."""

    def __init__(self, facts: IndexFacts) -> None:
        self.facts = facts
        self.rows = max(1, round(fmean(fact.rows for fact in facts.upserts)))
        partitions_written = fmean(fact.partitions for fact in facts.upserts)
        per_partition = facts.files / max(1, facts.partitions)
        self.searched = (
            facts.files
            if facts.index.is_global
            else min(facts.files, max(1, round(partitions_written * per_partition)))
        )
        self.updated = min(float(self.searched), fmean(fact.files for fact in facts.upserts))
        self.overlap = overlap(facts.seen)
        self.met = max(self.updated, self.searched * _any(self.overlap, self.rows))

    def cost(self, kind: IndexType) -> LookupCost:
        """Of an index that looks keys up."""
        if kind.metadata_partition is not None:
            return self._of_record_index()
        seen = self.facts.seen
        key_bytes = fmean(fact.key_bytes for fact in seen)
        footers = fmean(fact.footer_bytes - fact.filter_bytes for fact in seen) * self.searched
        if not kind.needs_filters:
            return LookupCost(self.searched, round(footers + self.met * key_bytes))
        filters = fmean(fact.filter_bytes or _filter_bytes(fact.rows) for fact in seen) * self.searched
        read = self.updated + (self.met - self.updated) * _any(self._error(), self.rows * self.overlap)
        return LookupCost(self.searched, round(footers + filters + read * key_bytes))

    def _of_record_index(self) -> LookupCost:
        keys = self.facts.keys
        whole = keys * _INDEXED_KEY_BYTES
        shards = min(ShardLimits().shards(keys), self.rows)
        return LookupCost(shards, min(whole, self.rows * min(whole, _INDEX_BLOCK_BYTES)))

    def _error(self) -> float:
        return fmean(fact.error if fact.has_filter else expected_error(fact.rows) for fact in self.facts.seen)

    def why_other(self, other: IndexType) -> str:
        if other.metadata_partition is not None:
            return (
                f"a write opens {counted(self.searched, 'file')} to find keys in {number(round(self.updated))} of them, where the record "
                "index knows each key's file; commits then write it too"
            )
        if self.facts.index.metadata_partition is not None and not other.needs_filters:
            return f"the key ranges of {number(round(self.met))} of {counted(self.searched, 'file')} meet a write: little is read of the files"
        if other.needs_filters:
            return (
                f"the key ranges of {number(round(self.met))} of {counted(self.searched, 'file')} meet a write, which finds keys "
                f"in {number(round(self.updated))} of them: filters spare the reading of the others"
            )
        return (
            f"a write finds keys in {number(round(self.updated))} of {counted(self.searched, 'file')}, or their ranges show it "
            "already: the filters are read and rule little out"
        )

    def why_bucket(self) -> str:
        return (
            f"a write finds keys in {number(round(self.updated))} of {counted(self.searched, 'file')}, so that their keys have to be "
            "read in any case; buckets need no lookup, but the table has to be written anew"
        )


def overlap(seen: Sequence[FileFact]) -> float:
    """The part of the files of its partition in whose range a key lies, as far as the smallest keys
    of the files tell it.

    1 for files that do not tell their range, or lie alone in their partition.
    """
    shares = []
    for fact in seen:
        others = [other for other in seen if other is not fact and other.partition == fact.partition]
        if others:
            shares.append(fmean(_holds(other, fact.smallest) for other in others))
    return fmean(shares) if shares else 1.0


def _holds(fact: FileFact, key: str | None) -> bool:
    if key is None or fact.smallest is None or fact.largest is None:
        return True
    return fact.smallest <= key <= fact.largest


def expected_error(rows: int) -> float:
    """The error of a filter of Hudi's default size over so many keys."""
    filled = min(_FILTER_ROWS_MAX, max(1, math.ceil(rows / _FILTER_KEYS)))
    fill = 1 - math.exp(-_FILTER_HASHES * rows / filled / _FILTER_BITS)
    return 1 - (1 - fill**_FILTER_HASHES) ** filled


def _filter_bytes(rows: int) -> int:
    return _FILTER_CHARACTERS * min(_FILTER_ROWS_MAX, max(1, math.ceil(rows / _FILTER_KEYS)))


def _any(probability: float, times: float) -> float:
    """The probability that something happens at least once."""
    if probability >= 1:
        return 1.0
    return -math.expm1(times * math.log1p(-probability))


def _filter_warnings(facts: IndexFacts) -> Iterator[str]:
    if not facts.index.needs_filters or not facts.seen:
        return
    full = [fact for fact in facts.seen if fact.has_filter and fact.error >= ERROR_MOST]
    if full:
        worst = max(full, key=lambda fact: fact.error)
        yield (
            f"the bloom filters of {len(full)} of {counted(len(facts.seen), 'file')} are too full: one lets {worst.error:.1%} of the keys "
            f"pass that it does not hold ({counted(worst.rows, 'row')}, {max(worst.fills):.0%} of its bits set); write with "
            f"hoodie.index.bloom.num_entries={_rounded(worst.rows)}, which takes effect as files are written anew"
        )
    without = sum(not fact.has_filter for fact in facts.seen)
    if without:
        yield f"files without a bloom filter: {without} of {len(facts.seen)}; each is read in full, until it is written anew"


def _bucket_warnings(facts: IndexFacts) -> Iterator[str]:
    sizes = facts.bucket_bytes
    if not sizes or not sum(sizes):
        return
    mean, largest = fmean(sizes), max(sizes)
    if largest >= _UNEVEN * mean and largest >= facts.target_bytes / 4:
        yield (
            f"buckets are uneven: the largest has {size(largest)}, {largest / mean:.1f} times the mean; if its partition is "
            "not larger than others, the hash fields have few values"
        )
    if largest >= _LARGE * facts.target_bytes:
        yield f"the largest bucket has {size(largest)}, and files should have {size(facts.target_bytes)}: more buckets (a resize) help"
    elif len(sizes) > facts.partitions and largest <= _TINY * facts.target_bytes:
        yield (
            f"the largest of {counted(len(sizes), 'bucket')} has {size(largest)}, and files should have "
            f"{size(facts.target_bytes)}: fewer buckets (a resize) help"
        )


def _rounded(rows: int) -> int:
    """A capacity for so many rows, in round numbers."""
    step = int(10 ** max(0, len(str(rows)) - 2))
    return math.ceil(rows / step) * step
