"""What options say of a table that is to be created, and whether they contradict one that is there.

A property of the table may be given as an argument of `create_table`, as the option by which Hudi's
writers name it, or as both if they agree. Later writes and services may repeat such options: they
are compared with what the table stores.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hudi_table.errors import InvalidOptionError, InvalidRequestError, UnsupportedTableError
from hudi_table.model.options import values
from hudi_table.model.options.known import (
    INDEX_SETTINGS,
    Fate,
    aliases,
    boolean_option,
    default_of,
    explicit_option,
    known_options,
    renamed,
    warn_of,
)
from hudi_table.model.options.lock_settings import names_lock
from hudi_table.model.options.write_options import COLON_RULE, CUSTOM_KEYS, CUSTOM_MERGER, QUARANTINE, SUSPECT
from hudi_table.model.table.cdc import CDC_ENABLED, CDC_MODE, Images
from hudi_table.model.table.config import IndexSpec, IndexType, TableConfig, TableType
from hudi_table.model.table.index_properties import (
    BUCKETS,
    BUCKETS_MAX,
    BUCKETS_MIN,
    ENGINE,
    EXPRESSIONS,
    HASH_FIELDS,
    INDEX_CLASS,
    INDEX_NAMES,
    INDEX_TYPE,
    RECORD_INDEX_MOVES,
    STATE_FOLDER,
    STATE_PARTITIONS,
    STATE_TTL,
    index_properties,
    index_spec,
    names_in,
)
from hudi_table.model.table.merging import payload_named
from hudi_table.model.table.properties import (
    KEY_ENCODING,
    MERGE_NAMES,
    TIMEBASED,
    generator_class,
    one_complex_field,
    partition_fields,
    table_payload,
    with_timebased,
)
from hudi_table.model.table.version_properties import GENERATOR, GENERATOR_TYPE, GENERATOR_TYPES, MERGE_MODE, PAYLOAD

NAME, DATABASE, TYPE, VERSION = "hoodie.table.name", "hoodie.database.name", "hoodie.table.type", "hoodie.table.version"
RECORD_KEY, PARTITIONS = "hoodie.table.recordkey.fields", "hoodie.table.partition.fields"
ORDERING = "hoodie.table.ordering.fields"
HIVE_STYLE = "hoodie.datasource.write.hive_style_partitioning"
URL_ENCODE = "hoodie.datasource.write.partitionpath.urlencode"
META_FIELDS = "hoodie.populate.meta.fields"
TIMEZONE = "hoodie.table.timeline.timezone"
STORED = (COLON_RULE, QUARANTINE, SUSPECT, CDC_ENABLED, CDC_MODE, CUSTOM_MERGER, CUSTOM_KEYS)
"""What a table stores of its options as it is given."""
_BUCKET_KEYS = (BUCKETS, HASH_FIELDS, ENGINE, EXPRESSIONS, BUCKETS_MIN, BUCKETS_MAX)


def table_options(options: Mapping[str, str]) -> dict[str, str]:
    """Those of the options that say something of a table that is created: it stores them. All
    others are of its writes and services."""
    return {key: value for key, value in options.items() if _is_stored(aliases().get(key, key))}


def with_names(options: Mapping[str, str], named: Mapping[str, str | None]) -> dict[str, str]:
    """The options with those that arguments name. Raises InvalidOptionError where both name
    another."""
    for key, name in named.items():
        if name and options.get(key, name) != name:
            raise InvalidOptionError(
                f"option {key}={options[key]} contradicts the {name!r} that is given: leave it out"
            )
    return dict(options) | {key: name for key, name in named.items() if name}


def warn_of_others(options: Mapping[str, str]) -> None:
    """Warn of each option that acts on writes and services and is given to a creation: it is not
    stored, so nobody would act on it. The lock that they name is that of the table that is made, as
    long as it is open."""
    others = options.keys() - table_options(options).keys()
    for key in sorted(others):
        option = known_options().get(aliases().get(key, key))
        if (
            option is not None
            and option.fate is Fate.ACTS
            and not names_lock(key)
            and options[key].strip().lower() not in ("", option.default.lower())
        ):
            warn_of(
                f"option {key!r} does nothing at a table's creation and is not stored: give it to writes and services"
            )


def _is_stored(key: str) -> bool:
    return key in _TABLE_KEYS or key.startswith((TIMEBASED, INDEX_SETTINGS))


def index_option(options: Mapping[str, str], known: IndexSpec | None = None) -> IndexSpec | None:
    """The index that options name, None if they name none. `known`: the one that is meant where
    they tell of its buckets alone.

    Raises InvalidOptionError, also for buckets of an index that has none, UnsupportedTableError.
    """
    name = options.get(INDEX_TYPE)
    if not name and not options.get(INDEX_CLASS):
        if known is None or bucket_option(options) is None:
            return None
        _refuse_buckets(known.type, options)
        options = {**index_properties(known), **options}
    try:
        spec = index_spec(options)
    except KeyError:
        suffix = " with " + f"{ENGINE}={options[ENGINE]}" if ENGINE in options else ""
        raise UnsupportedTableError(
            f"{INDEX_TYPE}={name}{suffix} is not supported by this release; supported are {', '.join(INDEX_NAMES)}"
        ) from None
    except ValueError as error:
        raise InvalidOptionError(str(error)) from error
    _refuse_buckets(spec.type, options)
    return spec


def bucket_option(options: Mapping[str, str]) -> str | None:
    """The first option that tells something of buckets, if there is one."""
    given = ((key, options.get(key, "").strip()) for key in _BUCKET_KEYS)
    return next((key for key, value in given if value and (key, value.upper()) != (ENGINE, "SIMPLE")), None)


def _refuse_buckets(kind: IndexType, options: Mapping[str, str]) -> None:
    key = None if kind.hashes else bucket_option(options)
    if key is not None:
        raise InvalidOptionError(
            f"option {key} is of a bucket index, and the table's is {kind.value}: leave the option out"
        )


def refuse_moves(index: IndexSpec, options: Mapping[str, str]) -> None:
    """Raise InvalidOptionError if keys are to move by an option that an index does not have."""
    if boolean_option(options, RECORD_INDEX_MOVES) and not index.type.may_keep_partition:
        raise InvalidOptionError(
            f"option {RECORD_INDEX_MOVES} is of a record index, and the table's is {index.type.value}: leave the option out"
        )


def refuse_state(index: IndexSpec, options: Mapping[str, str]) -> None:
    """Raise InvalidOptionError for what a key state is to keep where there is none."""
    key = next((key for key in (STATE_PARTITIONS, STATE_TTL, STATE_FOLDER) if key in options), None)
    if key is not None and not index.type.keeps_state:
        raise InvalidOptionError(
            f"option {key} is of a key state, and the table's index is {index.type.value}: leave the option out"
        )


def refuse_colon_rule(index: IndexSpec, options: Mapping[str, str]) -> None:
    """Raise InvalidOptionError for a rule of hashing where nothing is hashed."""
    rule = options.get(COLON_RULE, "").strip()
    if rule not in ("", default_of(COLON_RULE)) and not index.type.hashes:
        raise InvalidOptionError(
            f"option {COLON_RULE} is of a bucket index, and the table's is {index.type.value}: leave the option out"
        )


def warn_of_encoding(config: TableConfig, options: Mapping[str, str]) -> None:
    """Warn of an encoding of keys where there is but one."""
    if options.get(KEY_ENCODING) is not None and not one_complex_field(config):
        warn_of(
            f"option {KEY_ENCODING!r} does nothing here: it is of a complex key of one field, and the table has none"
        )


def described(options: Mapping[str, str]) -> dict[str, Any]:
    """Fields of a `TableSpec` that options tell. Raises InvalidOptionError,
    UnsupportedTableError."""
    current = renamed(options)
    fields: dict[str, Any] = {}
    for key, (field, value) in _FIELDS.items():
        text = current.get(key, "").strip()
        if text:
            fields[field] = value(key, text)
    if current.get(PARTITIONS):
        fields["partition_by"] = partition_fields(current, _generator(current))
    index = index_option(current)
    if index is not None and not current.get(INDEX_CLASS):
        fields["index"] = index
    return fields


def check_generator(config: TableConfig, options: Mapping[str, str]) -> None:
    """Raise InvalidOptionError for a key generator that would make other keys or paths than the
    table's fields do."""
    have = generator_class(config).rpartition(".")[2]
    generator = _generator(renamed(options)).rpartition(".")[2]
    if generator and generator != have:
        raise InvalidOptionError(
            f"option {GENERATOR} or {GENERATOR_TYPE} asks for {generator}, and the table's fields for {have}: leave the option out"
        )


