"""Executing a published plan: its slices rewritten by tasks, then one commit.

A plan can be executed by anybody, by several at once, and again after a crash: all write the same
files, and one entry of the chain commits them.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from hudi_table.errors import CorruptTableError, InvariantError, WriteAbortedError, WriteConflictError
from hudi_table.model.timeline.commits import CommitMetadata, WriteStat
from hudi_table.model.timeline.instants import Instant
from hudi_table.services.rewriting.resuming import resume
from hudi_table.services.rewriting.sources import give_up
from hudi_table.table.commit.markers import MarkedFile
from hudi_table.table.commit.transaction import Transaction
from hudi_table.table.commit.write_permit import RightToWrite
from hudi_table.table.engine.local_engine import LocalEngine
from hudi_table.table.store.at_once import at_once
from hudi_table.table.store.ports import Engine
from hudi_table.table.timeline import chain
from hudi_table.table.timeline.context import TableContext
from hudi_table.write.handles.cluster import ClusteringTask, cluster_group
from hudi_table.write.handles.compact import CompactionTask, compact_file_group, compact_logs
from hudi_table.write.handles.rebucket import ResizeTask, resize_group

_LOG = logging.getLogger("hudi_table.rewriting")

Task = ClusteringTask | CompactionTask | ResizeTask


class Rewrite(ABC):
    """A published plan that was read and checked, in the hands of one executor. `committed`: its
    commit, once there is one."""

    committed: CommitMetadata | None = None

    @abstractmethod
    def tasks(self) -> Sequence[Task]:
        """What is to be done. Raises WriteConflictError if the plan is void."""

    def engine(self, tasks: Sequence[Task]) -> Engine | None:
        """Where the tasks run, None for the engine that was given."""
        del tasks
        return None

    @abstractmethod
    def commit(self, stats: list[WriteStat]) -> tuple[CommitMetadata, frozenset[str]]:
        """The metadata of the commit, and its conflict keys."""


R = TypeVar("R", bound=Rewrite)


def run_rewrite(
    ctx: TableContext, plan: Instant, engine: Engine, read: Callable[[Transaction], R], *, excludes: bool = True
) -> R | None:
    """Execute the plan of an instant, which `read` reads and checks. None if it is committed, by an
    earlier executor or a faster one.

    `excludes`: a write to a planned slice makes the plan void, and it is given up; without it the
    plan stays, whatever is raised. Raises as `transaction.resume`, and what tasks and storage
    raise.
    """
    ready: list[tuple[Transaction, R, Sequence[Task]]] = []

    def prepare(txn: Transaction) -> None:
        (work, tasks), _ = at_once(ctx.storage, lambda: _read(txn, read), txn.right.renew_if_due)
        ready.append((txn, work, tasks))

    try:
        txn = resume(ctx, plan, prepare)
    except WriteConflictError as error:
        # One that was given up is rolled back first: who did so may not have come to it.
        if excludes:
            give_up(ctx, plan, error)
        raise
    if txn is None:
        return None
    known = next((item for item in ready if item[0].timeline is txn.timeline), None)
    txn, work = (txn, read(txn)) if known is None else known[:2]
    try:
        tasks = work.tasks() if known is None else known[2]
        _LOG.debug("%s: %d tasks of the plan begin", plan.time, len(tasks))
        with txn.signs_of_life():
            # Others may execute the plan, too, in processes of Spark even: so their markers have the direct form.
            files = [file for task in tasks for file in _files(task)] if isinstance(engine, LocalEngine) else []
            txn.right.mark(files, txn.inflight)
            done = (work.engine(tasks) or engine).map(partial(_run, txn.right), tasks)
            work.committed, conflict_keys = work.commit([stat for stats in done for stat in stats])
            txn.commit(work.committed, conflict_keys)
    except (WriteAbortedError, InvariantError, CorruptTableError):
        # Another executor may have been faster: its commit is this one's too, its markers are gone, and perhaps what it read. Or the plan was
        # written again without what is gone, or given up: then the chain says so, whose end this process remembers from before.
        chain.read_tail(ctx)
        if resume(ctx, plan) is None:
            return None
        txn.right.prove()
        raise
    except WriteConflictError as error:
        if excludes:
            give_up(ctx, txn.instant, error)
        raise
    return work


def _read(txn: Transaction, read: Callable[[Transaction], R]) -> tuple[R, Sequence[Task]]:
    work = read(txn)
    return work, work.tasks()


def _files(task: Task) -> list[MarkedFile]:
    """The files that a task begins with."""
    outputs = [task.file] if isinstance(task, CompactionTask) else task.outputs
    return [file for output in outputs for file in output.first_files]


def _run(right: RightToWrite, task: Task) -> tuple[WriteStat, ...]:
    if isinstance(task, ResizeTask):
        return resize_group(task, right)
    if isinstance(task, ClusteringTask):
        return cluster_group(task, right)
    return ((compact_file_group if task.file.log is None else compact_logs)(task, right),)
