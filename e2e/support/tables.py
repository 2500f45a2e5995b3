"""Tables of the suite: that of the tour, under other names."""

from __future__ import annotations

from typing import Any

import yaml

from e2e.support.kube import Document
from e2e.support.operator import MANIFESTS, NAMESPACE


def flights(name: str, namespace: str = NAMESPACE, **spec: Any) -> Document:
    """The table of the tour under another name and at another place, with an empty bucket path of
    its own to read from."""
    found: Document = yaml.safe_load((MANIFESTS / "flights.yaml").read_text())
    found["metadata"] = {"name": name, "namespace": namespace}
    found["spec"] |= {"location": f"s3://lake/{name}", **spec}
    found["spec"]["ingest"][0]["source"]["path"] = f"s3://landing/{name}/"
    return found


def transformed(name: str, launcher: str, path: str) -> Document:
    """The transformed flights, which need Spark, under another name, from another place, on one
    executor."""
    found: Document = yaml.safe_load((MANIFESTS / "flights-transformed.yaml").read_text())
    found["metadata"]["name"] = name
    spec: dict[str, Any] = found["spec"]
    spec["location"] = f"s3://lake/{name}"
    spec["ingest"][0]["source"]["path"] = path
    small = {"cores": 1, "memory": "1536Mi"}
    spec["spark"] = {"launcher": launcher, "driver": small, "executor": {**small, "instances": 1}}
    return found
