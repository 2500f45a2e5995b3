"""Which blocks of a slice's logs apply, and in which order."""

from __future__ import annotations

import pyarrow as pa

from hudi_table.codec.avro.schema import arrow_to_avro
from hudi_table.codec.log.blocks import rollback_block
from hudi_table.codec.log.rows import avro_block
from hudi_table.model.names import RECORD_KEY, parse_log_file
from hudi_table.table.rows.log_scan import VisibleInstants, slice_blocks
from hudi_table.table.view.file_groups import LogFile
from tests.support.tables import memory_storage

SCHEMA = pa.schema([(RECORD_KEY, pa.string())])
AVRO = arrow_to_avro(SCHEMA, table_name="t")
TIMES = [f"2026010100000{number}000" for number in range(10)]
ALL = VisibleInstants(TIMES[-1], frozenset(TIMES), frozenset(), TIMES[0])


def block(time: str, *compacted: str) -> bytes:
    return avro_block(pa.table([["a"]], schema=SCHEMA), AVRO, time, compacted=compacted)


def applied(*logs: bytes, visible: VisibleInstants = ALL) -> list[str]:
    """The instants of the blocks that apply of logs with these bytes."""
    storage, found = memory_storage(), []
    for number, data in enumerate(logs, 1):
        name = parse_log_file(f".f-0_{TIMES[0]}.log.{number}_0-0-{number}")
        assert name is not None
        storage.put(f"p/{name}", data)
        found.append(LogFile(f"p/{name}", len(data), name))
    return [each.instant for each in slice_blocks(storage, sorted(found, key=lambda log: log.sort_key), visible)]


def test_a_rollback_block_takes_back_every_block_of_its_instant_and_no_other() -> None:
    one, two, back = block(TIMES[1]), block(TIMES[2]), rollback_block(TIMES[3], TIMES[1])
    assert applied(one + one, two, back) == [TIMES[2]]
    assert applied(one, back, one) == [TIMES[1]], "what is written later counts"


def test_a_block_of_a_write_that_has_not_completed_is_left_out_alone() -> None:
    visible = VisibleInstants(TIMES[3], frozenset(TIMES[:4]), frozenset([TIMES[2]]), TIMES[0])
    assert applied(block(TIMES[1]), block(TIMES[2]), block(TIMES[5]), block(TIMES[3]), visible=visible) == [
        TIMES[1],
        TIMES[3],
    ]


def test_the_tenth_log_of_a_slice_comes_after_the_second() -> None:
    assert applied(*map(block, TIMES)) == TIMES


def test_the_block_of_a_log_compaction_stands_where_the_last_one_stood_that_it_replaces() -> None:
    merged = block(TIMES[5], TIMES[1], TIMES[2])
    assert applied(block(TIMES[1]), block(TIMES[2]), block(TIMES[4]), merged) == [TIMES[5], TIMES[4]]
