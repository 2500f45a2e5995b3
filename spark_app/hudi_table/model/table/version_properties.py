"""The keys of `hoodie.properties` as each table version names them: from those of version 6, in
which everything else is said.

Facts (measured on Hudi 1.0.2 and 1.1.1): versions 8 and 9 name the folders of the timeline, the
merge mode and the key generator's type. Version 8 stores a merge strategy and a payload class
beside the mode, version 9 neither, and calls the ordering field by another key. Of a custom key
generator the partition fields carry their kinds (read in Hudi's source).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

GENERATOR = "hoodie.table.keygenerator.class"
GENERATOR_TYPE = "hoodie.table.keygenerator.type"
"""What 1.x stores in the place of the generator's class."""
GENERATOR_TYPES = {
    "SIMPLE": "SimpleKeyGenerator",
    "COMPLEX": "ComplexKeyGenerator",
    "TIMESTAMP": "TimestampBasedKeyGenerator",
    "CUSTOM": "CustomKeyGenerator",
    "NON_PARTITION": "NonpartitionedKeyGenerator",
    "GLOBAL_DELETE": "GlobalDeleteKeyGenerator",
}
VERSION, INITIAL_VERSION = "hoodie.table.version", "hoodie.table.initial.version"
LAYOUT_VERSION = "hoodie.timeline.layout.version"
PRECOMBINE, ORDERING = "hoodie.table.precombine.field", "hoodie.table.ordering.fields"
PAYLOAD = "hoodie.compaction.payload.class"
MERGER = "hoodie.compaction.record.merger.strategy"
MERGE_MODE = "hoodie.record.merge.mode"
STRATEGY = "hoodie.record.merge.strategy.id"
BY_COMMIT_TIME, BY_EVENT_TIME = "COMMIT_TIME_ORDERING", "EVENT_TIME_ORDERING"
STRATEGIES = {
    BY_COMMIT_TIME: "ce9acb64-bde0-424c-9b91-f6ebba25356d",
    BY_EVENT_TIME: "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5",
}
"""Hudi's ids of the two ways of merging that call no class of others."""
BY_CLASS, BY_CLASS_STRATEGY = "CUSTOM", "00000000-0000-0000-0000-000000000000"
"""The mode and the id by which version 8 says that the payload class merges."""
PARTITION_FIELDS = "hoodie.table.partition.fields"
PARTITION_TYPES = "hoodie.lakeops.partition.types"
"""`SIMPLE` or `TIMESTAMP` of each partition field: Hudi 0.15.0 stores the custom generator's fields
without (measured)."""
BOOTSTRAP_BASE = "hoodie.bootstrap.base.path"
BOOTSTRAP_INDEX, BOOTSTRAP_INDEX_TYPE = "hoodie.bootstrap.index.class", "hoodie.bootstrap.index.type"
"""The index of a table that was bootstrapped in place, of which there is one kind."""
HFILE_INDEX = "org.apache.hudi.common.bootstrap.index.hfile.HFileBootstrapIndex"
OF_VERSION = frozenset({
    PRECOMBINE, ORDERING, PAYLOAD, MERGER, MERGE_MODE, STRATEGY, GENERATOR, GENERATOR_TYPE, PARTITION_FIELDS,
    BOOTSTRAP_INDEX, BOOTSTRAP_INDEX_TYPE, "hoodie.archivelog.folder",
})  # fmt: skip
"""Keys that an upgrade renames, drops or gives another value."""

