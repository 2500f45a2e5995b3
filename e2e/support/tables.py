"""Tables of the suite: that of the tour, under other names."""

from __future__ import annotations

from typing import Any

import yaml

from e2e.support.kube import Document
from e2e.support.operator import MANIFESTS


def flights(name: str, **spec: Any) -> Document:
    """The table of the tour under another name and at another place, with an empty bucket path of its own to read from."""
    found: Document = yaml.safe_load((MANIFESTS / "flights.yaml").read_text())
    found["metadata"]["name"] = name
    found["spec"] |= {"location": f"s3://lake/{name}", **spec}
    found["spec"]["ingest"][0]["source"]["path"] = f"s3://landing/{name}/"
    return found
