"""`TableConfig` from and to the keys of `hoodie.properties` (table version 6).

Facts (measured on Hudi 0.15.0): `hoodie.table.checksum` is the CRC32, in decimal, of
`<database>.<table>`; partition fields are a comma list; the timestamp generator's settings stand
under `hoodie.keygen.timebased.`, where 0.15.0 itself stores only the output format, and knows no
EPOCHMICROSECONDS: that is written as SCALAR with unit microseconds. A version-6 table that Hudi
1.1.1 created names its ordering field and key generator in keys of its own,
`hoodie.table.ordering.fields` and `hoodie.table.keygenerator.type` (measured).
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import replace

from hudi_table.errors import CorruptTableError, InvalidOptionError, UnsupportedTableError
from hudi_table.model.options.known import INDEX_SETTINGS, default_of
from hudi_table.model.options.values import stored_boolean
from hudi_table.model.options.write_options import COLON_RULE
from hudi_table.model.table.config import (
    IndexSpec,
    KeyEncoding,
    MergeMode,
    PartitionField,
    PartitionType,
    TableConfig,
    TableType,
)
from hudi_table.model.table.index_properties import (
    ENGINE,
    INDEX_CLASS,
    INDEX_KEYS,
    INDEX_NAMES,
    INDEX_TYPE,
    index_properties,
    index_spec,
    names_in,
)
from hudi_table.model.table.layouts import known_version, layout_of
from hudi_table.model.table.merge_settings import LaterMerge
from hudi_table.model.table.merging import PAYLOADS, Payload, payload_of
from hudi_table.model.table.version_properties import (
    BY_CLASS,
    BY_COMMIT_TIME,
    BY_EVENT_TIME,
    GENERATOR,
    GENERATOR_TYPE,
    GENERATOR_TYPES,
    LAYOUT_VERSION,
    MERGE_MODE,
    MERGER,
    ORDERING,
    PARTITION_TYPES,
    PAYLOAD,
    PRECOMBINE,
    VERSION,
    is_of_another_version,
    stored_in,
)

_KEYGEN = "org.apache.hudi.keygen."
TIMEBASED = "hoodie.keygen.timebased."
_TIMESTAMP_KEYS = (
    "timestamp.type", "timestamp.scalar.time.unit", "output.dateformat", "input.dateformat", "timezone", "output.timezone",
    "input.timezone",
)  # fmt: skip
_TIMESTAMP_SETTINGS = ("format", "input", "input_format", "timezone", "unit", "input_timezone")
_LEGACY_TIMEBASED = "hoodie.deltastreamer.keygen.timebased."
KEY_ENCODING = "hoodie.write.complex.keygen.new.encoding"
"""`true`: a complex key of one field is its text, as 0.15.0 always writes it; `false`:
`field:text`, as 1.1.1 does unless told.

