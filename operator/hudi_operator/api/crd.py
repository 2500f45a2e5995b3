"""The CustomResourceDefinitions, derived from the typed resources: `python -m hudi_operator.api.crd
crds/` writes them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import yaml

from hudi_operator.api import schema
from hudi_operator.api.names import CATEGORY, GROUP, PLURALS, VERSION
from hudi_operator.api.service import TableServiceSpec
from hudi_operator.api.status import HudiTableStatus, TableServiceStatus
from hudi_operator.api.table import HudiTableSpec
from hudi_operator.api.table_set import HudiTableSetSpec, HudiTableSetStatus
from hudi_operator.api.templates import NAME_LENGTH_MAX


def _condition(name: str, column: str, priority: int = 0) -> dict[str, Any]:
    return _column(column, "string", f'.status.conditions[?(@.type=="{name}")].status', priority)


def _column(name: str, kind: str, path: str, priority: int = 0) -> dict[str, Any]:
    return {"name": name, "type": kind, "jsonPath": path, **({"priority": priority} if priority else {})}


AGE = _column("Age", "date", ".metadata.creationTimestamp")
COLUMNS: dict[str, list[dict[str, Any]]] = {
    "HudiTable": [
        _column("Type", "string", ".spec.type"),
        _condition("Ready", "Ready"),
        _column("Records", "integer", ".status.data.records"),
        _column("Files", "integer", ".status.data.files"),
        _column("Last Instant", "string", ".status.timeline.lastInstant"),
        _condition("Fresh", "Fresh"),
        _column("Reason", "string", '.status.conditions[?(@.type=="Ready")].reason'),
        _column("Version", "integer", ".status.tableVersion", 1),
        _column("Lag", "string", ".status.lag", 1),
        _condition("AtRisk", "At Risk", 1),
        _column("Watermark", "string", ".status.timeline.watermark", 1),
        _condition("Compacted", "Compacted", 1),
        _condition("WellSized", "Well Sized", 1),
        _condition("Clean", "Clean", 1),
        _condition("Archived", "Archived", 1),
        _column("Location", "string", ".spec.location", 1),
        AGE,
    ],
    "HudiTableSet": [
        _column("Topics", "integer", ".status.topics"),
        _column("Tables", "integer", ".status.tables"),
        _condition("Ready", "Ready"),
        _column("Reason", "string", '.status.conditions[?(@.type=="Ready")].reason'),
        _column("Ready Tables", "integer", ".status.readyTables", 1),
        _column("Failing", "integer", ".status.failingTables", 1),
        _column("Vanished", "integer", ".status.vanishedTopics", 1),
        _column("Pattern", "string", ".spec.selector.topicPattern", 1),
        AGE,
    ],
    "TableService": [
        _column("Table", "string", ".spec.tableRef.name"),
        _column("Type", "string", ".spec.type"),
        _column("Mode", "string", ".spec.mode"),
        _column("Phase", "string", ".status.phase"),
        _column("Last", "date", ".status.lastRunTime"),
        _column("Next", "string", ".status.schedule.next"),
        _condition("Ready", "Ready"),
        _column("Reason", "string", '.status.conditions[?(@.type=="Ready")].reason', 1),
        _column("Schedule", "string", ".spec.schedule", 1),
        _column("Plan", "string", ".status.plan.digest", 1),
        AGE,
    ],
}
NAME_RULE = {
    "rule": f"size(self.metadata.name) <= {NAME_LENGTH_MAX}",
    "message": f"the name of a set is the value of a label of its tables: give it at most {NAME_LENGTH_MAX} characters",
}


def definition(kind: str) -> dict[str, Any]:
    """The CustomResourceDefinition of a kind."""
    spec, status, short = {
        "HudiTable": (HudiTableSpec, HudiTableStatus, "ht"),
        "HudiTableSet": (HudiTableSetSpec, HudiTableSetStatus, "hts"),
        "TableService": (TableServiceSpec, TableServiceStatus, "tsvc"),
    }[kind]
    plural = PLURALS[kind]
    root = {
        "type": "object",
        "description": schema.openapi(spec)["description"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": schema.openapi(spec),
            "status": schema.openapi(status),
        },
        "required": ["spec"],
        **({"x-kubernetes-validations": [NAME_RULE]} if kind == "HudiTableSet" else {}),
    }
    version = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "additionalPrinterColumns": COLUMNS[kind],
        "schema": {"openAPIV3Schema": root},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "names": {
                "kind": kind,
                "listKind": f"{kind}List",
                "plural": plural,
                "singular": kind.lower(),
                "shortNames": [short],
                "categories": [CATEGORY],
            },
            "scope": "Namespaced",
            "versions": [version],
        },
    }


def rendered() -> dict[str, str]:
    """File name → YAML text of every definition."""
    return {
        f"{GROUP}_{definition(kind)['spec']['names']['plural']}.yaml": yaml.dump(
            definition(kind), Dumper=_PlainDumper, sort_keys=False, width=110
        )
        for kind in COLUMNS
    }


class _PlainDumper(yaml.SafeDumper):
    """Writes a value that occurs twice twice: API servers and people read no anchors."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002  # the base class passes it
        return True


def main(folder: str) -> None:
    """Write the definitions into `folder`."""
    for name, text in rendered().items():
        Path(folder, name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
