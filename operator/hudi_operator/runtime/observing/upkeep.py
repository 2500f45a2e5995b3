"""What a table's own `maintenance` would do now, judged by the parsers and planners of the jobs
themselves."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from hudi_operator.api.fields.maintenance import ServiceMode
from hudi_operator.api.table import HudiTableSpec
from hudi_operator.manifests.jobs import options_of
from hudi_operator.manifests.services import maintenance_of
from hudi_table.errors import InvalidOptionError
from hudi_table.model.service.debt import ArchivingDebt
from hudi_table.model.service.services import ServiceType
from hudi_table.services.archiving.debt import archiving_debt
from hudi_table.services.archiving.policy import ArchivePolicy
from hudi_table.services.cleaning.policy import CleanOptions
from hudi_table.services.clustering.strategy import ClusteringStrategy
from hudi_table.services.clustering.trigger import Trigger
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.timeline import Timeline

_PARSERS: Mapping[ServiceType, tuple[Callable[[Mapping[str, str]], object], ...]] = {
    ServiceType.CLEANING: (CleanOptions.parse,),
    ServiceType.ARCHIVING: (ArchivePolicy.parse,),
    ServiceType.CLUSTERING: (ClusteringStrategy.parse, Trigger.parse),
}


def check_maintenance(spec: HudiTableSpec) -> None:
    """Refuse now what the services that run by themselves would refuse as jobs. Raises
    InvalidOptionError."""
    table = options_of(spec)
    for work in maintenance_of(spec):
        for parse in _PARSERS.get(work.type, ()):
            parse({**table, **work.options})


def archiving_of(ctx: TableContext, timeline: Timeline, spec: HudiTableSpec) -> ArchivingDebt | None:
    """What archiving would find. Raises InvalidOptionError for settings that contradict each other;
    of archiving that is disabled nothing is known then."""
    (work,) = (each for each in maintenance_of(spec, disabled=True) if each.type is ServiceType.ARCHIVING)
    try:
        return archiving_debt(ctx, timeline, {**options_of(spec), **work.options})
    except InvalidOptionError:
        if spec.maintenance.archiving.mode is ServiceMode.DISABLED:
            return None
        raise
