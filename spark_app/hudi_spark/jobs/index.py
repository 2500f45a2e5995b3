"""What a job that has ended well measures of its table's index, where the operator asks: the
operator itself opens no footer."""

from __future__ import annotations

from typing import Any

from hudi_spark.jobs.target import find_table
from hudi_table.model.job.jobspec import JobSpec
from hudi_table.model.service.index_facts import IndexAdvice
from hudi_table.model.timeline.instants import Instant
from hudi_table.services.index.advice import advice_words
from hudi_table.services.index.facts import index_advice
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.timeline.relisting import with_relists
from hudi_table.table.view.file_system_view import FileSystemView


def measure_index(spec: JobSpec) -> dict[str, Any]:
    """`JobResult.index`, empty if there is no table or no index. Raises HudiError."""
    table = find_table(spec)
    if table is None:
        return {}
    ctx, options = table.context, spec.table.get("options", {})

    def measured() -> tuple[IndexAdvice | None, Instant | None]:
        view = FileSystemView(ctx, load_timeline(ctx))
        return index_advice(view, options=options), view.timeline.last_commit

    advice, last = with_relists(ctx, measured)
    if advice is None or last is None:
        return {}
    return {
        "type": advice.index.value,
        "advice": advice_words(advice),
        "better": advice.better.value if advice.better is not None else None,
        "instant": last.time,
    }
