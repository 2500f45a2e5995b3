"""How files and messages are written: CSV's details, and where schemas are that stand in no
message."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from hudi_operator.api.fields.patterns import ENDPOINT, LOCATION
from hudi_operator.api.schema import Rule, prop


@dataclass(frozen=True, slots=True)
class CsvSpec:
    """How CSV files are written."""

    header: bool = prop("the first line names the columns", True)
    delimiter: str = prop("one character between values", ",", pattern="^.$", max_length=1)


_ONE_PLACE = Rule(
    "has(self.registry) != has(self.schemaFile)",
    "give registry or schemaFile, one of them",
    "",
    lambda spec: (spec.registry is None) != (spec.schema_file is None),
)


REGISTRY = "URL of a schema registry with Confluent's API; its user is SCHEMA_REGISTRY_USERNAME and SCHEMA_REGISTRY_PASSWORD of the Secret"


def _registry() -> Any:
    return prop(REGISTRY, None, pattern=ENDPOINT, max_length=512)


@dataclass(frozen=True, slots=True)
class JsonSpec:
    """Where the schemas of JSON messages are that begin with the id of one. What a schema says of
    types decides; nothing is checked against it."""

    registry: str = prop(REGISTRY, pattern=ENDPOINT, max_length=512)


@dataclass(frozen=True, slots=True)
class AvroSpec:
    """Where the schemas of Avro messages are: one of the two."""

    RULES: ClassVar[tuple[Rule, ...]] = (_ONE_PLACE,)

    registry: str | None = _registry()
    schema_file: str | None = prop(
        "URI of the one schema of messages that name none", None, pattern=LOCATION, max_length=1024
    )


@dataclass(frozen=True, slots=True)
class ProtobufSpec:
    """Where the definitions of Protocol Buffers are: one of the two."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        _ONE_PLACE,
        Rule(
            "!has(self.message) || has(self.schemaFile)",
            "message belongs to schemaFile: with a registry each message says which one it is",
            "message",
            lambda p: p.message is None or p.schema_file is not None,
        ),
    )

    registry: str | None = _registry()
    schema_file: str | None = prop(
        "URI of the one .proto file of messages that name none", None, pattern=LOCATION, max_length=1024
    )
    message: str | None = prop(
        "name of the message in schemaFile; absent: its first one", None, pattern=r"^[A-Za-z_][\w.]*$", max_length=256
    )
