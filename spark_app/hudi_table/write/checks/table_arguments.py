"""The arguments that describe a new table, from the shapes in which Python and the resource give
them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from enum import StrEnum
from typing import Any, TypeVar

from hudi_table.errors import InvalidRequestError
from hudi_table.model.table.config import IndexSpec, IndexType, PartitionField, PartitionFields, PartitionType
from hudi_table.model.table.partition_buckets import checked

Kind = TypeVar("Kind", bound=StrEnum)


def index_of(index: str | Mapping[str, Any] | IndexSpec) -> IndexSpec:
    """An index from its name (`Simple`), the resource's shape (`{"type": "Bucket", "buckets": 8}`,
    `{"type": "Custom", "class": "recent", "settings": {…}}`) or an IndexSpec. Raises
    InvalidRequestError."""
    if isinstance(index, IndexSpec):
        spec = index
    elif isinstance(index, str):
        spec = IndexSpec(member(IndexType, index, "index"))
    else:
        spec = _index_document(index)
    if spec.type.is_custom is not bool(spec.class_name) or (spec.settings and not spec.class_name):
        raise InvalidRequestError(
            f"index {spec.type.value} with class {spec.class_name!r}: class and settings belong to a Custom index, which needs "
            "the name under which a package offers it"
        )
    if spec.type.hashes and (not isinstance(spec.buckets, int) or spec.buckets < 1):
        raise InvalidRequestError(
            f"a {spec.type.value} index needs a number of buckets from 1, not {spec.buckets!r}; give index={{'type': '{spec.type.value}', 'buckets': 8}}"
        )
    if not spec.type.hashes and (spec.buckets is not None or spec.hash_fields):
        raise InvalidRequestError(
            f"buckets and hashFields belong to a Bucket index, not to {spec.type.value}; leave them out"
        )
    if not spec.type.has_fixed_buckets and spec.partition_buckets:
        raise InvalidRequestError(
            f"partitionBuckets belong to a Bucket index, not to {spec.type.value}; leave them out"
        )
    least, most = spec.buckets_min, spec.buckets_max
    if not spec.type.has_rings and (least, most) != (None, None):
        raise InvalidRequestError(
            f"minBuckets and maxBuckets belong to a ConsistentBucket index, not to {spec.type.value}; leave them out"
        )
    if spec.type.hashes and not 1 <= (least or 1) <= (spec.buckets or 0) <= (most or spec.buckets or 0):
        raise InvalidRequestError(
            f"index.buckets is {spec.buckets}, and not from minBuckets {least} to maxBuckets {most}"
        )
    return spec


def _index_document(document: Mapping[str, Any]) -> IndexSpec:
    """An index from the resource's shape. Raises InvalidRequestError."""
    known = {
        "buckets": "buckets", "hashFields": "hash_fields", "minBuckets": "buckets_min", "maxBuckets": "buckets_max",
        "partitionBuckets": "partition_buckets", "class": "class_name",
        "className": "class_name", "settings": "settings",
    }  # fmt: skip
    values = {known.get(key, key): value for key, value in document.items() if key != "type"}
    if "type" not in document or not values.keys() <= set(known.values()):
        raise InvalidRequestError(f"index {dict(document)!r}: it has type, {', '.join(known)}")
    values["hash_fields"] = names_of(values.get("hash_fields") or ())
    values["class_name"] = str(values.get("class_name") or "")
    values["settings"] = tuple(sorted((str(k), str(v)) for k, v in (values.get("settings") or {}).items()))
    try:
        pairs = (
            (item["partitions"], item["buckets"]) if isinstance(item, Mapping) else tuple(item)
            for item in values.get("partition_buckets") or ()
        )
        values["partition_buckets"] = checked(pairs)
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidRequestError(f"index.partitionBuckets: {error}") from error
    return IndexSpec(member(IndexType, document["type"], "index.type"), **values)


def partition_fields_of(names: PartitionFields) -> tuple[PartitionField, ...]:
    """Partition fields from one or several names, fields in the resource's shape, or
    PartitionFields."""
    known = {f.name for f in fields(PartitionField)}
    parsed = []
    for item in [names] if isinstance(names, str | Mapping | PartitionField) else names:
        if isinstance(item, PartitionField):
            parsed.append(item)
        elif isinstance(item, str):
            parsed.append(PartitionField(item))
        else:
            camel = {"inputFormat": "input_format", "inputTimezone": "input_timezone"}
            values = {camel.get(key, key): value for key, value in item.items()}
            if not values.keys() <= known or "field" not in values:
                raise InvalidRequestError(f"partition field {dict(item)!r}: it has {', '.join(sorted(known))}")
            kind = member(PartitionType, values.pop("type", PartitionType.SIMPLE.value), "partition_by.type")
            parsed.append(PartitionField(**values, type=kind))
    return tuple(parsed)


def member(kind: type[Kind], name: str, what: str) -> Kind:
    """A member by value or by Hudi's name, in any case."""
    plain = str(name).replace("_", "").lower()
    for member in kind:
        # Most of Hudi's names are those of our values, but for their spelling.
        names = (member.value, getattr(member, "hudi_name", member.value))
        if plain in {each.replace("_", "").lower() for each in names}:
            return member
    raise InvalidRequestError(f"{what} is {name!r}; use one of {', '.join(member.value for member in kind)}")


def names_of(text: str | Sequence[str]) -> tuple[str, ...]:
    """Names from a list, or from a text with commas."""
    return tuple(name.strip() for name in text.split(",") if name.strip()) if isinstance(text, str) else tuple(text)
