"""What a table service is asked: one value for a TableService and for each `maintenance` of a
HudiTable."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from hudi_operator.api.fields.maintenance import ServiceMode
from hudi_operator.api.fields.sections import (
    ArchivingSpec,
    ClusteringSpec,
    DefinedIndexSpec,
    IndexingSpec,
    Layout,
    MetadataPartition,
    Need,
    RepairSpec,
)
from hudi_operator.api.service import RunMode, TableServiceSpec
from hudi_operator.api.table import HudiTableSpec
from hudi_operator.manifests.quantities import bytes_of
from hudi_table.model.defined_indexes import AskedExpression, asked_text
from hudi_table.model.options.known import renamed
from hudi_table.model.options.retention import COMMITS, HOURS, POLICY, VERSIONS, CleanPolicy, with_policy
from hudi_table.model.options.write_options import (
    INDEXING_DROP,
    INDEXING_PARTITIONS,
    READERS,
    REPAIR_KEYS,
    REPAIR_QUARANTINE,
    UPGRADE_VERSION,
)
from hudi_table.model.service.services import ServiceType
from hudi_table.model.table.config import TableConfig

BUCKETS = "hoodie.bucket.index.num.buckets"
_CLUSTERING = "hoodie.clustering.plan.strategy"
SORT_COLUMNS = f"{_CLUSTERING}.sort.columns"
SINGLE_GROUPS = f"{_CLUSTERING}.single.group.clustering.enabled"
_LAYOUTS = {Layout.LINEAR: "LINEAR", Layout.Z_ORDER: "ZORDER", Layout.HILBERT: "HILBERT"}


@dataclass(frozen=True, slots=True)
class ServiceWork:
    """One service of one table. `options` are those of the service alone. Due when `when` holds,
    else by its own rule."""

    type: ServiceType
    mode: RunMode = RunMode.SCHEDULE_AND_EXECUTE
    options: Mapping[str, str] = field(default_factory=dict)
    instant: str = ""
    comment: str = ""
    force: bool = True
    plan: str = ""
    when: Need | None = None

    def document(self) -> dict[str, Any]:
        """The `work` of a JobSpec."""
        return {
            "type": self.type.value,
            "mode": self.mode.value,
            "options": dict(self.options),
            "plan": self.plan,
            "instant": self.instant,
            "force": self.force,
            "comment": self.comment,
        }

    def digest(self) -> str:
        """Names what is asked: the same for the same work, whatever else its resource says."""
        text = json.dumps(self.document(), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def approved(self, plan: str) -> ServiceWork:
        """The run of exactly one plan."""
        return replace(self, mode=RunMode.SCHEDULE_AND_EXECUTE, plan=plan)

    def only(self, mode: RunMode) -> ServiceWork:
        """The same, as far as `mode` goes."""
        return replace(self, mode=mode)


def work_of(spec: TableServiceSpec, table: HudiTableSpec) -> ServiceWork:
    """What a TableService asks of its table."""
    named = spec.restore or spec.rollback
    savepoint = spec.savepoint
    return ServiceWork(
        type=spec.type,
        mode=spec.mode,
        options={**_section(spec, table), **_own(spec)},
        instant=named.instant if named else (savepoint.instant or "" if savepoint else ""),
        comment=savepoint.comment if savepoint else "",
        when=spec.when,
    )


def _own(spec: TableServiceSpec) -> dict[str, str]:
    """The service's options; of a clean with the policy that they tell, so that the section's does
    not stay."""
    own = renamed(spec.options)
    return with_policy(own) if spec.type is ServiceType.CLEANING else own


def maintenance_of(spec: HudiTableSpec, *, disabled: bool = False) -> tuple[ServiceWork, ...]:
    """The services that run by themselves, in the order in which they have their turn; with
    `disabled` those that do not, too."""
    auto = {
        ServiceType.COMPACTION: (spec.maintenance.compaction.mode, {}),
        ServiceType.CLUSTERING: (spec.maintenance.clustering.mode, _clustering(None, renamed(spec.options))),
        ServiceType.CLEANING: (spec.maintenance.cleaning.mode, _keep_commits(spec.maintenance.cleaning.keep_commits)),
        ServiceType.ARCHIVING: (spec.maintenance.archiving.mode, _archiving(spec)),
    }
    return tuple(
        ServiceWork(kind, options={**options, **_table_options(spec, options)})
        for kind, (mode, options) in auto.items()
        if disabled or mode is ServiceMode.AUTO
    )


def _table_options(spec: HudiTableSpec, options: Mapping[str, str]) -> dict[str, str]:
    """What the table's own `options` say of these keys: they win, as they do over `files`."""
    found = with_policy(renamed(spec.options))
    return {key: found[key] for key in options if key in found}