Measured: 1.1.1 takes this key, and the switch of the check below, from the properties as if they
were given as options.
"""
_COMPLEX = ".ComplexKeyGenerator"
_KEY_CHECK = "hoodie.write.complex.keygen.validation.enable"
METADATA_PARTITIONS = "hoodie.table.metadata.partitions"
METADATA_PARTITIONS_INFLIGHT = "hoodie.table.metadata.partitions.inflight"
METADATA_DROPPED, PARTITION_DROPPED = "hoodie.lakeops.metadata.dropped", "its partition "
"""Why the metadata table was switched off by itself, and how that begins of a partition alone."""
CHECKSUM = "hoodie.table.checksum"
EVENT_TIME_MERGER = "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5"
"""What 0.15.0 stores for both payload classes."""
_DATASOURCE = "hoodie.datasource.write."
MERGE_NAMES = {MergeMode.COMMIT_TIME: BY_COMMIT_TIME, MergeMode.EVENT_TIME: BY_EVENT_TIME}
_MODELLED = {
    "hoodie.table.name", "hoodie.database.name", "hoodie.table.type", "hoodie.table.version",
    "hoodie.table.recordkey.fields", "hoodie.table.partition.fields", "hoodie.table.precombine.field",
    GENERATOR, "hoodie.datasource.write.hive_style_partitioning",
    "hoodie.datasource.write.partitionpath.urlencode", "hoodie.populate.meta.fields", "hoodie.archivelog.folder",
    "hoodie.table.timeline.timezone", "hoodie.table.create.schema", METADATA_PARTITIONS,
    *INDEX_KEYS, KEY_ENCODING, PARTITION_TYPES, CHECKSUM, MERGE_MODE, PAYLOAD,
}  # fmt: skip


def checksum(database: str, table: str) -> int:
    """The value of `hoodie.table.checksum`."""
    return zlib.crc32(f"{database}.{table}".encode())


def generator_class(config: TableConfig) -> str:
    """The full class name that Hudi uses for this key and partitioning."""
    if config.key_generator:
        return config.key_generator
    kinds = {p.type for p in config.partition_by}
    if not config.partition_by:
        short = "NonpartitionedKeyGenerator"
    elif PartitionType.TIMESTAMP in kinds:
        single = len(config.partition_by) == 1 and len(config.record_key) == 1
        short = "TimestampBasedKeyGenerator" if single else "CustomKeyGenerator"
    elif len(config.record_key) > 1 or len(config.partition_by) > 1:
        short = "ComplexKeyGenerator"
    else:
        short = "SimpleKeyGenerator"
    return _KEYGEN + short


def to_properties(config: TableConfig) -> dict[str, str]:
    """All keys of `hoodie.properties` for a new table."""
    generator = generator_class(config)
    custom = generator.endswith("CustomKeyGenerator")
    out = dict(config.extra)
    out |= {
        "hoodie.table.name": config.name,
        "hoodie.database.name": config.database,
        "hoodie.table.type": config.type.hudi_name,
        VERSION: str(config.version),
        LAYOUT_VERSION: "1",
        "hoodie.table.base.file.format": "PARQUET",
        "hoodie.table.recordkey.fields": ",".join(config.record_key),
        GENERATOR: generator,
        "hoodie.datasource.write.hive_style_partitioning": _flag(config.hive_style),
        "hoodie.datasource.write.partitionpath.urlencode": _flag(config.url_encode),
        "hoodie.datasource.write.drop.partition.columns": "false",
        "hoodie.populate.meta.fields": _flag(config.populate_meta_fields),
        "hoodie.archivelog.folder": config.archive_folder,
        "hoodie.table.timeline.timezone": config.timezone,
        "hoodie.partition.metafile.use.base.format": "false",
        "hoodie.table.cdc.enabled": out.get("hoodie.table.cdc.enabled", "false"),
        CHECKSUM: str(checksum(config.database, config.name)),
    }
    if config.partition_by:
        out["hoodie.table.partition.fields"] = ",".join(config.partition_fields)
    if custom and config.partition_by:
        out[PARTITION_TYPES] = ",".join(item.type.value.upper() for item in config.partition_by)
    if config.ordering_fields:
        out[PRECOMBINE] = ",".join(config.ordering_fields)
    if config.metadata_partitions:
        out[METADATA_PARTITIONS] = ",".join(config.metadata_partitions)
    if config.create_schema:
        out["hoodie.table.create.schema"] = config.create_schema
    if one_complex_field(config) and config.key_encoding != KeyEncoding.UNKNOWN:
        # Without these, Hudi 1.1.1 refuses the table, or with its check off writes every key a second time.
        out[KEY_ENCODING] = _flag(config.key_encoding == KeyEncoding.RAW)
        out[_KEY_CHECK] = "false"
    out.setdefault(PAYLOAD, table_payload(config).class_name)
    if config.type is TableType.MERGE_ON_READ:
        out.setdefault(MERGER, EVENT_TIME_MERGER)
    out |= _timebased(config) | index_properties(config.index)
    return stored_in(config.version, out, MERGE_NAMES[config.merge_mode])


def from_properties(properties: Mapping[str, str], base_path: str = "") -> TableConfig:
    """The config that `hoodie.properties` describes.

    Raises CorruptTableError without a table name or with a wrong checksum, UnsupportedTableError
    for a table version that is not read.
    """
    name = properties.get("hoodie.table.name")
    if not name:
        raise CorruptTableError("hoodie.properties names no hoodie.table.name", base_path=base_path)
    database = properties.get("hoodie.database.name", "")
    stored = properties.get(CHECKSUM)
    if stored and stored != str(checksum(database, name)):
        raise CorruptTableError(
            f"hoodie.properties is damaged: its checksum {stored} is not that of table {database + '.' + name!r}; "
            "restore the file from hoodie.properties.backup or from a copy",
            base_path=base_path,
        )
    version = known_version(properties.get(VERSION, "0"), name, base_path)
    layout = layout_of(version)
    generator = _generator(properties)
    ordering = properties.get(PRECOMBINE) or properties.get(ORDERING, "")
    later = layout.merging(properties)
    return TableConfig(
        name=name,
        database=database,
        type=_table_type(properties, base_path),
        record_key=names_in(properties.get("hoodie.table.recordkey.fields", "")),
        partition_by=partition_fields(properties, generator),
        ordering_fields=names_in(ordering),
        merge_mode=_merge_mode(properties, later),
        payload_class=_payload_class(properties),
        later_merge=later,
        index=_index_spec(properties, base_path) if _placed_by_one_rule(properties, layout.colon_rule) else None,
        key_generator=generator,
        key_encoding=_key_encoding(properties, generator),
        hive_style=stored_boolean(properties.get(_DATASOURCE + "hive_style_partitioning")),
        url_encode=stored_boolean(properties.get(_DATASOURCE + "partitionpath.urlencode")),
        populate_meta_fields=stored_boolean(properties.get("hoodie.populate.meta.fields", "true")),
        timezone=properties.get("hoodie.table.timeline.timezone", "LOCAL").upper(),
        version=version,
        archive_folder=layout.archive_folder(properties),
        metadata_partitions=names_in(properties.get(METADATA_PARTITIONS, "")),
        create_schema=properties.get("hoodie.table.create.schema"),
        extra=_unmodelled(properties, generator, by_class=layout.merging({}) is not None),
    )


def _unmodelled(properties: Mapping[str, str], generator: str, *, by_class: bool) -> dict[str, str]:
    """What the config keeps as it is; of the timestamp settings only those that no field has taken.

    A payload class or merge mode that is none of ours stays here too, so that a write can refuse it
    by name.
    """
    timed = any(item.type is PartitionType.TIMESTAMP for item in partition_fields(properties, generator))
    taken = {TIMEBASED + key for key in _TIMESTAMP_KEYS} if timed else set()
    modes = [*MERGE_NAMES.values(), *([BY_CLASS] if by_class and properties.get(PAYLOAD) in PAYLOADS else [])]
    ours = {PAYLOAD: PAYLOADS.keys(), MERGE_MODE: modes}
    strange = {key for key, known in ours.items() if properties.get(key) and properties[key] not in known}
    return {
        key: value
        for key, value in properties.items()
        if key in strange or (key not in _MODELLED and key not in taken and not key.startswith(INDEX_SETTINGS))
    }


def _key_encoding(properties: Mapping[str, str], generator: str) -> KeyEncoding:
    """Told for certain by tables of ours alone; no release of Hudi stores it
    (`write/keygen/key_encoding.py`)."""
    stored = properties.get(KEY_ENCODING)
    if stored is not None:
        return KeyEncoding.RAW if stored_boolean(stored) else KeyEncoding.FIELD_PREFIXED
    fields = names_in(properties.get("hoodie.table.recordkey.fields", ""))
    return KeyEncoding.UNKNOWN if generator.endswith(_COMPLEX) and len(fields) == 1 else KeyEncoding.RAW


def one_complex_field(config: TableConfig) -> bool:
    """Whether the key is a complex one of one field, which releases of Hudi encode differently."""
    return len(config.record_key) == 1 and generator_class(config).endswith(_COMPLEX)


def _generator(properties: Mapping[str, str]) -> str:
    """The key generator's class name, also where its type alone is stored, such as `SIMPLE`."""
    stored = properties.get(GENERATOR)
    short = GENERATOR_TYPES.get(properties.get(GENERATOR_TYPE, "").upper())
    return stored or (_KEYGEN + short if short else "")


