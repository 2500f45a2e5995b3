"""A bar on stderr that shows how far an operation is: on a terminal, where rich is installed (`pip
install 'hudi-table[bar]'`)."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from hudi_table.cli.output import styled
from hudi_table.model.progress import Progress, ProgressFunction


@contextmanager
def bar() -> Iterator[ProgressFunction | None]:
    """A progress function that draws, or None where nobody would see it."""
    if not styled(sys.stderr):
        yield None
        return
    try:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bars
    except ImportError:
        yield None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Bars(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task("", total=None)

        def show(progress: Progress) -> None:
            bars.update(task, description=progress.operation, completed=progress.done, total=progress.total)

        yield show
