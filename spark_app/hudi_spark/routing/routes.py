"""Where the rows of a DataFrame go: counts per partition, slots, and the number of the task that
writes each row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sf

from hudi_spark.routing import key_columns
from hudi_spark.routing.arrow_rows import ArrowRows
from hudi_spark.routing.bloom_lookup import filtered_keys
from hudi_spark.routing.composite_keys import doubts, refuse_doubts
from hudi_spark.routing.index_lookup import lookup_locations
from hudi_spark.routing.insert_duplicates import unstored
from hudi_spark.routing.numbering import SHARES, Numbering, Placed, Shared
from hudi_spark.routing.stored_keys import PATH, SLOT, STORED, WORTH, in_best_place, stored_keys
from hudi_table.errors import InvalidDataError, InvalidRequestError
from hudi_table.index.base import FileSearch, Index, Slot, UniformBuckets
from hudi_table.model.counts import counted
from hudi_table.model.names import RECORD_KEY
from hudi_table.model.options.write_options import DuplicatePolicy, Operation
from hudi_table.model.table.config import TableConfig
from hudi_table.table.rows.merge import ALWAYS_DELETE
from hudi_table.table.view.file_system_view import FileSlice
from hudi_table.write.attempt import Attempt
from hudi_table.write.checks.request import Prepared
from hudi_table.write.incoming import keyed_schema
from hudi_table.write.keygen import columns as keygen
from hudi_table.write.keygen.table_keys import TableKeys
from hudi_table.write.workload import PlannedTask

TASK = "_lakeops_task"
_BUCKET = "_lakeops_bucket"
_LITERALS_MAX = 256
"""Slots up to which a row finds its task in literals of the query; above, in a broadcast table."""
PARTITIONS_MAX = 100_000
"""Partitions that one write may touch: the driver holds one count for each."""


@dataclass(frozen=True, slots=True)
class Profile:
    """A DataFrame with key columns, and what a first pass over them counted."""

    rows: DataFrame
    counts: dict[str, int]
    colons: bool
    row_bytes: int


@dataclass(frozen=True, slots=True)
class Routing:
    """Rows with the number of their task; `columns` is the Arrow schema that tasks make of them.

    `filled` are partitions that get new keys: the keys stay in the tasks, so the commit touches
    them as a whole. `numbering`: how whoever has the rows numbers them alike, where the hash of
    their keys is all. `sent`: the columns that cross to the tasks.
    """

    rows: DataFrame
    columns: pa.Schema
    sent: tuple[str, ...]
    filled: tuple[str, ...] = ()
    numbering: Numbering | None = None


def profile(df: DataFrame, config: TableConfig, prepared: Prepared, source: ArrowRows | None = None) -> Profile:
    """Add the key columns and count. `source`: what the frame is made of. Raises InvalidDataError
    for null keys and null ordering values, keys and paths that are not UTF-8, and composite keys
    whose text is one."""
    keyed = _keyed(df, config)
    needed = {*config.record_key, *config.partition_fields, *prepared.combine_orderings}
    names = [name for name in df.columns if name in needed or any(each.startswith(f"{name}.") for each in needed)]
    alone = source.frame(names) if source is not None else None
    rows = keyed if alone is None else _keyed(alone, config)
    missing = sf.col(RECORD_KEY).isNull() | (sf.col(RECORD_KEY) == "")
    orderings = prepared.combine_orderings if prepared.combines else ()
    unordered = {f"unordered_{i}": sf.col(key_columns.quoted(name)).isNull() for i, name in enumerate(orderings)}
    doubtful = doubts(rows, config)
    partition_counts = (
        rows.groupBy(PATH)
        .agg(
            sf.count(sf.lit(1)).alias("rows"),
            sf.count_if(missing).alias("missing"),
            *(sf.count_if(condition).alias(name) for name, condition in unordered.items()),
            sf.count_if(~(sf.is_valid_utf8(RECORD_KEY) & sf.is_valid_utf8(PATH))).alias("unsound"),
            sf.max(sf.col(RECORD_KEY).contains(":")).alias("colons"),
            *(count.alias(name) for name, count in doubtful.items()),
        )
        .limit(PARTITIONS_MAX + 1)
        .collect()
    )
    if len(partition_counts) > PARTITIONS_MAX:
        raise InvalidRequestError(
            f"the rows fall into more than {PARTITIONS_MAX} partitions; write them in several calls, or partition less"
        )
    unsound = sum(row["unsound"] for row in partition_counts)
    if unsound:
        # Their paths come here as other texts, by which no row would be found again.
        raise InvalidDataError(
            f"record key or partition path holds text that is not UTF-8 in {counted(unsound, 'row')}: correct it, or drop the rows"
        )
    nulls = {
        field: sum(row[name] for row in partition_counts) for field, name in zip(orderings, unordered, strict=True)
    }
    _refuse(sum(row["missing"] for row in partition_counts), nulls, config)
    place = None if prepared.index.is_global else PATH
    refuse_doubts(rows, {name: sum(row[name] for row in partition_counts) for name in doubtful}, config, place)
    counts = {row[PATH]: row["rows"] for row in partition_counts}
    for path in counts:
        problem = keygen.path_problem(path) if path else None
        if problem:
            raise InvalidDataError(f"partition path {path!r} {problem}; change the value or drop the rows")
    size = 8 * len(df.columns) + 16 * sum(1 for _, kind in df.dtypes if kind in ("string", "binary"))
    return Profile(keyed, counts, any(row["colons"] for row in partition_counts), size)


def _keyed(df: DataFrame, config: TableConfig) -> DataFrame:
    return df.withColumns(
        {RECORD_KEY: key_columns.record_key_column(df, config), PATH: key_columns.partition_path_column(df, config)}
    )


def _refuse(missing: int, unordered: Mapping[str, int], config: TableConfig) -> None:
    if missing:
        raise InvalidDataError(
            f"record key {', '.join(repr(name) for name in config.record_key)} is null or empty in {counted(missing, 'row')}; "
            "fill the key or drop the rows"
        )
    for name, nulls in unordered.items():
        if nulls:
            raise InvalidDataError(
                f"ordering column '{name}' is null in {counted(nulls, 'row')}: which row of a key is newer cannot be determined; "
                "fill the column or drop the rows"
            )


def is_numbered_by_keys(prepared: Prepared) -> bool:
    """Whether the task of a row follows from its key and partition alone, and no row is left
    out."""
    alone = not prepared.index.reads_snapshot or not prepared.operation.merges
    return alone and prepared.operation is not Operation.DELETE and prepared.duplicates is DuplicatePolicy.NONE


def route(counted: Profile, attempt: Attempt) -> Routing:
    """Plan the tasks of an attempt and number the rows by them."""
    prepared = attempt.prepared
    columns = keyed_schema(prepared)
    if prepared.duplicates is not DuplicatePolicy.NONE:
        counted = replace(counted, rows=unstored(counted.rows, _searched(counted, attempt), attempt))
    if not prepared.index.reads_snapshot:
        rows, placed = _by_hash(counted, attempt, prepared.index)
        if prepared.operation is Operation.DELETE:
            rows = rows.withColumn(ALWAYS_DELETE, sf.lit(True))
        sent = _sent(rows, columns, attempt)
        return Routing(
            _selected(rows, sent), columns, sent, numbering=placed if is_numbered_by_keys(prepared) else None
        )
    numbering: Numbering | None = None
    if prepared.finds_keys:
        rows = _by_slot(_tagged(counted, attempt), counted, attempt)
    else:
        rows, numbering = _by_share(counted, attempt)
    filled = {item.task.partition for item in attempt.planned if item.task.base_path is None}
    sent = _sent(rows, columns, attempt)
    return Routing(_selected(rows, sent), columns, sent, tuple(sorted(filled)), numbering)


def _by_hash(counted: Profile, attempt: Attempt, index: Index) -> tuple[DataFrame, Numbering]:
    """Every bucket or node of every partition that has rows gets a task; those that no row meets
    write nothing."""
    by_path = {path: index.slots_in(path) for path in sorted(counted.counts)}
    slots = [slot for found in by_path.values() for slot in found]
    shares = [max(1, counted.counts[slot.partition] // len(by_path[slot.partition])) for slot in slots]
    planned = attempt.plan(slots, shares, counted.row_bytes * sum(shares))
    numbers = {source.slot: item.task.index for item in planned for source in item.sources}
    in_tasks = index.in_tasks(list(by_path))
    places = {slots[position]: number for position, number in numbers.items()}
    numbering = Placed(TableKeys.of(attempt.ctx.config), in_tasks.index, places)
    if in_tasks.buckets is not None:
        return _by_bucket(counted, in_tasks.buckets, slots, numbers), numbering
    placed = key_columns.place_column(in_tasks.index, places, PATH)
    return counted.rows.withColumn(TASK, placed).where(sf.col(TASK) >= 0), numbering


def _by_bucket(
    counted: Profile, buckets: UniformBuckets, slots: Sequence[Slot], numbers: Mapping[int, int]
) -> DataFrame:
    """The same number of buckets in every partition: what Spark computes itself."""
    rows = counted.rows.withColumn(_BUCKET, key_columns.bucket_column(buckets, colons=counted.colons))
    if len(slots) <= _LITERALS_MAX:
        paths = sf.array(*(sf.lit(path) for path in sorted(counted.counts)))
        first = (sf.array_position(paths, sf.col(PATH)).cast("int") - 1) * sf.lit(buckets.buckets)
        table = sf.array(*(sf.lit(numbers.get(position, -1)) for position in range(len(slots))))
        return rows.withColumn(TASK, sf.get(table, first + sf.col(_BUCKET)).cast("int")).where(sf.col(TASK) >= 0)
    known = [(slots[position].partition, slots[position].bucket, number) for position, number in numbers.items()]
    places = rows.sparkSession.createDataFrame(known, f"{PATH} string, {_BUCKET} int, {TASK} int")
    return rows.join(sf.broadcast(places), [PATH, _BUCKET])


def _tagged(counted: Profile, attempt: Attempt) -> DataFrame:
    """Rows with `SLOT`, the number of the file group that holds their key, or null; and, of a
    global index, the rows that delete moved keys where they were."""
    prepared = attempt.prepared
    rows = counted.rows
    if prepared.index.is_global and prepared.operation.merges:
        rows = _newest(rows, prepared.combine_orderings)
    if not prepared.operation.merges:
        return rows.withColumn(SLOT, sf.lit(None).cast("int"))
    in_tasks = prepared.index.as_of(attempt.ctx, attempt.timeline).in_tasks(sorted(counted.counts))
    if in_tasks.search is None:
        return lookup_locations(rows, _searched(counted, attempt), attempt, in_tasks)
    stored = _stored(rows, counted, attempt, in_tasks.search)
    if prepared.index.is_global and prepared.operation is Operation.DELETE:
        found = rows.drop(PATH).join(stored.drop(STORED, WORTH), RECORD_KEY)
        return found.withColumn(ALWAYS_DELETE, sf.lit(True))
    if prepared.index.is_global:
        return _moved(rows, stored, prepared.rule.ordering, _searched(counted, attempt))
    joined = in_best_place(rows.join(stored, [RECORD_KEY, PATH], "left"), _searched(counted, attempt), PATH)
    return joined.withColumn(ALWAYS_DELETE, sf.lit(True)) if prepared.operation is Operation.DELETE else joined


def _stored(rows: DataFrame, counted: Profile, attempt: Attempt, search: FileSearch) -> DataFrame:
    """The stored keys that rows may have: those that bloom filters leave, else all in the
    partitions that are searched."""
    slices = _searched(counted, attempt)
    if search.filters is not None and slices:
        total, everywhere = sum(counted.counts.values()), attempt.prepared.index.is_global
        most = sum(total if everywhere else counted.counts[item.partition] for item in slices)
        filtered = filtered_keys(rows, slices, attempt, search.filters, most, by_ranges=search.by_ranges)
        if filtered is not None:
            return filtered
    return stored_keys(rows, slices, attempt)


def _newest(rows: DataFrame, orderings: Sequence[str]) -> DataFrame:
    order = [sf.col(key_columns.quoted(name)).desc() for name in orderings] or [sf.monotonically_increasing_id().desc()]
    window = Window.partitionBy(RECORD_KEY).orderBy(*order)
    return rows.withColumn("_rank", sf.row_number().over(window)).where("_rank = 1").drop("_rank")


def _moved(rows: DataFrame, stored: DataFrame, ordering: str | None, slices: Sequence[FileSlice]) -> DataFrame:
    """Rows at their own partition, and for keys stored in another one a delete there; where event
    time decides, a row older than the stored one is dropped instead, and its key stays where it
    is."""
    found = stored.withColumnRenamed(PATH, "_old_path")
    joined = in_best_place(rows.join(found, RECORD_KEY, "left"), slices, "_old_path")
    if ordering is not None:
        elsewhere = sf.col("_old_path").isNotNull() & (sf.col("_old_path") != sf.col(PATH))
        older = sf.coalesce(sf.col(key_columns.quoted(ordering)) < sf.col(STORED), sf.lit(False))
        joined = joined.where(~(elsewhere & older))
    joined = joined.drop(STORED)
    # A key may be found more than once: inserts add rows unseen.
    is_home = sf.coalesce(sf.col("_old_path") == sf.col(PATH), sf.lit(False))
    one_key = Window.partitionBy(RECORD_KEY)
    joined = joined.withColumn("_home", is_home).withColumn("_homes", sf.max("_home").over(one_key))
    joined = joined.withColumn("_nth", sf.row_number().over(one_key.orderBy(SLOT)))
    new = ~sf.col("_homes") & (sf.col("_nth") == 1)
    stays = joined.where(sf.col("_home") | new).withColumn(SLOT, sf.when(sf.col("_home"), sf.col(SLOT)))
    stays = stays.withColumn(ALWAYS_DELETE, sf.lit(None).cast("boolean"))
    leaves = joined.where(sf.col("_old_path").isNotNull() & ~sf.col("_home")).withColumn(PATH, sf.col("_old_path"))
    leaves = leaves.withColumn(ALWAYS_DELETE, sf.lit(True))
    made = ("_old_path", "_home", "_homes", "_nth")
    return stays.drop(*made).unionByName(leaves.drop(*made))


def _searched(counted: Profile, attempt: Attempt) -> list[FileSlice]:
    return attempt.view.latest_slices(None if attempt.prepared.index.is_global else sorted(counted.counts))


def _by_slot(tagged: DataFrame, counted: Profile, attempt: Attempt) -> DataFrame:
    """Number the rows by the tasks of their slot; a slot of several tasks shares its rows out by
    the hash of the key."""
    kept = tagged.persist()
    try:
        found = kept.groupBy(SLOT, PATH).count().collect()
        slices = _searched(counted, attempt) if attempt.prepared.operation.merges else []
        slots: list[Slot] = []
        rows: list[int] = []
        places: dict[tuple[str, int | None], int] = {}
        for row in sorted(found, key=lambda r: (r[PATH], -1 if r[SLOT] is None else r[SLOT])):
            number = row[SLOT]
            places[(row[PATH], number)] = len(slots)
            slots.append(Slot(row[PATH]) if number is None else Slot(row[PATH], file_id=slices[number].file_id))
            rows.append(row["count"])
        planned = attempt.plan(slots, rows, counted.row_bytes * sum(rows))
    except BaseException:
        kept.unpersist()
        raise
    return _numbered(kept, places, planned, rows)


def _by_share(counted: Profile, attempt: Attempt) -> tuple[DataFrame, Numbering]:
    """What inserts do that look nothing up: the tasks of a partition share its rows out by the hash
    of the key. How many rows there are is known already."""
    paths = sorted(counted.counts)
    rows = [counted.counts[path] for path in paths]
    planned = attempt.plan([Slot(path) for path in paths], rows, counted.row_bytes * sum(rows))
    tasks: dict[str, list[tuple[int, int]]] = {}
    for item in planned:
        for source in item.sources:
            first = source.start * SHARES // rows[source.slot]
            tasks.setdefault(paths[source.slot], []).append((first, item.task.index))
    numbering = Shared(TableKeys.of(attempt.ctx.config), {path: sorted(found) for path, found in tasks.items()})
    tagged = counted.rows.withColumn(SLOT, sf.lit(None).cast("int"))
    places: dict[tuple[str, int | None], int] = {(path, None): place for place, path in enumerate(paths)}
    return _numbered(tagged, places, planned, rows), numbering


def _numbered(
    rows: DataFrame, places: dict[tuple[str, int | None], int], planned: Sequence[PlannedTask], counts: Sequence[int]
) -> DataFrame:
    by_slot = {place: key for key, place in places.items()}
    shares = [
        (*by_slot[source.slot], source.start * SHARES // counts[source.slot],
         source.stop * SHARES // counts[source.slot], item.task.index)
        for item in planned
        for source in item.sources
    ]  # fmt: skip
    names = f"{PATH} string, {SLOT} int, low long, high long, {TASK} int"
    table = sf.broadcast(rows.sparkSession.createDataFrame(shares, names).alias("share"))
    share = sf.pmod(sf.xxhash64(RECORD_KEY), sf.lit(SHARES))
    shared = rows.alias("row").withColumn("_share", share)
    same = (
        (sf.col(f"row.{PATH}") == sf.col(f"share.{PATH}"))
        & sf.col(f"row.{SLOT}").eqNullSafe(sf.col(f"share.{SLOT}"))
        & (sf.col("_share") >= sf.col("low"))
        & (sf.col("_share") < sf.col("high"))
    )
    return shared.join(table, same).drop(sf.col(f"share.{PATH}"), sf.col(f"share.{SLOT}"))


def _sent(rows: DataFrame, columns: pa.Schema, attempt: Attempt) -> tuple[str, ...]:
    """What crosses to the tasks: they make the record key of its fields again, and fill in what is
    null in every row."""
    made = {name.partition(".")[0] for name in attempt.ctx.config.record_key} <= set(columns.names)
    return tuple(name for name in columns.names if name in rows.columns and not (made and name == RECORD_KEY))


def _selected(rows: DataFrame, sent: Sequence[str]) -> DataFrame:
    return rows.select(TASK, *(sf.col(key_columns.quoted(name)) for name in sent))