LEGACY_PAYLOAD = "hoodie.table.legacy.payload.class"
PARTIAL_MODE = "hoodie.table.partial.update.mode"
LAYOUT_2_WORDS = frozenset({
    "hoodie.timeline.path", "hoodie.timeline.history.path", MERGE_MODE, STRATEGY, GENERATOR_TYPE, ORDERING, LEGACY_PAYLOAD,
    "hoodie.table.format", "hoodie.table.multiple.base.file.formats.enable", "hoodie.table.index.defs.path",
    PARTIAL_MODE, BOOTSTRAP_INDEX_TYPE,
})  # fmt: skip
"""Keys that version 6 does not have."""
PLAIN_PAYLOADS = {
    BY_COMMIT_TIME: "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload",
    BY_EVENT_TIME: "org.apache.hudi.common.model.DefaultHoodieRecordPayload",
}
"""The payload classes that merge as the two plain modes do."""
_MODEL, _PROPERTY = "org.apache.hudi.common.model.", "hoodie.record.merge.property."
_FIELD, _MARKER = f"{_PROPERTY}hoodie.payload.delete.field", f"{_PROPERTY}hoodie.payload.delete.marker"
MYSQL_PAYLOAD = f"{_MODEL}debezium.MySqlDebeziumAvroPayload"
_SETTINGS_OF_9: Mapping[str, Mapping[str, str]] = {
    f"{_MODEL}OverwriteNonDefaultsWithLatestAvroPayload": {PARTIAL_MODE: "IGNORE_DEFAULTS"},
    f"{_MODEL}PartialUpdateAvroPayload": {PARTIAL_MODE: "IGNORE_DEFAULTS"},
    f"{_MODEL}AWSDmsAvroPayload": {_FIELD: "Op", _MARKER: "D"},
    f"{_MODEL}debezium.PostgresDebeziumAvroPayload": {
        PARTIAL_MODE: "FILL_UNAVAILABLE", _FIELD: "_change_operation_type", _MARKER: "d",
        f"{_PROPERTY}hoodie.write.partial.update.unavailable.value": "__debezium_unavailable_value",
        ORDERING: "_event_lsn",
    },
    MYSQL_PAYLOAD: {
        _FIELD: "_change_operation_type", _MARKER: "d", ORDERING: "_event_bin_file,_event_pos",
    },
}  # fmt: skip
"""What version 9 says of payload classes beside the mode, as Hudi 1.1.1 creates tables
(`tests/interop/test_merging_later.py`) and upgrades them."""
_BY_MODE_IN_8 = frozenset({*PLAIN_PAYLOADS.values(), f"{_MODEL}EventTimeAvroPayload"})
"""Classes whose mode version 8 names; of others it says that the class merges (measured)."""

Properties = dict[str, str]


def ordering_in_9(payload: str) -> tuple[str, ...]:
    """The ordering fields that version 9 has for a payload class, whatever earlier ones name; none
    where it takes theirs."""
    fields = _SETTINGS_OF_9.get(payload, {}).get(ORDERING, "")
    return tuple(filter(None, fields.split(",")))


def is_of_another_version(properties: Mapping[str, str]) -> bool:
    """Whether a table was brought from one version to another since it was created."""
    born = properties.get(INITIAL_VERSION)
    return born is not None and born != properties.get(VERSION)


def brought_to(version: int, properties: Mapping[str, str], merge_mode: str, payload: str) -> Properties:
    """The properties of a table after it was brought from its version to another. `merge_mode` and
    `payload`, a class of version 6: how it merges, before and after.

    Where Hudi's upgrade of a merge-on-read table turns every payload class into
    DefaultHoodieRecordPayload (measured), the mode stays here.
    """
    born = properties.get(INITIAL_VERSION, properties[VERSION])
    out = stored_in(version, {**_words_of_6(properties, payload), VERSION: str(version)}, merge_mode)
    out[INITIAL_VERSION] = born
    if born == out[VERSION] and LAYOUT_2_WORDS.isdisjoint(out):
        del out[INITIAL_VERSION]
    return out


def _words_of_6(properties: Mapping[str, str], payload: str) -> Properties:
    """What the properties say, in the words of version 6."""
    told = LAYOUT_2_WORDS | _SETTINGS_OF_9.get(payload, {}).keys()
    out = {key: value for key, value in properties.items() if key not in told}
    if ORDERING in properties:
        out[PRECOMBINE] = properties[ORDERING]
    out[PAYLOAD] = payload
    short = GENERATOR_TYPES.get(properties.get(GENERATOR_TYPE, "").upper())
    if short and GENERATOR not in out:
        out[GENERATOR] = f"org.apache.hudi.keygen.{short}"
    named = [field.partition(":") for field in out.get(PARTITION_FIELDS, "").split(",")]
    if any(kind for _, _, kind in named):
        out[PARTITION_FIELDS] = ",".join(name for name, _, _ in named)
        out.setdefault(PARTITION_TYPES, ",".join(kind.upper() or "SIMPLE" for _, _, kind in named))
    if BOOTSTRAP_INDEX_TYPE in properties:
        out[BOOTSTRAP_INDEX] = HFILE_INDEX
    if properties.get("hoodie.table.type") == "MERGE_ON_READ":
        out[MERGER] = STRATEGIES[BY_EVENT_TIME]
    return out | {LAYOUT_VERSION: "1", "hoodie.archivelog.folder": "archived"}


def stored_in(version: int, properties: Properties, merge_mode: str) -> Properties:
    """The properties of a new table of a version; `properties` are those of version 6, `merge_mode`
    how it merges."""
    return _STORED[version](properties, merge_mode)


