"""What operations say of themselves through `logging`: one line of INFO each, with counts and
seconds; DEBUG when one begins.

The loggers are `hudi_table.<operation>`: write, compaction, clustering, cleaning, and so on.
Nothing here configures logging. A line holds the table's location, which has no secret in it,
counts and the name of an error, never its text.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, Concatenate, ParamSpec, TypeVar

from hudi_table.errors import HudiError
from hudi_table.model.service.services import ServiceResult
from hudi_table.table.timeline.context import TableContext

P = ParamSpec("P")
R = TypeVar("R")


def logged(
    name: str,
) -> Callable[[Callable[Concatenate[TableContext, P], R]], Callable[Concatenate[TableContext, P], R]]:
    """Decorates what does one operation on a table: `logger` hudi_table.<name> tells its end."""
    logger = logging.getLogger(f"hudi_table.{name}")

    def decorate(work: Callable[Concatenate[TableContext, P], R]) -> Callable[Concatenate[TableContext, P], R]:
        @functools.wraps(work)
        def run(ctx: TableContext, /, *args: P.args, **more: P.kwargs) -> R:
            begun = ctx.clock.boot_seconds()
            logger.debug("%s of %s begins", name, ctx.base_path)
            try:
                result = work(ctx, *args, **more)
            except HudiError as error:
                seconds = ctx.clock.boot_seconds() - begun
                logger.info("%s of %s ended in %s after %.3f s", name, ctx.base_path, error.name(), seconds)
                raise
            if logger.isEnabledFor(logging.INFO):
                seconds = ctx.clock.boot_seconds() - begun
                logger.info("%s of %s: %s in %.3f s", name, ctx.base_path, result_text(result), seconds)
            return result

        return run

    return decorate


def result_text(result: Any) -> str:
    """A result in counts: what is zero is left out."""
    if isinstance(result, ServiceResult):
        counts = {name: value for name, value in result.figures.items() if value}
        return _line(result.instant, {name: f"{value:g}" for name, value in counts.items()}, replayed=result.replayed)
    if is_dataclass(result):
        values = {field.name: getattr(result, field.name) for field in fields(result)}
        counts = {name: v for name, v in values.items() if isinstance(v, int) and not isinstance(v, bool) and v}
        return _line(str(values.get("instant", "")), counts, replayed=bool(values.get("replayed")))
    if isinstance(result, Sequence) and not isinstance(result, str):
        return f"{len(result)} found"
    return "nothing to do" if result is None else "done"


def _line(instant: str, counts: dict[str, Any], *, replayed: bool) -> str:
    parts = [instant or "nothing to do", *(f"{name}={value}" for name, value in counts.items())]
    return ", ".join([*parts, "done before"] if replayed else parts)
