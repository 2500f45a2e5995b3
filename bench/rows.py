"""The rows that are raced over: TPC-H lineitem with a key, a year and an ordering column, and a
random tenth to upsert; and the tables that queries join with it.

Made once by tpchgen-cli (rows are the standard's, so they are the same on every machine) and kept
in `.cache/bench`.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bench.settings import KEY, ORDERING, PARTITION

ROWS_PER_SCALE = 6_000_000
ROW_GROUP_ROWS = 250_000
PART_ROWS = 375_000
UPDATED_SHARE = 0.1
NEWER = 100_000_000
"""Added to the ordering column of updated rows."""
CHECKED = (KEY, "l_orderkey", "l_quantity", ORDERING)


@dataclass(frozen=True, slots=True)
class Figures:
    """What must be equal in every contender's table: rows, distinct keys, and sums that no mixed-up
    row leaves alone."""

    rows: int
    keys: int
    order_keys: int
    quantity: int
    ordering: int
    product: int


@dataclass(frozen=True, slots=True)
class Workload:
    """Folders of Parquet files, and the figures that a table must show after each step."""

    base: Path
    updates: Path
    scale: float
    rows: int
    updated: int
    arrow_bytes: int
    loaded: Figures
    upserted: Figures


def figures(table: pa.Table) -> Figures:
    """The figures of a table with the columns `CHECKED`."""
    quantity = pc.cast(pc.multiply(table.column("l_quantity"), 100), pa.int64(), safe=False)
    return Figures(
        rows=len(table),
        keys=pc.count_distinct(table.column(KEY).cast(pa.string())).as_py(),
        order_keys=pc.sum(table.column("l_orderkey")).as_py() or 0,
        quantity=pc.sum(quantity).as_py() or 0,
        ordering=pc.sum(table.column(ORDERING)).as_py() or 0,
        product=pc.sum(pc.bit_wise_and(pc.multiply(table.column(ORDERING), quantity), (1 << 36) - 1)).as_py() or 0,
    )


def workload(cache: Path, rows: int) -> Workload:
    """The workload of about `rows` rows, made if it is not there."""
    folder = cache / f"lineitem-{rows}"
    done = folder / "workload.json"
    if not done.exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        done.write_text(json.dumps(_make(folder, rows)))
    known = json.loads(done.read_text())
    return Workload(
        folder / "base",
        folder / "updates",
        rows / ROWS_PER_SCALE,
        known["rows"],
        known["updated"],
        known["arrow_bytes"],
        Figures(**known["loaded"]),
        Figures(**known["upserted"]),
    )


def side_tables(load: Workload, names: tuple[str, ...]) -> dict[str, Path]:
    """Other tables of TPC-H at the scale of the workload, each one Parquet file beside it, made if
    they are not there."""
    folder = load.base.parent
    paths = {name: folder / f"{name}.parquet" for name in names}
    missing = [name for name, path in paths.items() if not path.exists()]
    if missing:
        raw = folder / "raw"
        _generate(raw, missing, load.scale)
        for name in missing:
            made = folder / f"{name}.unfinished"
            _write(_plain(pq.ParquetFile(raw / f"{name}.parquet").read()), made)
            made.rename(paths[name])
        shutil.rmtree(raw)
    return paths


def read(folder: Path, columns: tuple[str, ...] | None = None) -> pa.Table:
    """All rows of a folder of Parquet files."""
    wanted = None if columns is None else list(columns)
    return pa.concat_tables(pq.ParquetFile(file).read(wanted) for file in sorted(folder.glob("*.parquet")))


def _make(folder: Path, rows: int) -> dict[str, object]:
    raw, base, updates = (folder / name for name in ("raw", "base", "updates"))
    base.mkdir()
    updates.mkdir()
    parts = max(2, -(-rows // PART_ROWS))
    _generate(raw, ["lineitem"], rows / ROWS_PER_SCALE, "--parts", str(parts))
    chance = np.random.default_rng(20_130_101)
    total = arrow_bytes = 0
    changed = []
    for number, file in enumerate(sorted(raw.rglob("*.parquet"))):
        table = _with_columns(pq.ParquetFile(file).read(), total)
        total += len(table)
        arrow_bytes += table.nbytes
        _write(table, base / f"{number:03}.parquet")
        changed.append(_updated(table.filter(pa.array(chance.random(len(table)) < UPDATED_SHARE))))
    shutil.rmtree(raw)
    new = pa.concat_tables(changed)
    half = len(new) // 2
    for number, piece in enumerate((new.slice(0, half), new.slice(half))):
        _write(piece, updates / f"{number:03}.parquet")
    old = read(base, CHECKED)
    kept = old.filter(pc.invert(pc.is_in(old.column(KEY), value_set=new.column(KEY).combine_chunks())))
    after = figures(pa.concat_tables([kept, new.select(list(CHECKED))]))
    return {
        "rows": total,
        "updated": len(new),
        "arrow_bytes": arrow_bytes,
        "loaded": asdict(figures(old)),
        "upserted": asdict(after),
    }


def _generate(folder: Path, tables: list[str], scale: float, *more: str) -> None:
    generator = str(Path(sys.executable).with_name("tpchgen-cli"))
    wanted = ["--scale-factor", str(scale), "--tables", ",".join(tables), "--output-dir", str(folder)]
    subprocess.run([generator, "parquet", *wanted, *more], check=True, capture_output=True)


def _plain(table: pa.Table) -> pa.Table:
    """Plain nullable columns: pyarrow cannot take from string views."""
    return pa.table(
        {
            name: column.cast(pa.string()) if column.type == pa.string_view() else column
            for name, column in zip(table.column_names, table.columns, strict=True)
        }
    )


def _with_columns(table: pa.Table, start: int) -> pa.Table:
    """The columns, and the three that a table needs."""
    plain = _plain(table)
    columns = dict(zip(plain.column_names, plain.columns, strict=True))
    numbers = (columns["l_orderkey"].cast(pa.string()), columns["l_linenumber"].cast(pa.string()))
    columns[KEY] = pc.binary_join_element_wise(*numbers, "-")
    columns[PARTITION] = pc.year(columns["l_shipdate"]).cast(pa.int32())
    columns[ORDERING] = pa.array(np.arange(start, start + len(table)))
    return pa.table(columns)


def _updated(table: pa.Table) -> pa.Table:
    quantity = table.schema.get_field_index("l_quantity")
    ordering = table.schema.get_field_index(ORDERING)
    more = pc.add(table.column(quantity), pa.scalar(1, pa.int64())).cast(table.schema.field(quantity).type)
    newer = pc.add(table.column(ordering), NEWER)
    return table.set_column(quantity, "l_quantity", more).set_column(ordering, ORDERING, newer)


def _write(table: pa.Table, path: Path) -> None:
    pq.write_table(table, path, compression="zstd", compression_level=1, row_group_size=ROW_GROUP_ROWS)
