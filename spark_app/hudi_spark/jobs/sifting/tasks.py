"""Rows that are no messages, judged in tasks of Spark by the code of one process: a task keeps
those that it takes on its disk, and says which it refuses."""

from __future__ import annotations

import functools
import itertools
import pickle
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager

import numpy as np
import pyarrow as pa
from pyspark import StorageLevel, TaskContext
from pyspark.sql import DataFrame, SparkSession

from hudi_spark.jobs.ingest_spark import FILE, NUMBER, Judge, arrow_schema
from hudi_spark.jobs.sifting.parts import KEPT, Batches, answer, frame_of, packet, told_of
from hudi_spark.jobs.sifting.rows import Judged, Judging, Sifting
from hudi_spark.worker import set_up_worker
from hudi_table.model.job.checkpoint import SourceFile
from hudi_table.model.job.jobspec import JobSpec
from hudi_table.sources.refusing import Place


@contextmanager
def judging(sifting: Sifting, batch: str, files: Sequence[SourceFile] = ()) -> Iterator[Judge | None]:
    """What judges the rows of a commit of this name, None where all are taken. `files`: those that
    rows say they are of. What it gives is read within the context."""
    if not sifting.expects:
        yield None
        return
    with ExitStack() as kept:

        def judge(spark: SparkSession, rows: DataFrame) -> DataFrame:
            del spark
            task = functools.partial(_judge, spec=sifting.spec, place=sifting.place, batch=batch, files=tuple(files))
            made = rows.mapInArrow(task, KEPT).persist(StorageLevel.DISK_ONLY)
            kept.callback(made.unpersist)
            told: list[Judged] = list(told_of(made).values())
            whole = Judged(sum(each.rows for each in told), dropped=sum(each.dropped for each in told))
            for each in told:
                whole.refused += each.refused
            sifting.keep(whole)
            return frame_of(made, arrow_schema(rows.drop(FILE, NUMBER)))

        yield judge


def _judge(batches: Batches, *, spec: JobSpec, place: Place, batch: str, files: Sequence[SourceFile]) -> Batches:
    """What a task does with its part."""
    set_up_worker()
    context = TaskContext.get()
    ordinal = context.partitionId() if context is not None else 0
    with closing(Sifting(spec)) as run:
        commit = Judging(run, run.refusing(batch), pa.schema([]).empty_table().to_reader())
        for each in batches:
            for where, rows in _together(each, place, files):
                for taken in commit.meeting(rows, where).rows.to_batches():
                    if len(taken):
                        yield packet(ordinal, taken)
        yield answer(ordinal, pickle.dumps(commit.judged), None)


def _together(rows: pa.RecordBatch, place: Place, files: Sequence[SourceFile]) -> Iterator[tuple[Place, pa.Table]]:
    """(where, rows) of those that stand together: behind one another in one file."""
    table = pa.Table.from_batches([rows])
    if not files:
        yield place, table
        return
    of, numbers = (table.column(name).to_numpy() for name in (FILE, NUMBER))
    table = table.drop_columns([FILE, NUMBER])
    cuts = np.flatnonzero((np.diff(of) != 0) | (np.diff(numbers) != 1)) + 1
    edges = [0, *cuts.tolist(), len(table)] if len(table) else [0]
    for start, stop in itertools.pairwise(edges):
        file = files[int(of[start])]
        yield Place(file.path, file.version, int(numbers[start])), table.slice(start, stop - start)
