"""Manifests: YAML files and folders of them, as documents, every fault with its file.

`${NAME}` in `spec.location` and in a source's `path` is replaced from the environment, so that one
manifest serves every working folder; `${PWD}` is the current one. An API server has no such thing
and refuses the character.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from hudi_operator.api.names import API_VERSION, GROUP, LATER
from hudi_operator.api.resources import DEFAULT_NAMESPACE, KINDS, Key
from hudi_operator.errors import InvalidSpecError

SUFFIXES = (".yaml", ".yml", ".json")
NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_VARIABLE = re.compile(r"\$\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class Manifests:
    """Resources of our kinds, and Secrets by (namespace, name); other kinds are left alone."""

    resources: tuple[dict[str, Any], ...]
    secrets: Mapping[tuple[str, str], Mapping[str, str]]
    skipped: tuple[str, ...] = ()


def load(paths: Iterable[Path]) -> Manifests:
    """All documents of files and folders. Raises InvalidSpecError that names every fault and its
    file."""
    resources: dict[Key, dict[str, Any]] = {}
    secrets: dict[tuple[str, str], Mapping[str, str]] = {}
    skipped: list[str] = []
    faults: list[str] = []
    for path in _files(paths, faults):
        for document in _documents(path, faults):
            kind, metadata = document["kind"], document["metadata"]
            namespace = metadata.get("namespace", DEFAULT_NAMESPACE)
            if kind == "Secret" and document["apiVersion"] == "v1":
                secrets[namespace, metadata["name"]] = _secret(document, path, faults)
            elif kind in KINDS:
                key = Key(kind, namespace, metadata["name"])
                if key in resources:
                    faults.append(f"{path}: {key} is there twice")
                resources[key] = _expanded(document, path, faults)
            else:
                skipped.append(f"{kind} {namespace}/{metadata['name']}")
    if faults:
        raise InvalidSpecError("; ".join(faults))
    if not resources:
        raise InvalidSpecError(f"no HudiTable or TableService in {', '.join(map(str, paths))}")
    return Manifests(tuple(resources[key] for key in sorted(resources)), secrets, tuple(skipped))


class _KeyTwiceError(yaml.constructor.ConstructorError):
    """A key that an object has twice: YAML forbids it, and its parser takes the last one in
    silence."""


class _Loader(yaml.SafeLoader):
    """What `safe_load` uses, but for keys that come twice."""

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        """The object, before others are merged into it. Raises _KeyTwiceError."""
        node = super().compose_mapping_node(anchor)
        seen: set[tuple[str, str]] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if (key.tag, key.value) in seen:
                    raise _KeyTwiceError(problem_mark=key.start_mark)
                seen.add((key.tag, key.value))
        return node


def _items(document: Any) -> list[Any]:
    """A document, or what a `List` as `kubectl get -o yaml` prints it holds."""
    if isinstance(document, dict) and (document.get("kind"), document.get("apiVersion")) == ("List", "v1"):
        items = document.get("items")
        return list(items) if isinstance(items, list) else []
    return [document]


def _files(paths: Iterable[Path], faults: list[str]) -> list[Path]:
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            found += sorted(p for p in path.iterdir() if p.suffix in SUFFIXES and p.is_file())
        elif path.is_file():
            found.append(path)
        else:
            faults.append(f"{path}: no such file or folder")
    return found


def _documents(path: Path, faults: list[str]) -> list[dict[str, Any]]:
    try:
        loaded = yaml.load_all(path.read_text(encoding="utf-8"), _Loader)
        documents = [item for document in loaded if document is not None for item in _items(document)]
    except _KeyTwiceError as error:
        faults.append(f"{path}: a key is there twice in one object{_place(error)}")
        return []
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        faults.append(f"{path}: no YAML{_place(error)}")
        return []
    found = []
    for number, document in enumerate(documents, start=1):
        fault = _fault(document)
        if fault:
            faults.append(f"{path}: document {number}: {fault}")
        else:
            found.append(document)
    return found


def _place(error: Exception) -> str:
    """Where the parser stopped. Its own words quote the manifest, in which a Secret may stand."""
    mark = error.problem_mark or error.context_mark if isinstance(error, yaml.MarkedYAMLError) else None
    if mark is not None:
        return f": line {mark.line + 1}, column {mark.column + 1}"
    if isinstance(error, UnicodeDecodeError):
        return f": byte {error.start + 1} is no UTF-8"
    if isinstance(error, yaml.reader.ReaderError):
        return f": character {error.position + 1} is not allowed"
    return ": a value of it cannot be read" if isinstance(error, ValueError) else ": it is nested too deeply"


def _fault(document: object) -> str | None:
    if not isinstance(document, dict) or not isinstance(document.get("kind"), str):
        return "is no Kubernetes resource: it has no kind"
    version, metadata = document.get("apiVersion"), document.get("metadata")
    if not isinstance(version, str):
        return "has no apiVersion"
    if document["kind"] in LATER and version.startswith(f"{GROUP}/"):
        return f"a {document['kind']} makes its HudiTables in a cluster alone: write a HudiTable for each topic"
    if document["kind"] in KINDS and version != API_VERSION:
        return f"apiVersion is {version!r}, this release has {API_VERSION}"
    if document["kind"] not in KINDS and version.startswith(f"{GROUP}/"):
        return f"kind {document['kind']!r} is none of {', '.join(KINDS)}"
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if not isinstance(name, str) or not NAME.fullmatch(name):
        return f"metadata.name is {name!r}: small letters, digits, '-' and '.' name a resource"
    return None


def _secret(document: dict[str, Any], path: Path, faults: list[str]) -> Mapping[str, str]:
    values = document.get("stringData") or {}
    if document.get("data"):
        faults.append(f"{path}: Secret {document['metadata']['name']}: use stringData, the local runtime reads no data")
    if not isinstance(values, dict) or not all(isinstance(value, str) for value in values.values()):
        faults.append(f"{path}: Secret {document['metadata']['name']}: stringData must be strings; quote them")
        return {}
    return {str(key): value for key, value in values.items()}


def _expanded(document: dict[str, Any], path: Path, faults: list[str]) -> dict[str, Any]:
    spec = document.get("spec")
    if not isinstance(spec, dict):
        return document
    ingests = spec.get("ingest")
    sources = [i.get("source") for i in ingests if isinstance(i, dict)] if isinstance(ingests, list) else []
    for holder, name in [(spec, "location"), *((s, "path") for s in sources if isinstance(s, dict))]:
        value = holder.get(name)
        if isinstance(value, str) and "${" in value:
            holder[name] = _VARIABLE.sub(lambda match: _variable(match[1], path, faults), value)
    return document


def _variable(name: str, path: Path, faults: list[str]) -> str:
    value = str(Path.cwd()) if name == "PWD" else os.environ.get(name)
    if value is None:
        faults.append(f"{path}: the environment has no {name}; set it")
    return value or ""
