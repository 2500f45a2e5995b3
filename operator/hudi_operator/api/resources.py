"""Resources as documents: identity and spec of one manifest, parsed with every error at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hudi_operator.api.names import GROUP
from hudi_operator.api.options import described_errors, option_errors
from hudi_operator.api.parsing import FieldError, parse
from hudi_operator.api.schema import to_document
from hudi_operator.api.service import TableServiceSpec
from hudi_operator.api.status import HudiTableStatus, TableServiceStatus
from hudi_operator.api.table import HudiTableSpec
from hudi_operator.api.table_set import HudiTableSetSpec, HudiTableSetStatus
from hudi_operator.api.templates import unknown_placeholders

FINALIZER = f"{GROUP}/purge"
"""Of a HudiTable whose files go with it, and of no other."""
DEFAULT_NAMESPACE = "default"
SPECS: Mapping[str, type] = {
    "HudiTable": HudiTableSpec,
    "HudiTableSet": HudiTableSetSpec,
    "TableService": TableServiceSpec,
}
KINDS = tuple(SPECS)


@dataclass(frozen=True, slots=True, order=True)
class Key:
    """Where a resource is found."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Identity:
    """What the API server says of a resource: `uid` for ever, `generation` of its spec, `created`
    and, if somebody has, `deleted` as RFC 3339. `held`: it stays until we let go of it."""

    key: Key
    uid: str
    generation: int
    created: str = ""
    deleted: str = ""
    held: bool = False


@dataclass(frozen=True, slots=True)
class DesiredTable:
    """A HudiTable: its spec, or the errors that it has, and the status that was last written."""

    identity: Identity
    spec: HudiTableSpec | None
    errors: tuple[FieldError, ...]
    status: HudiTableStatus


@dataclass(frozen=True, slots=True)
class DesiredService:
    """A TableService: its spec, or the errors that it has, and the status that was last written."""

    identity: Identity
    spec: TableServiceSpec | None
    errors: tuple[FieldError, ...]
    status: TableServiceStatus


@dataclass(frozen=True, slots=True)
class DesiredSet:
    """A HudiTableSet: its spec, or the errors that it has, and the status that was last written.
    `template`: its template's spec as the document has it."""

    identity: Identity
    spec: HudiTableSetSpec | None
    errors: tuple[FieldError, ...]
    status: HudiTableSetStatus
    template: Mapping[str, Any] = field(default_factory=dict)


def key_of(document: Mapping[str, Any]) -> Key:
    """Where the resource of a document is found."""
    metadata = document["metadata"]
    return Key(document["kind"], metadata.get("namespace", DEFAULT_NAMESPACE), metadata["name"])


def identity_of(document: Mapping[str, Any]) -> Identity:
    """Identity of a document as the API server stores it."""
    metadata = document["metadata"]
    return Identity(
        key_of(document),
        metadata["uid"],
        int(metadata["generation"]),
        created=str(metadata.get("creationTimestamp", "")),
        deleted=str(metadata.get("deletionTimestamp", "")),
        held=FINALIZER in metadata.get("finalizers", ()),
    )


def table_of(document: Mapping[str, Any]) -> tuple[str, str]:
    """(namespace, name) of the HudiTable that a resource is about. A TableService that names none
    is about itself alone, and so is a HudiTableSet."""
    metadata = document["metadata"]
    namespace, name = metadata.get("namespace", DEFAULT_NAMESPACE), metadata["name"]
    if document["kind"] == "HudiTableSet":
        return namespace, f"?set/{name}"
    if document["kind"] != "TableService":
        return namespace, name
    spec = document.get("spec")
    ref = spec.get("tableRef") if isinstance(spec, Mapping) else None
    found = ref.get("name") if isinstance(ref, Mapping) else None
    return namespace, str(found) if found else f"?{name}"


def desired_table(document: Mapping[str, Any]) -> DesiredTable:
    """The HudiTable of a stored document."""
    spec, errors = parse(HudiTableSpec, document.get("spec"), "spec")
    # The API server prunes a status by the schema; an older release's status may still not parse, then it is rebuilt.
    status, _ = parse(HudiTableStatus, document.get("status") or {}, "status")
    errors += option_errors(document)
    if spec is not None:
        errors += described_errors(spec, key_of(document).name)
    return DesiredTable(identity_of(document), spec, errors, status or HudiTableStatus())


def desired_service(document: Mapping[str, Any]) -> DesiredService:
    """The TableService of a stored document."""
    spec, errors = parse(TableServiceSpec, document.get("spec"), "spec")
    status, _ = parse(TableServiceStatus, document.get("status") or {}, "status")
    errors += option_errors(document)
    return DesiredService(identity_of(document), spec, errors, status or TableServiceStatus())


def desired_set(document: Mapping[str, Any]) -> DesiredSet:
    """The HudiTableSet of a stored document. What is wrong with the template whatever the topic is
    wrong with the set."""
    raw = document.get("spec")
    spec, errors = parse(HudiTableSetSpec, raw, "spec")
    status, _ = parse(HudiTableSetStatus, document.get("status") or {}, "status")
    template: Mapping[str, Any] = {}
    if isinstance(raw, Mapping) and spec is not None:
        template = to_document(spec.template.spec)
        errors += tuple(unknown_placeholders(to_document(spec.template), "spec.template"))
        errors += tuple(unknown_placeholders(to_document(spec.overrides), "spec.overrides"))
        if "{name}" in spec.template.name:
            errors += (FieldError("spec.template.name", "{name} is what it makes: take {topic}, {table} or {schema}"),)
        wrong = option_errors({"spec": template})
        errors += tuple(FieldError(each.path.replace("spec", "spec.template.spec", 1), each.message) for each in wrong)
    return DesiredSet(identity_of(document), spec, errors, status or HudiTableSetStatus(), template)


def with_defaults(kind: str, spec: object) -> object:
    """A spec as an API server stores it, defaults filled in; one with errors as it is."""
    value, errors = parse(SPECS[kind], spec, "spec")
    return spec if errors or value is None else to_document(value)