def _table_type(properties: Mapping[str, str], base_path: str) -> TableType:
    value = properties.get("hoodie.table.type", "COPY_ON_WRITE")
    try:
        return TableType[value]
    except KeyError:
        raise CorruptTableError(f"hoodie.table.type is {value!r}, not a table type", base_path=base_path) from None


def _placed_by_one_rule(properties: Mapping[str, str], colon_rule: str) -> bool:
    """Whether what the table stores of its index says where keys lie. Since an upgrade Hudi may
    have placed some by other rules."""
    return properties.get(COLON_RULE, colon_rule) == colon_rule or not is_of_another_version(properties)


def _merge_mode(properties: Mapping[str, str], later: LaterMerge | None) -> MergeMode:
    if later is not None and not later.refused:
        return MergeMode.EVENT_TIME if later.ordering else MergeMode.COMMIT_TIME
    by_name = {value: mode for mode, value in MERGE_NAMES.items()}
    if properties.get(MERGE_MODE) in by_name:
        return by_name[properties[MERGE_MODE]]
    payload = PAYLOADS.get(properties.get(PAYLOAD, ""))
    return payload.mode if payload else MergeMode.COMMIT_TIME


def _payload_class(properties: Mapping[str, str]) -> str:
    """The class that is stored, unless it is a plain one, of which the merge mode tells as much."""
    payload = PAYLOADS.get(properties.get(PAYLOAD, ""))
    return "" if payload is None else stored_class(payload)


def stored_class(payload: Payload) -> str:
    """`TableConfig.payload_class` of a payload."""
    return "" if payload == payload_of(payload.mode) else payload.class_name


def table_payload(config: TableConfig) -> Payload:
    """How the table merges rows."""
    return PAYLOADS[config.payload_class] if config.payload_class else payload_of(config.merge_mode)


