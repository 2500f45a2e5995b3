"""Another version of a table, and who reads it: whether an upgrade is wanted, who holds the table
for one, and whom something would lose. Pure.

While a table is brought to another version nobody writes it. So from the approval on nothing else
is started, continuous drivers are asked to end, and the job begins when they have. A change that
has begun and that no TableService goes on with keeps the table closed, until somebody ends it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hudi_operator.api.fields.sections import DefinedIndexSpec, IndexingSpec
from hudi_operator.api.parsing import FieldError
from hudi_operator.api.resources import DesiredService
from hudi_operator.api.service import TableServiceSpec
from hudi_operator.api.table import HudiTableSpec
from hudi_operator.plan.observed import TableObservation
from hudi_table.model.defined_indexes import OF
from hudi_table.model.digits import whole
from hudi_table.model.metadata_table import EXPRESSION_INDEX, SECONDARY_INDEX, is_defined, short_name
from hudi_table.model.options.known import renamed
from hudi_table.model.options.values import members
from hudi_table.model.options.write_options import INDEXING_PARTITIONS
from hudi_table.model.service.services import ServiceType
from hudi_table.model.table.config import IndexSpec, MergeMode, PartitionField
from hudi_table.model.table.layouts import DEFAULT_VERSION, VERSIONS, layout_of
from hudi_table.model.table.readers import (
    Feature,
    Reader,
    features_in,
    features_of,
    key_features,
    lost,
    no_longer,
    option_features,
    partition_features,
    table_features,
)

_VERSION = "hoodie.table.version"
_REMEDY = "bring that reader to a version that reads it, take it out of readers"


def holder_of(services: Iterable[DesiredService]) -> str:
    """The TableService for whose upgrade nothing else is done to the table: it is at work, or its
    plan is approved and waits; "" without one."""
    for each in services:
        spec, status = each.spec, each.status
        if spec is None or spec.type is not ServiceType.UPGRADE:
            continue
        at_work = any(run.phase == "Running" and run.work == spec.type.value for run in status.runs)
        plan = status.plan
        approved = plan is not None and plan.stale is None and plan.digest == spec.approve and not spec.suspend
        stalled = any(c.type == "Stalled" and c.status == "True" for c in status.conditions)
        if at_work or (approved and not stalled):
            return each.identity.key.name
    return ""


def is_wanted(spec: TableServiceSpec, table: TableObservation) -> bool:
    """Whether an upgrade has something to do: the table has another version, or a change of it was
    left half-way."""
    return spec.upgrade is not None and (table.config.version != spec.upgrade.to or table.changing is not None)


def batch_of(digest: str, table: TableObservation) -> str:
    """Of the dry run of an upgrade: the same work is another one once the table has another
    version, as on the way back."""
    return f"once-{digest}-{table.config.version}{'-begun' if table.changing is not None else ''}"


def readers_of(spec: HudiTableSpec) -> tuple[Reader, ...]:
    """The readers that a table names."""
    return tuple(each.reader for each in spec.readers)


def upgrade_refused(spec: TableServiceSpec, owner: HudiTableSpec, table: TableObservation) -> str:
    """Why an approved upgrade is not begun: who could no longer read the table; "" if nobody."""
    if spec.upgrade is None or spec.upgrade.to not in VERSIONS:
        return ""
    after = features_in(table.config, spec.upgrade.to, table.columns)
    said = no_longer(readers_of(owner), features_of(table.config, table.columns), after)
    return f"spec.upgrade.to: {'; '.join(said)}; {_REMEDY} of the table, or withdraw approve" if said else ""


def service_refused(
    spec: TableServiceSpec, owner: HudiTableSpec, table: TableObservation | None = None
) -> tuple[FieldError, ...]:
    """Where a service contradicts the readers or the version that its table names or has."""
    found = []
    if spec.upgrade is not None:
        said = {"tableVersion": owner.table_version, f"option {_VERSION}": _version_option(owner)}
        wanted = spec.upgrade.to
        found += [
            FieldError(
                "spec.upgrade.to",
                f"is {wanted}, but {name} of the table says {version}: give both the same, or leave that out",
            )
            for name, version in said.items()
            if version not in (None, wanted)
        ]
    if spec.type is ServiceType.INDEXING:
        found += _indexing_refused(spec, owner, table)
    return tuple(found)


def _indexing_refused(
    spec: TableServiceSpec, owner: HudiTableSpec, table: TableObservation | None
) -> Iterator[FieldError]:
    """What no reader may read of what is built, and the names of indexes that the table's version
    has not."""
    version = table.config.version if table is not None else _version_of(owner)
    for path, partitions in _asked_of(spec).items():
        for line in lost(readers_of(owner), partition_features(partitions)):
            yield FieldError(path, f"{line}; leave it out, or {_REMEDY} of the table")
        names = ", ".join(map(short_name, filter(is_defined, partitions)))
        if names and version in VERSIONS and not layout_of(version).partition_stats:
            yield FieldError(
                path,
                f"{names}: indexes of secondary keys and expressions are of table versions 8 and 9, and the table has "
                f"version {version}: upgrade it first, or leave them out",
            )


def _asked_of(spec: TableServiceSpec) -> dict[str, list[str]]:
    """The partitions that an Indexing names, by the field that does; the option goes before the
    section."""
    section, option = spec.indexing or IndexingSpec(), renamed(spec.options).get(INDEXING_PARTITIONS)
    if option is not None:
        return {
            f"spec.options[{INDEXING_PARTITIONS}]": ["files", *(asked.partition(OF)[0] for asked in members(option))]
        }
    return {
        "spec.indexing.partitions": ["files", *section.partitions],
        "spec.indexing.indexes": [_partition_of(each) for each in section.indexes],
    }


def table_refused(spec: HudiTableSpec, table: TableObservation | None) -> tuple[FieldError, ...]:
    """What a manifest asks for that the table does not have yet, and that one of its readers cannot
    read."""
    there = features_of(table.config, table.columns) if table is not None else ()
    version = table.config.version if table is not None else _version_of(spec)
    wanted: tuple[Feature, ...] = ()
    if version in VERSIONS:
        wanted = table_features(version, spec.type, _mode_of(spec), (), _index_of(spec))
    if table is None and version in VERSIONS:
        wanted += option_features(version, spec.type, renamed(spec.options))
        wanted += key_features(version, spec.record_key, [PartitionField(p.field, p.type) for p in spec.partition_by])
    new = [feature for feature in wanted if feature not in there]
    return tuple(
        FieldError("spec.readers", f"{line}; {_REMEDY}, or ask for another") for line in lost(readers_of(spec), new)
    )


def _partition_of(index: DefinedIndexSpec) -> str:
    return f"{SECONDARY_INDEX if index.function is None else EXPRESSION_INDEX}{index.name}"


def _version_of(spec: HudiTableSpec) -> int:
    """Of a table that is yet to be made."""
    return spec.table_version or _version_option(spec) or DEFAULT_VERSION


def _version_option(spec: HudiTableSpec) -> int | None:
    return whole(renamed(spec.options).get(_VERSION, "").strip())


def _mode_of(spec: HudiTableSpec) -> MergeMode:
    return spec.merge_mode or (MergeMode.EVENT_TIME if spec.ordering_fields else MergeMode.COMMIT_TIME)


def _index_of(spec: HudiTableSpec) -> IndexSpec | None:
    return IndexSpec(spec.index.type) if spec.index is not None else None
