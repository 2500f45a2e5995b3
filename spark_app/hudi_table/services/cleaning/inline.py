"""Cleaning that a writer does itself after its commit, if its options say
`hoodie.clean.automatic=true`.

Hudi's writers clean unless an option forbids it; ours do not unless an option asks for it.
"""

from __future__ import annotations

from collections.abc import Mapping

from hudi_table.model.options.known import boolean_option
from hudi_table.model.service.services import ServiceRequest
from hudi_table.services.cleaning.policy import AUTOMATIC, CleanOptions
from hudi_table.services.cleaning.service import CleaningService
from hudi_table.table.store.ports import Engine
from hudi_table.table.timeline.context import TableContext


def cleans_itself(options: Mapping[str, str]) -> bool:
    """Whether the options ask for it; what they retain is checked, too. Raises
    InvalidOptionError."""
    is_on = boolean_option(options, AUTOMATIC)
    if is_on:
        CleanOptions.parse(options)
    return is_on


def clean_inline(ctx: TableContext, options: Mapping[str, str], engine: Engine) -> None:
    """What the options ask after a write."""
    if cleans_itself(options):
        CleaningService(ctx, ServiceRequest(options)).run(engine=engine)
