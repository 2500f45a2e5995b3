"""Resources as `kubectl get` prints them: the printer columns of the CRDs, evaluated here."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import yaml

from hudi_operator.api.crd import COLUMNS
from hudi_operator.plan.status.report import human_duration

GAP = "   "
_STEP = re.compile(r'\.(\w+)|\[(\d+)\]|\[\?\(@\.(\w+)=="([^"]*)"\)\]')


def value_at(document: Any, path: str) -> Any:
    """The value of a JSONPath as printer columns use them: fields, indexes, and a filter on one
    field's value."""
    value = document
    for field, index, name, wanted in _STEP.findall(path):
        if value is None:
            return None
        if field:
            value = value.get(field) if isinstance(value, Mapping) else None
        elif index:
            value = value[int(index)] if isinstance(value, list) and len(value) > int(index) else None
        else:
            value = next((item for item in value if item.get(name) == wanted), None)
    return value


def table(kind: str, documents: Iterable[Mapping[str, Any]], now: datetime, *, wide: bool = False) -> str:
    """One aligned table of resources of a kind, its head in capitals, ages since creation."""
    columns = [c for c in COLUMNS[kind] if wide or not c.get("priority")]
    rows = [["NAME", *(c["name"].upper() for c in columns)]]
    for document in documents:
        cells = [_cell(value_at(document, c["jsonPath"]), c["type"], now) for c in columns]
        rows.append([document["metadata"]["name"], *cells])
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join(
        GAP.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def _cell(value: Any, kind: str, now: datetime) -> str:
    if value is None:
        return ""
    if kind == "date":
        return human_duration(now - datetime.fromisoformat(value))
    return str(value)


def render(form: str, documents: list[Mapping[str, Any]], now: datetime) -> str:
    """Documents as `table`, `wide`, `json` or `yaml`."""
    if form in ("json", "yaml"):
        body = {"apiVersion": "v1", "kind": "List", "items": documents}
        text = json.dumps(body, indent=2, ensure_ascii=False)
        return (
            text if form == "json" else yaml.safe_dump(json.loads(text), sort_keys=False, allow_unicode=True).rstrip()
        )
    kinds = [kind for kind in COLUMNS if any(d["kind"] == kind for d in documents)]
    parts = [table(kind, [d for d in documents if d["kind"] == kind], now, wide=form == "wide") for kind in kinds]
    return "\n\n".join(parts)