def partition_fields(properties: Mapping[str, str], generator: str) -> tuple[PartitionField, ...]:
    """The partition fields that properties, or options under their own names, describe for a key
    generator."""
    texts = names_in(properties.get("hoodie.table.partition.fields", ""))
    stored = names_in(properties.get(PARTITION_TYPES, ""))
    format_stored = _timed(properties, "output.dateformat") is not None
    # One field of a custom generator that has a time format can only be the timestamp.
    default = generator.endswith("TimestampBasedKeyGenerator") or (
        generator.endswith("CustomKeyGenerator") and format_stored and len(texts) == 1
    )
    fields = []
    for position, text in enumerate(texts):
        name, _, kind = text.partition(":")
        kind = kind or (stored[position] if position < len(stored) else "") or ("TIMESTAMP" if default else "")
        fields.append(_timestamp_field(properties, name) if kind.upper() == "TIMESTAMP" else PartitionField(name))
    return tuple(fields)


def _timestamp_field(properties: Mapping[str, str], name: str) -> PartitionField:
    kind, unit = _timed(properties, "timestamp.type"), _timed(properties, "timestamp.scalar.time.unit") or ""
    if kind == "SCALAR" and unit.lower() == "microseconds":
        kind, unit = "EPOCHMICROSECONDS", ""
    zone = _timed(properties, "timezone")
    return PartitionField(
        name,
        PartitionType.TIMESTAMP,
        format=_timed(properties, "output.dateformat"),
        input=kind,
        input_format=_timed(properties, "input.dateformat"),
        timezone=zone or _timed(properties, "output.timezone") or "",
        unit=unit,
        input_timezone=("" if zone else _timed(properties, "input.timezone")) or "",
    )


def with_timebased(config: TableConfig, options: Mapping[str, str]) -> TableConfig:
    """The config with what options say of its timestamps and the table itself does not store.

    Tables that Hudi 0.15.0 wrote do not tell what their timestamps count. Raises InvalidOptionError
    for a contradiction.
    """
    settings = {
        key: value for key, value in options.items() if key.startswith((TIMEBASED, _LEGACY_TIMEBASED)) and value
    }
    if not settings:
        return config
    if not any(item.type is PartitionType.TIMESTAMP for item in config.partition_by):
        named = {key: key.replace(_LEGACY_TIMEBASED, TIMEBASED) for key in settings}
        asked = sorted(key for key, name in named.items() if settings[key].strip() != default_of(name))
        if asked:
            raise InvalidOptionError(
                f"option {asked[0]} is of a partition by time, and the table has none: leave the option out"
            )
        return config
    field_of_options = _timestamp_field(settings, "")
    return replace(config, partition_by=tuple(_filled(item, field_of_options) for item in config.partition_by))


def _filled(item: PartitionField, of_options: PartitionField) -> PartitionField:
    if item.type is not PartitionType.TIMESTAMP:
        return item
    values = {name: (getattr(item, name), getattr(of_options, name)) for name in _TIMESTAMP_SETTINGS}
    for name, (stored, wanted) in values.items():
        if stored and wanted and stored != wanted:
            raise InvalidOptionError(
                f"the table's partition field '{item.field}' has {name} {stored!r}, not {wanted!r}: leave the option out"
            )
    return replace(item, **{name: stored or wanted for name, (stored, wanted) in values.items()})


def _timed(properties: Mapping[str, str], key: str) -> str | None:
    return properties.get(TIMEBASED + key) or properties.get(_LEGACY_TIMEBASED + key) or None


def _timebased(config: TableConfig) -> dict[str, str]:
    for item in config.partition_by:
        if item.type is PartitionType.TIMESTAMP:
            micros = item.input == "EPOCHMICROSECONDS"
            two_zones = bool(item.input_timezone)
            found = {
                "timestamp.type": "SCALAR" if micros else item.input,
                "timestamp.scalar.time.unit": "microseconds" if micros else item.unit,
                "output.dateformat": item.format,
                "input.dateformat": item.input_format,
                "output.timezone" if two_zones else "timezone": item.timezone,
                "input.timezone": item.input_timezone,
            }
            return {TIMEBASED + key: value for key, value in found.items() if value}
    return {}


def _index_spec(properties: Mapping[str, str], base_path: str) -> IndexSpec | None:
    value = properties.get(INDEX_TYPE)
    if not value and not properties.get(INDEX_CLASS):
        return None
    try:
        return index_spec(properties)
    except KeyError:
        raise UnsupportedTableError(
            f"the table's index {value} {properties.get(ENGINE, '')} is not supported; supported are {', '.join(INDEX_NAMES)}",
            base_path=base_path,
        ) from None
    except ValueError as error:
        raise CorruptTableError(f"hoodie.properties: {error}", base_path=base_path) from error


def _flag(value: bool) -> str:
    return "true" if value else "false"
