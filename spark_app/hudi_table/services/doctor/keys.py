"""Rows that share their record key: within a partition, or in the whole table where its index is
global.

All keys are read, once, grouped by hash into parts that fit the memory budget, by way of disk past
it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from hudi_table.errors import InvalidRequestError, UnsupportedTableError
from hudi_table.model.counts import counted
from hudi_table.model.names import FILE_NAME, PARTITION_PATH, RECORD_KEY
from hudi_table.model.service.findings import Check, Finding, Severity
from hudi_table.model.table.config import KeyEncoding
from hudi_table.read.plan import Request
from hudi_table.read.scan import Scan
from hudi_table.services.doctor.examined import Examined
from hudi_table.table.keys.record_keys import refuse_unknown_generator
from hudi_table.table.rows.merge import one_chunk
from hudi_table.table.rows.parts import PARTS_MAX, hash_part
from hudi_table.table.rows.spill import GroupedRows
from hudi_table.write.keygen.table_keys import TableKeys

SAMPLES_MAX = 3
_BYTES_A_KEY = 200
_STORED_BYTES_A_ROW = 20


def duplicate_keys(seen: Examined, max_memory: int) -> Iterator[Finding]:
    """One finding for each partition with keys that come twice (one for a table with a global
    index), with samples."""
    config = seen.ctx.config
    everywhere = config.index is not None and config.index.type.is_global
    by = [RECORD_KEY] if everywhere else [PARTITION_PATH, RECORD_KEY]
    counts: dict[str, int] = {}
    samples: dict[str, list[str]] = {}
    for twice in _repeated(seen, by, max_memory):
        if everywhere:
            twice = twice.append_column(PARTITION_PATH, pa.repeat("", len(twice)))
        for place in twice[PARTITION_PATH].unique().to_pylist():
            there = twice.filter(pc.equal(twice[PARTITION_PATH], place))
            counts[place] = counts.get(place, 0) + len(there)
            known = samples.setdefault(place, [])
            known += [_sample(row) for row in there.slice(0, SAMPLES_MAX - len(known)).to_pylist()]
    for place in sorted(counts):
        where = "the table" if everywhere else f"partition {place!r}"
        yield Finding(
            Check.DUPLICATE_KEY,
            Severity.ERROR,
            place,
            f"{counted(counts[place], 'key')} of {where} with several rows, such as {'; '.join(samples[place])}",
            "delete these keys and write each once; concurrent writers without key conflicts, or stray files, make them",
        )


def wrong_keys(seen: Examined, max_memory: int) -> Iterator[Finding]:
    """One finding of the rows whose stored key is not made of their fields as writes make it, or
    whose fields make none: an upsert adds them a second time.

    Of a one-field complex key whose encoding the table does not tell, the one that most rows have
    counts as right.
    """
    config = seen.ctx.config
    if not config.populate_meta_fields or not config.record_key:
        return
    kinds = [config]
    if config.key_encoding == KeyEncoding.UNKNOWN:
        kinds = [replace(config, key_encoding=kind) for kind in (KeyEncoding.RAW, KeyEncoding.FIELD_PREFIXED)]
    try:
        makers = [TableKeys.of(kind) for kind in kinds]
        refuse_unknown_generator(config)
    except (InvalidRequestError, UnsupportedTableError):
        # Nobody here can make the keys of such a table, to compare them or to write.
        return
    wrong, samples = [0] * len(makers), [list[str]() for _ in makers]
    scan = Scan(seen.ctx, Request((RECORD_KEY, *makers[0].columns), max_memory=max(1, max_memory)))
    for batch in scan.to_batches():
        stored = one_chunk(batch.column(RECORD_KEY)).cast(pa.string())
        for number, maker in enumerate(makers):
            made = maker.keys_or_null(batch)
            other = pc.fill_null(pc.not_equal(stored, made), True)
            wrong[number] += pc.sum(other).as_py() or 0
            few = SAMPLES_MAX - len(samples[number])
            pairs = zip(stored.filter(other).slice(0, few), made.filter(other).slice(0, few), strict=True)
            samples[number] += [f"{has.as_py()!r} for {wants.as_py()!r}" for has, wants in pairs]
    best = min(range(len(makers)), key=wrong.__getitem__)
    if wrong[best]:
        yield Finding(
            Check.WRONG_KEY,
            Severity.ERROR,
            "",
            f"{counted(wrong[best], 'row')} with another record key than a write makes of their fields, such as {'; '.join(samples[best])}",
            "an upsert adds such rows a second time: delete them by the writer that made them, and write them again; "
            "releases and options of Hudi differ in the text of complex keys of one field and of timestamps",
        )


def _repeated(seen: Examined, by: list[str], max_memory: int) -> Iterator[pa.Table]:
    size = sum(info.size for info in seen.files.values())
    parts = min(PARTS_MAX, 1 + size // _STORED_BYTES_A_ROW * _BYTES_A_KEY // max(1, max_memory // 4))
    with GroupedRows(max(1, max_memory // 2)) as rows:
        for batch in _keys(seen, max_memory // 4):
            rows.add(batch, hash_part(batch.column(RECORD_KEY), parts))
        for part in sorted(rows.rows):
            table = pa.Table.from_batches(list(rows.read(part)))
            found = table.group_by(by).aggregate([([], "count_all"), (FILE_NAME, "min"), (FILE_NAME, "max")])
            yield found.filter(pc.greater(found["count_all"], 1))


def _keys(seen: Examined, max_memory: int) -> Iterator[pa.RecordBatch]:
    """Key, partition path and file name of every row, as plain strings."""
    config = seen.ctx.config
    if config.key_encoding == KeyEncoding.UNKNOWN:
        # Keys that are not stored are made here alone: any encoding tells which are equal.
        config = replace(config, key_encoding=KeyEncoding.RAW)
    stored = config.populate_meta_fields
    maker = TableKeys.of(config)
    columns = (RECORD_KEY, PARTITION_PATH, FILE_NAME) if stored else tuple({*maker.columns, *config.partition_fields})
    scan = Scan(seen.ctx, Request(columns, max_memory=max(1, max_memory)))
    for batch in scan.to_batches():
        keys = batch.column(RECORD_KEY) if stored else maker.record_keys(batch)
        places = batch.column(PARTITION_PATH) if stored else maker.partition_paths(batch)
        names = batch.column(FILE_NAME) if stored else pa.nulls(len(batch), pa.string())
        plain = [column.cast(pa.string()) for column in (keys, places, names)]
        yield pa.RecordBatch.from_arrays(plain, names=[RECORD_KEY, PARTITION_PATH, FILE_NAME])


def _sample(row: dict[str, object]) -> str:
    first, last = row[f"{FILE_NAME}_min"], row[f"{FILE_NAME}_max"]
    files = f" in {first}" + (f" and {last}" if last != first else "") if first else ""
    return f"{row[RECORD_KEY]!r} ({row['count_all']} times{files})"