def refuse_contradictions(config: TableConfig, options: Mapping[str, str]) -> None:
    """Refuse options that describe another table than this one. Raises InvalidOptionError."""
    stored = {
        VERSION: str(config.version),
        NAME: config.name,
        TYPE: config.type.hudi_name,
        RECORD_KEY: ",".join(config.record_key),
        PARTITIONS: ",".join(config.partition_fields),
        ORDERING: ",".join(config.ordering_fields),
        HIVE_STYLE: str(config.hive_style).lower(),
        URL_ENCODE: str(config.url_encode).lower(),
        META_FIELDS: str(config.populate_meta_fields).lower(),
        CDC_ENABLED: config.extra.get(CDC_ENABLED, "false").lower(),
        CDC_MODE: config.extra.get(CDC_MODE, Images.DATA_BEFORE_AFTER).lower(),
        CUSTOM_MERGER: config.extra.get(CUSTOM_MERGER, ""),
        CUSTOM_KEYS: config.extra.get(CUSTOM_KEYS, ""),
        DATABASE: config.database,
        TIMEZONE: config.timezone,
        **{key: config.extra.get(key, default_of(key)) for key in (QUARANTINE, SUSPECT)},
    }
    if COLON_RULE in config.extra:
        # Of a table that stores none, as Hudi's, the option tells it.
        stored[COLON_RULE] = config.extra[COLON_RULE]
    elif config.index is not None:
        refuse_colon_rule(config.index, options)
    if config.index is not None:
        refuse_moves(config.index, options)
        if not config.index.type.is_custom:
            stored[INDEX_TYPE] = config.index.type.hudi_name
        # Tables of ours store how they merge; of others their writers may tell it.
        stored |= {MERGE_MODE: MERGE_NAMES[config.merge_mode], PAYLOAD: table_payload(config).class_name}
    named = {aliases().get(key, key) for key in options}
    for key, have in stored.items():
        if key not in named:
            continue
        want = explicit_option(options, key)
        if key == PAYLOAD and want:
            payload_named(want)
        if want is not None and _plain(key, want) != _plain(key, have):
            name = next(
                name
                for name in options
                if name in (key, *options) and explicit_option({name: options[name]}, key) is not None
            )
            raise InvalidOptionError(
                f"option {name}={options[name]} contradicts the table, which stores {have!r}; remove the option"
            )
    check_generator(config, options)
    warn_of_encoding(config, options)
    with_timebased(config, options)