def _of_6(properties: Properties, merge_mode: str) -> Properties:
    del merge_mode
    return properties


def _of_8(properties: Properties, merge_mode: str) -> Properties:
    out = _of_1x(properties, merge_mode)
    if out[PAYLOAD] in _BY_MODE_IN_8:
        return {**out, STRATEGY: STRATEGIES[merge_mode]}
    return {**out, MERGE_MODE: BY_CLASS, STRATEGY: BY_CLASS_STRATEGY}


def _of_9(properties: Properties, merge_mode: str) -> Properties:
    out = {**_of_1x(properties, merge_mode), "hoodie.table.format": "native"}
    payload = out.pop(PAYLOAD)
    if PRECOMBINE in out:
        out[ORDERING] = out.pop(PRECOMBINE)
    if payload not in PLAIN_PAYLOADS.values():
        out |= {LEGACY_PAYLOAD: payload, **_SETTINGS_OF_9.get(payload, {})}
    return out


def _of_1x(properties: Properties, merge_mode: str) -> Properties:
    out = {key: value for key, value in properties.items() if key != MERGER}
    out |= {
        INITIAL_VERSION: out[VERSION],
        LAYOUT_VERSION: "2",
        "hoodie.timeline.path": "timeline",
        "hoodie.timeline.history.path": "history",
        "hoodie.archivelog.folder": "history",
        "hoodie.table.multiple.base.file.formats.enable": "false",
        MERGE_MODE: merge_mode,
    }
    if out.pop(BOOTSTRAP_INDEX, None):
        out[BOOTSTRAP_INDEX_TYPE] = "HFILE"
    short = out.get(GENERATOR, "").rpartition(".")[2]
    kind = next((kind for kind, name in GENERATOR_TYPES.items() if name == short), None)
    if kind is not None:
        out[GENERATOR_TYPE] = kind
        del out[GENERATOR]
    if kind == "CUSTOM" and PARTITION_TYPES in out:
        pairs = zip(out[PARTITION_FIELDS].split(","), out[PARTITION_TYPES].split(","), strict=True)
        out[PARTITION_FIELDS] = ",".join(f"{name}:{of}" for name, of in pairs)
    return out


_STORED: Mapping[int, Callable[[Properties, str], Properties]] = {6: _of_6, 8: _of_8, 9: _of_9}


def of_metadata_table(version: int, name: str) -> Properties:
    """The properties of the metadata table of a table of a version; `name`: its own.

    Measured on Hudi 0.15.0 and 1.1.1; 1.0.2 has those of 1.1.1.
    """
    return {
        "hoodie.table.name": name,
        "hoodie.table.type": "MERGE_ON_READ",
        VERSION: str(version),
        "hoodie.table.base.file.format": "HFILE",
        "hoodie.table.recordkey.fields": "key",
        PAYLOAD: "org.apache.hudi.metadata.HoodieMetadataPayload",
        "hoodie.populate.meta.fields": "false",
        "hoodie.datasource.write.drop.partition.columns": "false",
    } | _OF_METADATA[version]


STATISTICS: Mapping[int, str] = {6: "V1", 8: "V1", 9: "V2"}
"""How column statistics of a new metadata table are kept, as their definition says it, by table
version."""
RECORDS: Mapping[int, tuple[str, ...]] = {
    6: ("HoodieMetadataRecord",),
    8: ("HoodieMetadataRecordLater", "HoodieMetadataRecordOf10"),
    9: ("HoodieMetadataRecordLater",),
}
"""The schemas that records of a metadata table have, by table version, that of new ones first:
those of Hudi 0.15.0, 1.1.1 and 1.0.2."""
_METADATA_OF_6 = {
    LAYOUT_VERSION: "1",
    GENERATOR: "org.apache.hudi.metadata.HoodieTableMetadataKeyGenerator",
    MERGER: STRATEGIES[BY_EVENT_TIME],
    "hoodie.archivelog.folder": "archived",
}
_METADATA_OF_1X = {
    LAYOUT_VERSION: "2",
    GENERATOR_TYPE: "HOODIE_TABLE_METADATA",
    "hoodie.timeline.path": "timeline",
    "hoodie.timeline.history.path": "history",
    "hoodie.archivelog.folder": "history",
    MERGE_MODE: "CUSTOM",
    STRATEGY: "00000000-0000-0000-0000-000000000000",
}
_OF_METADATA: Mapping[int, Properties] = {
    6: _METADATA_OF_6,
    8: {**_METADATA_OF_1X, INITIAL_VERSION: "8"},
    9: {**_METADATA_OF_1X, INITIAL_VERSION: "9"},
}
