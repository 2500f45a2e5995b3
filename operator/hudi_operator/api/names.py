"""By what names an API server knows the resources."""

from __future__ import annotations

GROUP = "hudi.lakeops.dev"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"
CATEGORY = "hudi"
PLURALS = {"HudiTable": "huditables", "TableService": "tableservices"}
