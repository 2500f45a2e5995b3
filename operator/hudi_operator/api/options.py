"""`options` of the resources: what is refused of them, what contradicts the resource's own fields,
and what does nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hudi_operator.api.parsing import FieldError
from hudi_operator.api.table import HudiTableSpec
from hudi_table.errors import InvalidOptionError
from hudi_table.model.options.known import (
    Fate,
    aliases,
    check_option,
    check_options,
    explicit_option,
    ignored_options,
    known_options,
)
from hudi_table.model.options.lock_settings import MODE, asks_for_control, lock_settings
from hudi_table.model.options.lock_settings import PREFIX as LOCK_PREFIX
from hudi_table.model.options.values import shown, stored_boolean
from hudi_table.model.options.write_options import METADATA_INDEXES, OPERATION, PARTITIONS_TO_DELETE, other_record_index
from hudi_table.model.table.index_properties import BUCKETS, HASH_FIELDS, INDEX_TYPE, names_in
from hudi_table.model.table.properties import MERGE_NAMES
from hudi_table.model.table.version_properties import MERGE_MODE, VERSION


def option_errors(document: Mapping[str, Any]) -> tuple[FieldError, ...]:
    """Options of a resource that are unknown, refused or of no right value, each by name, and those
    that contradict each other."""
    spec = document.get("spec")
    options = spec.get("options") if isinstance(spec, Mapping) else None
    found = []
    for key, value in options.items() if isinstance(options, Mapping) else ():
        try:
            check_option(str(key), str(value))
        except InvalidOptionError as error:
            found.append(FieldError(f"spec.options[{key}]", error.message))
        else:
            if str(key).startswith(LOCK_PREFIX) and _acts(str(key)):
                found.append(
                    FieldError(f"spec.options[{key}]", "is of the table's lock: put it into spec.lock of the HudiTable")
                )
    if not isinstance(options, Mapping):
        return ()
    found += _contradictions(options)
    if not found:
        try:
            check_options({str(key): str(value) for key, value in options.items()})
        except InvalidOptionError as error:
            found.append(FieldError("spec.options", error.message))
    return tuple(found)


def described_errors(
    spec: HudiTableSpec, name: str, of_service: Mapping[str, str] | None = None
) -> tuple[FieldError, ...]:
    """Options of a HudiTable, or those of a service of it, that say otherwise than the table's own
    fields, which alone say what it is and what an ingest does."""
    options = spec.options if of_service is None else of_service
    whose = "" if of_service is None else " of the table"
    fields = {
        "hoodie.table.name": ("metadata.name", name),
        "hoodie.table.type": ("spec.type", spec.type.hudi_name),
        "hoodie.table.recordkey.fields": ("spec.recordKey", ",".join(spec.record_key)),
        "hoodie.table.partition.fields": ("spec.partitionBy", ",".join(item.field for item in spec.partition_by)),
        "hoodie.table.ordering.fields": ("spec.orderingFields", ",".join(spec.ordering_fields)),
        "hoodie.datasource.write.hive_style_partitioning": ("spec.paths.hiveStyle", str(spec.paths.hive_style).lower()),
        "hoodie.datasource.write.partitionpath.urlencode": ("spec.paths.urlEncode", str(spec.paths.url_encode).lower()),
    }
    if spec.index is not None:
        fields[INDEX_TYPE] = ("spec.index.type", spec.index.type.hudi_name)
        if spec.index.buckets is not None:
            fields[BUCKETS] = ("spec.index.buckets", str(spec.index.buckets))
            fields[HASH_FIELDS] = ("spec.index.hashFields", ",".join(spec.index.hash_fields or spec.record_key))
    if spec.merge_mode is not None:
        fields[MERGE_MODE] = ("spec.mergeMode", MERGE_NAMES[spec.merge_mode])
    if spec.table_version is not None:
        fields[VERSION] = ("spec.tableVersion", str(spec.table_version))
    pairs = [(key, field, have) for key, (field, have) in fields.items()]
    if of_service is None:
        pairs += [
            (OPERATION, f"spec.ingest[{n}].operation", item.operation.value) for n, item in enumerate(spec.ingest)
        ]
    found = [*_other_record_index(spec, options, whose), *_never_deleted(options), *_without_lock(spec, options)]
    if of_service is None:
        found += _lock_errors(spec, name)
    for key, field, have in pairs:
        want = explicit_option(options, key) if _agree(options, key) else None
        if want and key == OPERATION:
            want = want.replace("_", "")
        if want and _plain(want) != _plain(have):
            named = next(name for name in options if aliases().get(name, name) == key)
            message = f"is {shown(named, want)}, but {field}{whose} says {have!r}: leave the option out"
            found.append(FieldError(f"spec.options[{named}]", message))
    return tuple(found)


def _other_record_index(spec: HudiTableSpec, options: Mapping[str, str], whose: str) -> Iterator[FieldError]:
    """A record index that is asked for beside the one that the table finds its keys by."""
    own = None if spec.index is None else spec.index.type.metadata_partition
    asked = {
        name
        for key, name in METADATA_INDEXES.items()
        if _agree(options, key) and stored_boolean(explicit_option(options, key))
    }
    key = other_record_index(own, asked)
    if spec.index is not None and key is not None:
        named = next(name for name in options if aliases().get(name, name) == key)
        yield FieldError(
            f"spec.options[{named}]",
            f"asks for a {METADATA_INDEXES[key]}, but spec.index.type{whose} says {spec.index.type.value!r}: leave the option out",
        )


def _lock_errors(spec: HudiTableSpec, name: str) -> Iterator[FieldError]:
    """What the job would refuse of a lock."""
    options = {} if spec.lock is None else spec.lock.hudi_options
    try:
        check_options(options)
        lock_settings(options, base_path=spec.location, table_name=name, environment={})
    except InvalidOptionError as error:
        yield FieldError("spec.lock", error.message)


def _without_lock(spec: HudiTableSpec, options: Mapping[str, str]) -> Iterator[FieldError]:
    if spec.lock is None and asks_for_control(options):
        yield FieldError(
            f"spec.options[{MODE}]",
            f"is {options[MODE]!r}, which needs the lock of the other writers: name it in spec.lock",
        )


def _never_deleted(options: Mapping[str, str]) -> Iterator[FieldError]:
    """Partitions to delete, which no ingest and no service does."""
    value = options.get(PARTITIONS_TO_DELETE, "")
    if value.strip():
        yield FieldError(
            f"spec.options[{PARTITIONS_TO_DELETE}]",
            f"is {shown(PARTITIONS_TO_DELETE, value)}, and no ingest or service deletes partitions by name: leave the option out, and delete them "
            "with Table.write(operation='delete_partition'), or let them expire by a TableService of type PartitionTTL",
        )


def ignored(options: Mapping[str, str]) -> str:
    """The options that do nothing, in one line for people; "" without any."""
    return "; ".join(f"{key}: {why}" for key, why in ignored_options(options))


def _acts(key: str) -> bool:
    option = known_options()[aliases().get(key, key)]
    return option.fate is Fate.ACTS


def _agree(options: Mapping[str, str], key: str) -> bool:
    """Whether all names of a key have one value; where they do not, another error says so."""
    return len({value.strip() for name, value in options.items() if aliases().get(name, name) == key}) <= 1


def _plain(text: str) -> str:
    return ",".join(name.partition(":")[0] for name in names_in(text)).lower()


def _contradictions(options: Mapping[str, Any]) -> Iterator[FieldError]:
    """Options that stand under two names with two values."""
    values = {str(key): str(value) for key, value in options.items()}
    for earlier, newest in aliases().items():
        if earlier in values and values.get(newest, values[earlier]).strip() != values[earlier].strip():
            yield FieldError(
                f"spec.options[{earlier}]",
                f"is {shown(earlier, values[earlier])}, and {newest} is {shown(newest, values[newest])}: give one",
            )
