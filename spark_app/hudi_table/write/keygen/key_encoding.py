"""Whether a complex key of one field is stored as `v` or as `field:v`: from the properties, else
from what the files hold.

Facts (measured): Hudi 0.15.0 and 1.0.2 write `v`, 1.1.1 writes `field:v` unless
`hoodie.write.complex.keygen.new.encoding=true`, and none of them stores which. So only a table of
ours tells for certain; of another one some stored keys are held against their fields.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from hudi_table.codec.log.blocks import BlockType, scan_blocks
from hudi_table.codec.log.rows import read_rows
from hudi_table.codec.parquet import read_batches, read_footer
from hudi_table.errors import InvalidOptionError, ObjectNotFoundError, UnsupportedTableError
from hudi_table.model.names import RECORD_KEY
from hudi_table.model.table.config import KeyEncoding
from hudi_table.model.table.properties import KEY_ENCODING, one_complex_field
from hudi_table.model.table.version_properties import GENERATOR_TYPE
from hudi_table.table.keys.java_text import column, java_text
from hudi_table.table.rows.merge import one_chunk
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.timeline import Timeline
from hudi_table.table.view.file_system_view import FileSlice, FileSystemView

SAMPLE_FILES = 4
SAMPLE_ROWS = 1_000
_ROWS = (BlockType.AVRO, BlockType.PARQUET, BlockType.HFILE)
_OPTION = {"true": KeyEncoding.RAW, "false": KeyEncoding.FIELD_PREFIXED}


def key_encoding_option(options: Mapping[str, str]) -> KeyEncoding | None:
    """What the option, whose value was admitted, says; None if it is not given."""
    text = options.get(KEY_ENCODING)
    return None if text is None else _OPTION[text.strip().lower()]


def resolve_key_encoding(ctx: TableContext, timeline: Timeline, options: Mapping[str, str]) -> None:
    """Make `ctx.config` tell how keys are encoded, before any is made.

    An empty table of Hudi's takes the option, else what the release that made it writes by default,
    where its properties tell that: 0.15.0 stores the generator's class, 1.x its type, and then
    nobody can tell. Raises InvalidOptionError for an option that the table contradicts,
    UnsupportedTableError if its files hold keys of both kinds, or nothing tells.
    """
    config, option = ctx.config, key_encoding_option(options)
    if not one_complex_field(config):
        return
    known = config.key_encoding
    if known == KeyEncoding.UNKNOWN:
        known = _stored(ctx, timeline) or option or _by_release(ctx)
    if option is not None and option != known:
        raise InvalidOptionError(
            f"{KEY_ENCODING}={options[KEY_ENCODING]} writes keys as {_shown(ctx, option)}, and table {config.name!r} has them as "
            f"{_shown(ctx, known)}: its rows would come twice; leave the option out",
            base_path=ctx.base_path,
        )
    ctx.config = replace(config, key_encoding=known)


def sampled_encodings(ctx: TableContext, timeline: Timeline) -> dict[KeyEncoding, str]:
    """The encodings that a sample of the newest snapshot's stored keys has, each with a key of
    it."""
    name = ctx.config.record_key[0]
    found: dict[KeyEncoding, str] = {}
    for rows in _sample(ctx, timeline, name):
        keys, texts = one_chunk(rows.column(RECORD_KEY)).cast(pa.string()), java_text(column(rows, name), name)
        # A text may itself begin with the field's name: then the key is that text, or has it twice.
        prefixed = pc.and_(pc.starts_with(keys, f"{name}:"), pc.not_equal(keys, texts))
        for kind, mask in ((KeyEncoding.FIELD_PREFIXED, prefixed), (KeyEncoding.RAW, pc.invert(prefixed))):
            such = keys.filter(mask)
            if len(such):
                found.setdefault(kind, such[0].as_py())
    return found


def _stored(ctx: TableContext, timeline: Timeline) -> KeyEncoding | None:
    if not ctx.config.populate_meta_fields:
        return None
    found = sampled_encodings(ctx, timeline)
    if len(found) > 1:
        raw, prefixed = found[KeyEncoding.RAW], found[KeyEncoding.FIELD_PREFIXED]
        raise UnsupportedTableError(
            f"table {ctx.config.name!r} has record keys of two encodings, {raw!r} and {prefixed!r}: writers of different releases or options "
            "have written it, and some of its rows are there twice; `hudictl doctor --keys` counts them; delete those of one encoding "
            "with the writer that made them",
            base_path=ctx.base_path,
        )
    return next(iter(found), None)


def _by_release(ctx: TableContext) -> KeyEncoding:
    if GENERATOR_TYPE not in ctx.config.extra:
        return KeyEncoding.RAW
    raise UnsupportedTableError(
        f"table {ctx.config.name!r} was made by a Hudi of 1.x and stores no row that shows how its key {ctx.config.record_key[0]!r} is encoded: "
        f"give {KEY_ENCODING}, true where its other writers make keys {_shown(ctx, KeyEncoding.RAW)} (Hudi 1.0.2), false where "
        f"they make {_shown(ctx, KeyEncoding.FIELD_PREFIXED)} (Hudi 1.1.1 by default)",
        base_path=ctx.base_path,
    )


def _shown(ctx: TableContext, encoding: str) -> str:
    return f"`{ctx.config.record_key[0]}:v`" if encoding == KeyEncoding.FIELD_PREFIXED else "`v`"


def _sample(ctx: TableContext, timeline: Timeline, name: str) -> Iterator[pa.RecordBatch | pa.Table]:
    """Rows of some slices, the oldest and the newest ones: where writers have changed, they
    differ."""
    slices = sorted(FileSystemView(ctx, timeline).latest_slices(), key=lambda item: item.instant)
    half = SAMPLE_FILES // 2
    chosen = slices if len(slices) <= SAMPLE_FILES else [*slices[:half], *slices[-half:]]
    columns = [RECORD_KEY, *dict.fromkeys([name, name.partition(".")[0]])]
    for item in chosen:
        try:
            yield from _rows(ctx, item, columns)
        except ObjectNotFoundError:
            # Cleaned meanwhile: others are left.
            continue


def _rows(ctx: TableContext, item: FileSlice, columns: list[str]) -> Iterator[pa.RecordBatch | pa.Table]:
    """The first rows of a slice's base file, all where its range of keys looks mixed, and the first
    of its newest log."""
    prefix = f"{ctx.config.record_key[0]}:"
    if item.base is not None:
        path = item.base.path
        with ctx.storage.open_read(path) as source:
            footer = read_footer(source, path=path)
            prefixed = {key.startswith(prefix) for key in (footer.min_key, footer.max_key) if key is not None}
            for batch in read_batches(source, columns, path=path, batch_rows=SAMPLE_ROWS, metadata=footer.metadata):
                yield batch
                prefixed |= set(pc.starts_with(batch.column(RECORD_KEY).cast(pa.string()), prefix).to_pylist())
                if len(prefixed) == 1:
                    # The smallest and the largest key of the file look like these.
                    break
    for log in item.logs[-1:]:
        with ctx.storage.open_read(log.path) as source:
            for block in scan_blocks(source, path=log.path):
                if block.type in _ROWS:
                    yield read_rows(source, block, columns).slice(0, SAMPLE_ROWS)
                    break