def merged(
    arguments: Mapping[str, Any], of_options: Mapping[str, Any], same: Callable[[str, Any, Any], bool]
) -> dict[str, Any]:
    """The fields of a spec, of arguments (None: not given) and options. Raises InvalidRequestError
    where they differ."""
    fields = {name: value for name, value in arguments.items() if value is not None}
    for name, value in of_options.items():
        if name in fields and not same(name, fields[name], value):
            raise InvalidRequestError(
                f"{name} is {_told(fields[name])}, and the options say {_told(value)}: leave one of the two out"
            )
        fields.setdefault(name, value)
    return fields


def _told(value: Any) -> str:
    return value.type.value if isinstance(value, IndexSpec) else repr(value)


def _plain(key: str, text: str) -> str:
    if key in (TYPE, HIVE_STYLE, URL_ENCODE, META_FIELDS, MERGE_MODE, CDC_ENABLED, CDC_MODE, TIMEZONE):
        return text.strip().lower()
    if key == INDEX_TYPE:
        return IndexType.named(text.strip()).hudi_name
    if key == PAYLOAD:
        return text.strip().rpartition(".")[2]
    if key in (QUARANTINE, SUSPECT):
        return f"{values.number(key, text):g}"
    # A custom key generator's fields carry their kind: `ts:timestamp`.
    return ",".join(name.partition(":")[0] for name in names_in(text))


def _generator(options: Mapping[str, str]) -> str:
    name = options.get(GENERATOR, "").strip()
    kind = options.get(GENERATOR_TYPE, "").strip().upper()
    return name or (GENERATOR_TYPES.get(kind, kind) if kind else "")


def _text(key: str, text: str) -> str:
    del key
    return text


def _names(key: str, text: str) -> tuple[str, ...]:
    del key
    return names_in(text)


def _type(key: str, text: str) -> str:
    del key
    return TableType[text.upper()].value


def _version(key: str, text: str) -> int:
    del key
    return int(text)


def _mode(key: str, text: str) -> str:
    del key
    return next(mode.value for mode, name in MERGE_NAMES.items() if name == text.upper())


_FIELDS: Mapping[str, tuple[str, Callable[[str, str], Any]]] = {
    NAME: ("name", _text),
    DATABASE: ("database", _text),
    TYPE: ("type", _type),
    VERSION: ("version", _version),
    RECORD_KEY: ("record_key", _names),
    ORDERING: ("ordering_fields", _names),
    MERGE_MODE: ("merge_mode", _mode),
    HIVE_STYLE: ("hive_style", values.boolean),
    URL_ENCODE: ("url_encode", values.boolean),
    META_FIELDS: ("populate_meta_fields", values.boolean),
}
_TABLE_KEYS = frozenset(
    {
        *_FIELDS,
        *_BUCKET_KEYS,
        *STORED,
        PARTITIONS,
        GENERATOR,
        GENERATOR_TYPE,
        INDEX_TYPE,
        INDEX_CLASS,
        PAYLOAD,
        KEY_ENCODING,
        TIMEZONE,
        RECORD_INDEX_MOVES,
    }
)
