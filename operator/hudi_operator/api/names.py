"""By what names an API server knows the resources."""

from __future__ import annotations

GROUP = "hudi.lakeops.dev"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"
CATEGORY = "hudi"
PLURALS = {"HudiTable": "huditables", "HudiTableSet": "huditablesets", "TableService": "tableservices"}
LATER = frozenset({"HudiTableSet"})
"""Kinds that older definitions, and roles that somebody wrote for them, do not have: without such a
kind the others are served as ever."""
SET, TOPIC = f"{GROUP}/set", f"{GROUP}/topic"
"""Label of a HudiTable of a set, and annotation that names its topic."""
