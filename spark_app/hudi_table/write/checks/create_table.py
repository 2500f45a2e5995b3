"""Creating a table: its identity checked, then written exclusively to `hoodie.properties`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from hudi_table.codec.arrow_types import normalise
from hudi_table.codec.avro.schema import arrow_to_avro
from hudi_table.errors import (
    InvalidOptionError,
    InvalidRequestError,
    InvalidSchemaError,
    ObjectExistsError,
    OutcomeUnknownError,
    TableNotFoundError,
    UnavailableError,
)
from hudi_table.metadata.port import open_context
from hudi_table.model.names import HOODIE
from hudi_table.model.options.known import INDEX_SETTINGS, admit, default_of, explicit_option
from hudi_table.model.options.values import stored_boolean
from hudi_table.model.options.write_options import COLON_RULE, CUSTOM_KEYS, CUSTOM_MERGER
from hudi_table.model.table.cdc import CDC_ENABLED, CDC_MODE, Images
from hudi_table.model.table.config import (
    IndexSpec,
    IndexType,
    KeyEncoding,
    MergeMode,
    PartitionField,
    PartitionFields,
    TableConfig,
    TableType,
)
from hudi_table.model.table.index_properties import INDEX_CLASS, RECORD_INDEX_MOVES, index_settings
from hudi_table.model.table.layouts import Layout, has_logical_types, layout_of, written_version
from hudi_table.model.table.merge_settings import PartialUpdates
from hudi_table.model.table.merging import Payload, payload_named, payload_of
from hudi_table.model.table.properties import (
    from_properties,
    one_complex_field,
    stored_class,
    table_payload,
    to_properties,
    with_timebased,
)
from hudi_table.model.table.version_properties import PAYLOAD, VERSION
from hudi_table.table.store.clock import SystemClock
from hudi_table.table.store.ports import Clock, Storage
from hudi_table.table.timeline.context import TableContext, TxnSettings
from hudi_table.table.timeline.properties import create_properties
from hudi_table.write.checks.merge_mode import refuse_custom_keys, refuse_merging
from hudi_table.write.checks.request import refuse_unsupported, resolve_index
from hudi_table.write.checks.reserved_columns import own_columns
from hudi_table.write.checks.table_arguments import index_of, member, names_of, partition_fields_of
from hudi_table.write.checks.table_options import (
    STORED,
    TIMEZONE,
    bucket_option,
    check_generator,
    described,
    index_option,
    merged,
    refuse_colon_rule,
    refuse_contradictions,
    refuse_moves,
    warn_of_encoding,
)
from hudi_table.write.keygen.columns import with_inputs
from hudi_table.write.keygen.key_encoding import key_encoding_option

_CREATE_ATTEMPTS_MAX = 5


@dataclass(frozen=True, slots=True)
class TableSpec:
    """What `create` is asked; names and values are those of the `HudiTable` resource. None leaves
    it to the options, and then to the default: a copy-on-write table with a simple index, without
    partitions and ordering fields."""

    schema: pa.Schema
    record_key: str | Sequence[str] | None = None
    partition_by: PartitionFields | None = None
    ordering_fields: str | Sequence[str] | None = None
    type: str | None = None
    merge_mode: str | None = None
    partial_updates: str | None = None
    index: str | Mapping[str, Any] | IndexSpec | None = None
    name: str | None = None
    database: str | None = None
    hive_style: bool | None = None
    url_encode: bool | None = None
    populate_meta_fields: bool | None = None
    version: int | None = None
    options: Mapping[str, str] = field(default_factory=dict)


def create(storage: Storage, spec: TableSpec, *, if_exists: str = "error", clock: Clock | None = None) -> TableContext:
    """Create the table, or with `if_exists="open"` open one of the same identity.

    Raises InvalidRequestError if the location holds something else, a table (`"error"`) or a table
    of another identity (`"open"`), InvalidSchemaError, InvalidOptionError, UnsupportedTableError.
    """
    if if_exists not in ("error", "open"):
        raise InvalidOptionError(f"if_exists is {if_exists!r}; use 'error' or 'open'")
    config = config_of(spec, storage.base_path)
    used = clock or SystemClock()
    TxnSettings.from_properties(config.extra)
    for _ in range(_CREATE_ATTEMPTS_MAX):
        try:
            found = open_context(storage, used)
        except TableNotFoundError:
            refuse_other_content(storage)
        else:
            if if_exists == "error":
                raise InvalidRequestError(
                    f"there is a table {found.config.name!r} at {storage.base_path} already; open it, or give if_exists='open'"
                )
            asks = spec.version is not None or explicit_option(spec.options, VERSION) is not None
            check_identity(
                found.config, config if asks else replace(config, version=found.config.version), storage.base_path
            )
            _check_asked(found.config, spec, storage.base_path)
            return found
        try:
            create_properties(storage, config)
            return open_context(storage, used)
        except ObjectExistsError:
            continue
        except OutcomeUnknownError:
            # Whoever created the file, it is read back; if it is this very table, it was (as good as) this call.
            if_exists = "open"
    raise UnavailableError(f"the store did not confirm the creation of the table at {storage.base_path}; try again")


def config_of(spec: TableSpec, base_path: str) -> TableConfig:
    """The identity that a spec describes. Raises InvalidRequestError and its kinds,
    UnsupportedTableError."""
    admit(spec.options)
    spec = _with_options(spec)
    version = written_version(spec.version)
    schema = normalise(own_columns(spec.schema), logical_types=has_logical_types(version))
    ordering = names_of(spec.ordering_fields or ())
    payload = _payload(spec, ordering)
    if payload.event_time and not ordering:
        raise InvalidRequestError("merge_mode EventTime needs an ordering field; give ordering_fields")
    name = spec.name or base_path.rstrip("/").rpartition("/")[2]
    index = _index(spec)
    config = TableConfig(
        name=name,
        database=spec.database or "",
        type=member(TableType, spec.type or TableType.COPY_ON_WRITE, "type"),
        record_key=names_of(spec.record_key or ()),
        partition_by=partition_fields_of(spec.partition_by or ()),
        ordering_fields=ordering,
        merge_mode=payload.mode,
        payload_class=stored_class(payload),
        index=index,
        key_encoding=key_encoding_option(spec.options) or KeyEncoding.RAW,
        hive_style=bool(spec.hive_style),
        url_encode=bool(spec.url_encode),
        populate_meta_fields=spec.populate_meta_fields is not False,
        version=version,
        archive_folder=layout_of(version).archive_default,
        create_schema=arrow_to_avro(schema, table_name=name),
        extra=_stored(spec, index, layout_of(version)),
    )
    _check(config, schema)
    check_generator(config, spec.options)
    warn_of_encoding(config, spec.options)
    with_timebased(config, spec.options)
    return with_inputs(config, schema)


def _with_options(spec: TableSpec) -> TableSpec:
    """The spec with what its options say. Raises InvalidRequestError where arguments and options
    differ."""
    of_options = described(spec.options)
    key = bucket_option(spec.options)
    if key is not None and "index" not in of_options and not spec.options.get(INDEX_CLASS):
        of_options["index"] = index_option(spec.options, _index(spec))
    have = {name: getattr(spec, name) for name in of_options}
    if "index" in of_options and have["index"] is not None:
        have["index"] = _fuller(index_of(have["index"]), of_options["index"])
    return replace(spec, **merged(have, of_options, _same))


def _fuller(index: IndexSpec, of_options: IndexSpec) -> IndexSpec:
    """An index as an argument names it; what it leaves out, the options may say."""
    if not index.hash_fields and index.type is of_options.type:
        return replace(index, hash_fields=of_options.hash_fields)
    return index


def _same(name: str, one: Any, other: Any) -> bool:
    if name == "type":
        return member(TableType, one, name) is member(TableType, other, name)
    if name == "merge_mode":
        return member(MergeMode, one, name) is member(MergeMode, other, name)
    if name in ("record_key", "ordering_fields"):
        return names_of(one) == names_of(other)
    if name == "partition_by":
        # Options may leave out what makes a path of a timestamp; an argument never does.
        return [item.field for item in partition_fields_of(one)] == [item.field for item in partition_fields_of(other)]
    return bool(one == other)


def _stored(spec: TableSpec, index: IndexSpec, layout: Layout) -> dict[str, str]:
    """Properties of a table beside what its fields say."""
    _refuse_idle(spec.options, index)
    refuse_colon_rule(index, spec.options)
    stored = {key: spec.options[key] for key in STORED if key in spec.options}
    if index.type.hashes:
        stored.setdefault(COLON_RULE, layout.colon_rule)
    refuse_moves(index, spec.options)
    moves = spec.options.get(RECORD_INDEX_MOVES, "").strip().lower()
    if moves and index.type.may_keep_partition:
        stored[RECORD_INDEX_MOVES] = moves
    if CDC_ENABLED in stored:
        stored[CDC_MODE] = stored.get(CDC_MODE, Images.DATA_BEFORE_AFTER).upper()
    return stored


def _refuse_idle(options: Mapping[str, str], index: IndexSpec) -> None:
    """Refuse options that say nothing of such a table. Raises InvalidOptionError."""
    mode = options.get(CDC_MODE, "").strip()
    if mode and mode.upper() != default_of(CDC_MODE) and not stored_boolean(options.get(CDC_ENABLED)):
        raise InvalidOptionError(
            f"option {CDC_MODE}={mode} does nothing alone: give {CDC_ENABLED}=true with it, or leave it out"
        )
    settings = () if index.type.is_custom else index_settings(options)
    if settings:
        raise InvalidOptionError(
            f"option {INDEX_SETTINGS}{settings[0][0]} is of a custom index, and the table's is {index.type.value}: leave the option out"
        )
    if options.get(TIMEZONE, "UTC").strip().upper() != "UTC":
        raise InvalidOptionError(
            f"option {TIMEZONE}={options[TIMEZONE]}: a new table keeps its timeline in UTC, leave the option out"
        )


def _payload(spec: TableSpec, ordering: tuple[str, ...]) -> Payload:
    """How the table merges: a payload class among the options, or the modes."""
    custom = bool(spec.options.get(CUSTOM_MERGER))
    default = MergeMode.EVENT_TIME if ordering and not custom else MergeMode.COMMIT_TIME
    mode = default if spec.merge_mode is None else member(MergeMode, spec.merge_mode, "merge_mode")
    partial = None if spec.partial_updates is None else member(PartialUpdates, spec.partial_updates, "partial_updates")
    name = explicit_option(spec.options, PAYLOAD)
    if not name:
        return payload_of(mode, partial)
    payload = payload_named(name)
    checks = [(spec.merge_mode, mode, payload.mode), (spec.partial_updates, partial, payload.partial)]
    for argument, wanted, has in checks:
        if argument is not None and wanted != has:
            raise InvalidRequestError(
                f"payload class {name} merges by {payload.mode.value} with partial updates "
                f"{payload.partial or 'none'}, not {argument}; leave one of the two out"
            )
    return payload


def check_identity(have: TableConfig, want: TableConfig, base_path: str) -> None:
    """Refuse a spec that describes another table than the one at the location. Raises
    InvalidRequestError."""
    pairs: list[tuple[str, Any, Any]] = [
        ("type", have.type.value, want.type.value),
        ("version", have.version, want.version),
        ("recordKey", have.record_key, want.record_key),
        ("partitionBy", have.partition_fields, want.partition_fields),
        ("orderingFields", have.ordering_fields, want.ordering_fields),
    ]
    if one_complex_field(have) and have.key_encoding != KeyEncoding.UNKNOWN:
        pairs.append(("key encoding", have.key_encoding, want.key_encoding))
    if have.index is not None and want.index is not None:
        # Only tables of ours store these; of others they are not known.
        pairs += [(key, have.extra.get(key, ""), want.extra.get(key, "")) for key in (CUSTOM_MERGER, CUSTOM_KEYS)]
        moves = [side.extra.get(RECORD_INDEX_MOVES, "false") for side in (have, want)]
        pairs.append((RECORD_INDEX_MOVES, moves[0], moves[1]))
        pairs += [
            ("index.type", have.index.type.value, want.index.type.value),
            ("index.buckets", have.index.buckets, want.index.buckets),
            ("index.partitionBuckets", have.index.partition_buckets, want.index.partition_buckets),
            ("index.class", have.index.class_name, want.index.class_name),
            ("index.settings", _pairs(have.index), _pairs(want.index)),
            ("mergeMode", have.merge_mode.value, want.merge_mode.value),
            ("payload class", table_payload(have).class_name, table_payload(want).class_name),
            ("partitionBy", _shown(have.partition_by), _shown(want.partition_by)),
        ]
    _refuse_others(have, pairs, base_path)


def _check_asked(have: TableConfig, spec: TableSpec, base_path: str) -> None:
    """Refuse what is asked for and the table at the location has not, of that which need not be
    asked. Raises InvalidRequestError."""
    asked = _with_options(spec)
    names = ("name", "database", "hive_style", "url_encode", "populate_meta_fields")
    given = [(name, getattr(have, name), getattr(asked, name)) for name in names if getattr(asked, name) is not None]
    _refuse_others(have, given, base_path)
    refuse_contradictions(have, {key: value for key, value in spec.options.items() if key in (*STORED, TIMEZONE)})


def _refuse_others(have: TableConfig, pairs: Sequence[tuple[str, Any, Any]], base_path: str) -> None:
    for what, stored, wanted in pairs:
        if stored != wanted:
            raise InvalidRequestError(
                f"table {have.name!r} at {base_path} has {what} {_text(stored)}, not {_text(wanted)}; it cannot be changed: "
                "ask for the stored value, or use another location",
                base_path=base_path,
            )


def _index(spec: TableSpec) -> IndexSpec:
    """The index of a spec; `hoodie.index.class` among its options overrides the type among them, as
    in Hudi, never an argument."""
    index = index_of(spec.index or IndexType.SIMPLE.value)
    name = spec.options.get(INDEX_CLASS) or index.class_name
    if spec.index is not None and name != index.class_name:
        raise InvalidRequestError(
            f"index is {_text(index.class_name or index.type.value)}, and option {INDEX_CLASS} is {name!r}; leave one of the two out"
        )
    if not name:
        return index
    settings = tuple(sorted((dict(index.settings) | dict(index_settings(spec.options))).items()))
    return IndexSpec(IndexType.CUSTOM, class_name=name, settings=settings)


def _check(config: TableConfig, schema: pa.Schema) -> None:
    if not config.name:
        raise InvalidRequestError("the table needs a name; give name")
    for role, text in (("name", config.name), ("database", config.database)):
        if not text.isprintable():
            raise InvalidRequestError(f"{role} {text!r} has characters that are not printed; give one without them")
    if not config.record_key:
        raise InvalidRequestError(
            "the table needs a record key; give record_key, or the option hoodie.datasource.write.recordkey.field"
        )
    roles = [
        ("record_key", config.record_key),
        ("partition_by", config.partition_fields),
        ("ordering_fields", config.ordering_fields),
    ]
    for role, names in roles:
        for name in names:
            if names.count(name) > 1:
                raise InvalidRequestError(f"{role} names {name!r} twice; name it once")
            if name.partition(".")[0] not in schema.names:
                raise InvalidSchemaError(
                    f"{role} names '{name}', which is no column; there are {', '.join(schema.names)}"
                )
            if role == "ordering_fields" and "." in name:
                raise InvalidSchemaError(
                    f"{role} names '{name}', a field of a struct, and rows are compared by columns: write it as a column, too"
                )
    # As it is once its version has put in words how it merges.
    refuse_unsupported(from_properties(to_properties(config)))
    index, _ = resolve_index(config, {})
    refuse_merging(config, table_payload(config), index)
    refuse_custom_keys(config)


def refuse_other_content(storage: Storage) -> None:
    """Refuse a location for a new table where other files are. Raises InvalidRequestError."""
    folders, files = storage.list_dir("")
    strange = [f"{name}/" for name in folders if name.rpartition("/")[2] != HOODIE] + [info.path for info in files]
    if strange:
        raise InvalidRequestError(
            f"{storage.base_path} holds something else than a Hudi table ({', '.join(strange[:3])}); use an empty location",
            base_path=storage.base_path,
        )


def _shown(items: tuple[PartitionField, ...]) -> tuple[str, ...]:
    return tuple(f"{item.field}:{item.type.value}:{item.format or ''}" for item in items)


def _pairs(index: IndexSpec) -> tuple[str, ...]:
    return tuple(f"{name}={value}" for name, value in index.settings)


def _text(value: Any) -> str:
    return ", ".join(value) or "nothing" if isinstance(value, tuple) else str(value)
