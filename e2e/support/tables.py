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
    spec["spark"] = on_one_executor(launcher)
    return found


def on_one_executor(launcher: str) -> dict[str, Any]:
    """A driver and an executor as small as a machine of two cores needs them."""
    small = {"cores": 1, "memory": "1536Mi"}
    return {"launcher": launcher, "driver": small, "executor": {**small, "instances": 1}}
