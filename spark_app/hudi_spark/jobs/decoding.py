"""How the messages of an ingest become rows, as its JobSpec says: formats, change events, the keys
of tombstones."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from hudi_spark.jobs.target import opener_of, policy_of, storage_options
from hudi_table.errors import InvalidRequestError, ObjectNotFoundError
from hudi_table.model.job.jobspec import JobSpec, SchemaPolicy
from hudi_table.sources.formats.avro import AvroDecoder, RegistryDecoder
from hudi_table.sources.formats.avro_envelopes import AvroEnvelopes
from hudi_table.sources.formats.debezium import DebeziumDecoder
from hudi_table.sources.formats.decoder import Decoder, Judge
from hudi_table.sources.formats.dialects import DIALECTS, Dialect
from hudi_table.sources.formats.envelopes import Envelopes, JsonEnvelopes
from hudi_table.sources.formats.json import JsonDecoder
from hudi_table.sources.formats.json_schema import JsonRegistryDecoder
from hudi_table.sources.formats.protobuf.decoder import ProtobufDecoder, ProtobufRegistryDecoder
from hudi_table.sources.formats.raw import RawDecoder
from hudi_table.sources.formats.registry import Registry
from hudi_table.sources.kafka.rows import Decoding
from hudi_table.sources.kafka.settings import KafkaSettings
from hudi_table.sources.kafka.stored import StoredTable
from hudi_table.sources.kinesis.settings import KinesisSettings
from hudi_table.table.store.opening import open_storage
from hudi_table.write.checks.schema_policy import check_alone


def needed_of(spec: JobSpec) -> list[str]:
    """What a delete needs: the record key, and the partition's columns."""
    needed = [str(name) for name in spec.table["recordKey"]]
    return needed + [str(each["field"]) for each in spec.table.get("partitionBy", ()) if each["field"] not in needed]


def dialect_of(spec: JobSpec) -> Dialect:
    """Of change events, by the column that orders them. Raises InvalidRequestError for a table that
    would not keep their order or their deletes."""
    table = spec.table
    orders = list(table.get("orderingFields", ()))
    if len(orders) != 1 or orders[0] not in DIALECTS or spec.work["operation"] != "Upsert":
        raise InvalidRequestError(
            f"change events of Debezium need operation Upsert and orderingFields {' or '.join(DIALECTS)}: they may come again, behind newer ones"
        )
    outside = [each["field"] for each in table.get("partitionBy", ()) if each["field"] not in table["recordKey"]]
    if outside:
        raise InvalidRequestError(
            f"partitionBy {outside[0]} is none of recordKey, and an event that deletes holds the key alone: leave it out, or add it to the key"
        )
    return DIALECTS[orders[0]]


def decoding_of(spec: JobSpec, settings: KafkaSettings, environment: Mapping[str, str], columns: pa.Schema) -> Decoding:
    """How messages become rows. Raises InvalidRequestError."""
    needed = needed_of(spec)
    ratio = float(spec.work.get("maxErrorRatio", 0.0)) if spec.work.get("onUndecodable") == "Quarantine" else None
    if settings.debezium:
        stored = StoredTable(opener_of(spec))
        events = _events(spec, settings, environment, columns, stored)
        return Decoding(settings, events, None, tuple(needed), ratio, events.settled, stored=stored)
    deletes = settings.tombstones == "Delete"
    if deletes and settings.key_format == "raw" and len(needed) != 1:
        raise InvalidRequestError(
            f"kafka.keyFormat raw holds one column, and a delete needs {', '.join(needed)}: give json or avro"
        )
    values = decoder_of(spec, settings, settings.format, environment, judge_of(spec), columns)
    keys = (
        decoder_of(spec, settings, settings.key_format, environment)
        if deletes and settings.key_format != "raw"
        else None
    )
    return Decoding(settings, values, keys, tuple(needed), ratio)


def _events(
    spec: JobSpec, settings: KafkaSettings, environment: Mapping[str, str], columns: pa.Schema, stored: StoredTable
) -> DebeziumDecoder:
    dialect = dialect_of(spec)
    if settings.json_registry is not None:
        raise InvalidRequestError("kafka.json is not for a source of type Debezium: leave it out, or give format avro")
    envelopes: Envelopes = JsonEnvelopes(columns, dialect)
    if settings.format != "json":
        if settings.format != "avro" or settings.registry is None:
            raise InvalidRequestError("a source of type Debezium needs format json, or avro with kafka.avro.registry")
        envelopes = AvroEnvelopes(Registry(settings.registry, environment).avro_schema, dialect)
    return DebeziumDecoder(
        envelopes,
        dialect,
        spec.table["recordKey"],
        columns,
        infinite_is_null=settings.infinite_is_null,
        on_truncate=settings.on_truncate,
        stored=stored,
    )


def judge_of(spec: JobSpec) -> Judge | None:
    """Of each schema of messages alone, where none may differ from the table. What a transform
    makes of them is judged together."""
    return check_alone if policy_of(spec) is SchemaPolicy.REFUSE and not spec.work.get("transform") else None


def decoder_of(
    spec: JobSpec,
    settings: KafkaSettings | KinesisSettings,
    form: str,
    environment: Mapping[str, str],
    judge: Judge | None = None,
    columns: pa.Schema | None = None,
) -> Decoder:
    """Of the format of values, or of keys; `columns`: types that the manifest says. Raises
    InvalidRequestError."""
    field = "kinesis" if isinstance(settings, KinesisSettings) else "kafka"
    resolves = policy_of(spec) is SchemaPolicy.EVOLVE
    if form == "json":
        if settings.json_registry is None:
            return JsonDecoder()
        return JsonRegistryDecoder(Registry(settings.json_registry, environment).json_documents, judge, columns)
    if form == "raw":
        return RawDecoder()
    if form != settings.format and settings.format == "protobuf":
        raise InvalidRequestError(f"kafka.keyFormat {form} does not go with format protobuf: give raw or json")
    if settings.registry is not None:
        registry = Registry(settings.registry, environment)
        if form == "protobuf":
            return ProtobufRegistryDecoder(registry.protobuf_texts, judge)
        return RegistryDecoder(registry.avro_schema, judge, resolves=resolves)
    if settings.schema_file is None:
        raise InvalidRequestError(f"format {form} needs {field}.{form}.registry or {field}.{form}.schemaFile")
    text = _schema_text(spec, settings.schema_file, f"{field}.{form}")
    return ProtobufDecoder(text, settings.message) if form == "protobuf" else AvroDecoder(text, resolves=resolves)


def _schema_text(spec: JobSpec, uri: str, of: str) -> str:
    folder, _, name = uri.rpartition("/")
    try:
        return open_storage(folder, storage_options(spec, folder)).get(name).decode()
    except (ObjectNotFoundError, UnicodeDecodeError) as error:
        raise InvalidRequestError(f"{of}.schemaFile: {uri} cannot be read: {error}") from error
