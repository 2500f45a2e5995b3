"""Base files that an engine may read by itself: those of slices without logs, on local disk, whose
columns mean the same to it.

An engine that has the files prunes row groups, decodes and aggregates in its own threads, without
Arrow in between. What it is given must come to the rows that a scan gives. So each footer is read
first, with its check sum; a file that does not fit is left to the scan: of another type that Arrow
converts by rules of its own, INT96, two columns whose names differ only in case, a filter, another
name today, or a skeleton, which holds no column of the table's own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from hudi_table.codec.parquet import read_footer
from hudi_table.errors import HudiError
from hudi_table.model.names import is_skeleton
from hudi_table.read.plan import ScanPlan
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.view.file_system_view import BaseFile, FileSlice

FILES_MAX = 1000
"""An engine opens every file of its list before a condition can spare one; beyond so many, pruning
by the scan is worth more."""


@dataclass(frozen=True, slots=True)
class EngineFiles:
    """Whole paths of files with one schema, and of each column of the plan its type in them, None
    where they lack it."""

    paths: tuple[str, ...]
    stored: tuple[pa.DataType | None, ...]


def split(
    ctx: TableContext, plan: ScanPlan, is_misread: Callable[[Any], bool] | None = None
) -> tuple[list[EngineFiles], ScanPlan]:
    """The files that an engine may read, and the plan of what is left to the scan. `is_misread`
    tells of a file by its metadata that this engine takes it for another one."""
    if plan.bound is not None or plan.history is not None or "://" in ctx.base_path or len(plan.slices) > FILES_MAX:
        return [], plan
    if not plan.schema.names or _names_clash(plan.schema.names):
        return [], plan
    groups: dict[pa.Schema, list[str]] = {}
    unfit: set[pa.Schema] = set()
    left: list[FileSlice] = []
    for item in plan.slices:
        schema = None
        if item.base is not None and not item.logs and not is_skeleton(item.base.path):
            schema = _schema_of(ctx, item.base, is_misread)
        if schema is not None and schema not in groups and not _fits(schema, plan.schema):
            unfit.add(schema)
        if item.base is None or schema is None or schema in unfit:
            left.append(item)
        else:
            groups.setdefault(schema, []).append(f"{ctx.base_path}/{item.base.path}")
    return [_files(paths, schema, plan.schema) for schema, paths in groups.items()], replace(plan, slices=tuple(left))


def _files(paths: Sequence[str], schema: pa.Schema, wanted: pa.Schema) -> EngineFiles:
    types = dict(zip(schema.names, schema.types, strict=True))
    return EngineFiles(tuple(paths), tuple(types.get(name) for name in wanted.names))


def _schema_of(ctx: TableContext, file: BaseFile, is_misread: Callable[[Any], bool] | None) -> pa.Schema | None:
    """The schema of a file; None of one that the scan has something to say about, be it that it is
    gone."""
    try:
        with ctx.storage.open_read(file.path) as source:
            footer = read_footer(source, path=file.path)
    except HudiError:
        return None
    assert footer.metadata is not None
    leaves = (footer.metadata.schema.column(number) for number in range(footer.metadata.num_columns))
    if any(leaf.physical_type == "INT96" for leaf in leaves) or (is_misread and is_misread(footer.metadata)):
        return None
    return footer.schema


def _fits(stored: pa.Schema, wanted: pa.Schema) -> bool:
    if _names_clash(stored.names):
        return False
    folded = {name.lower() for name in stored.names}
    for field in wanted:
        if field.name in stored.names:
            known = stored.field(field.name)
            if (known.nullable and not field.nullable) or not _means_the_same(known.type, field.type):
                return False
        elif not field.nullable or field.name.lower() in folded:
            return False
    return True


def _names_clash(names: Sequence[str]) -> bool:
    return len({name.lower() for name in names}) < len(names)


def _means_the_same(stored: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether an engine's own type, or a cast that keeps every value, comes to what a scan
    gives."""
    if _is_same(stored, wanted):
        return True
    if pt.is_int32(stored) or pt.is_float32(stored):
        return bool(pt.is_int64(wanted) if pt.is_int32(stored) else pt.is_float64(wanted))
    if pt.is_decimal(stored) and pt.is_decimal(wanted):
        return bool(stored.scale == wanted.scale and stored.precision <= wanted.precision)
    return False


def _is_same(stored: pa.DataType, wanted: pa.DataType) -> bool:
    """Arrow's equality passes over the names of a list's items, which tell the lists of two levels
    that Hudi wrote once."""
    if pt.is_list(stored) and pt.is_list(wanted):
        items = (stored.value_field, wanted.value_field)
        return items[0].name == items[1].name and _is_same(items[0].type, items[1].type)
    if pt.is_map(stored) and pt.is_map(wanted):
        return _is_same(stored.key_type, wanted.key_type) and _is_same(stored.item_type, wanted.item_type)
    if pt.is_struct(stored) and pt.is_struct(wanted):
        if [field.name for field in stored] != [field.name for field in wanted]:
            return False
        return all(_is_same(one.type, other.type) for one, other in zip(stored, wanted, strict=True))
    return bool(stored == wanted)