def _section(spec: TableServiceSpec, table: HudiTableSpec) -> dict[str, str]:
    """The section of the type as Hudi's keys."""
    match spec.type:
        case ServiceType.CLUSTERING:
            return _clustering(spec.clustering, {**renamed(table.options), **renamed(spec.options)})
        case ServiceType.CLEANING:
            return _cleaning(spec, table)
        case ServiceType.ARCHIVING:
            if spec.archiving is None:
                return {**_archiving(table), **_table_options(table, _archiving(table))}
            return _keep(table, spec.archiving)
        case ServiceType.REPAIR:
            return _repair(spec.repair) if spec.repair is not None else {}
        case ServiceType.PARTITION_TTL if spec.partition_ttl is not None:
            return {"hoodie.partition.ttl.strategy.days.retain": str(spec.partition_ttl.days)}
        case ServiceType.RESIZE if table.index is not None and table.index.buckets is not None:
            return {BUCKETS: str(table.index.buckets)}
        case ServiceType.INDEXING:
            return _indexing(spec.indexing) if spec.indexing is not None else {}
        case ServiceType.UPGRADE if spec.upgrade is not None:
            return {UPGRADE_VERSION: str(spec.upgrade.to)} | _readers(table)
        case _:
            return {}


def _clustering(spec: ClusteringSpec | None, options: Mapping[str, str]) -> dict[str, str]:
    """The section, and that a file without another one beside it is left: only an order that is
    asked for makes it better."""
    found = _clustering_section(spec) if spec is not None else {}
    if not found.get(SORT_COLUMNS) and not options.get(SORT_COLUMNS):
        found[SINGLE_GROUPS] = options.get(SINGLE_GROUPS, "false")
    return found


def _clustering_section(spec: ClusteringSpec) -> dict[str, str]:
    options = {"hoodie.layout.optimize.strategy": _LAYOUTS[spec.layout]}
    if spec.sort_columns:
        options[SORT_COLUMNS] = ",".join(spec.sort_columns)
    if spec.small_file_limit is not None:
        options[f"{_CLUSTERING}.small.file.limit"] = str(bytes_of(spec.small_file_limit))
    if spec.target_file_size is not None:
        options[f"{_CLUSTERING}.target.file.max.bytes"] = str(bytes_of(spec.target_file_size))
    if spec.max_groups is not None:
        options[f"{_CLUSTERING}.max.num.groups"] = str(spec.max_groups)
    if spec.partitions:
        options[f"{_CLUSTERING}.partition.selected"] = ",".join(spec.partitions)
    return options


def _repair(spec: RepairSpec) -> dict[str, str]:
    options = {REPAIR_KEYS: spec.keys, REPAIR_QUARANTINE: spec.quarantine}
    return {key: "true" for key, wanted in options.items() if wanted}


def _indexing(spec: IndexingSpec) -> dict[str, str]:
    """In one order, so that the same partitions are the same work."""
    wanted = {MetadataPartition.FILES, *spec.partitions}
    named = [str(partition) for partition in MetadataPartition if partition in wanted]
    dropped = {INDEXING_DROP: ",".join(sorted(spec.drop))} if spec.drop else {}
    return {INDEXING_PARTITIONS: ",".join([*named, *sorted(map(_asked, spec.indexes))])} | dropped


def _asked(index: DefinedIndexSpec) -> str:
    if index.function is None:
        return asked_text(index.name, index.column)
    using = {} if index.using is None else {"using": str(index.using)}
    return asked_text(index.name, AskedExpression(index.column, str(index.function), index.options, **using))


def _readers(table: HudiTableSpec) -> dict[str, str]:
    named = ",".join(f"{each.engine}:{each.version}" for each in table.readers)
    return {READERS: named} if named else {}


def _cleaning(spec: TableServiceSpec, table: HudiTableSpec) -> dict[str, str]:
    section = spec.cleaning
    if section is None:
        kept = _keep_commits(table.maintenance.cleaning.keep_commits)
        return {**kept, **_table_options(table, kept)}
    if section.keep_commits is not None:
        return _keep_commits(section.keep_commits)
    if section.keep_hours is not None:
        return {
            POLICY: CleanPolicy.KEEP_LATEST_BY_HOURS.value,
            HOURS: str(section.keep_hours),
        }
    return {
        POLICY: CleanPolicy.KEEP_LATEST_FILE_VERSIONS.value,
        VERSIONS: str(section.keep_file_versions),
    }


def _keep_commits(number: int) -> dict[str, str]:
    return {POLICY: CleanPolicy.KEEP_LATEST_COMMITS.value, COMMITS: str(number)}


def _archiving(spec: HudiTableSpec) -> dict[str, str]:
    return _keep(spec, spec.maintenance.archiving)


def _keep(spec: HudiTableSpec, section: ArchivingSpec) -> dict[str, str]:
    """The job holds them against what cleaning retains, by default 10 commits; the spec says what
    this table's cleaning does. Where `maintenance` does not clean, nobody retains that number."""
    least, cleaning = section.min_commits, spec.maintenance.cleaning
    retained = cleaning.keep_commits if cleaning.mode is ServiceMode.AUTO else min(cleaning.keep_commits, least - 1)
    return {
        "hoodie.keep.min.commits": str(least),
        "hoodie.keep.max.commits": str(section.max_commits),
        COMMITS: str(retained),
        # A policy that the table's options leave to a number goes before ours.
        **{key: value for key, value in with_policy(renamed(spec.options)).items() if key == POLICY},
    }


def resize_wanted(spec: HudiTableSpec, config: TableConfig) -> tuple[int, int] | None:
    """(buckets of the table, buckets that the manifest wants) where they differ, of a Bucket
    index."""
    wanted, there = spec.index, config.index
    if wanted is None or there is None or wanted.buckets is None or there.buckets is None:
        return None
    if not wanted.type.has_fixed_buckets:
        return None
    return None if wanted.buckets == there.buckets else (there.buckets, wanted.buckets)
