"""Writes the manifests that follow from others: the definitions into their chart, and both charts'
objects into `config` for kustomize.

    python -m scripts.render_manifests [FOLDER]

FOLDER is the root of the repository unless it is given. The definitions come from the typed models
as `crds/` does; `config` is what Helm renders, so nothing is said twice by hand. A test compares.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from hudi_operator.api import crd
from scripts.setup_k8s import helm_folder

ROOT = Path(__file__).resolve().parent.parent
RELEASE = NAMESPACE = "hudi-operator"
KEEP = "  annotations:\n    helm.sh/resource-policy: keep\n"
KUBERNETES = "1.35.4"
HELMS = ("app.kubernetes.io/managed-by", "helm.sh/chart")
"""Labels that speak of Helm."""

# Folder of `config` → its chart, and the values that differ.
FOLDERS: dict[str, tuple[str, Mapping[str, str]]] = {
    "crds": ("hudi-operator-crds", {}),
    "default": ("hudi-operator", {}),
    "namespaced": ("hudi-operator", {"watchNamespaces": f"{{{NAMESPACE}}}"}),
}


def definitions() -> dict[str, str]:
    """Path → text of the definitions' chart: they stay when the release goes."""
    folder = "charts/hudi-operator-crds/templates"
    return {
        f"{folder}/{name}": text.replace("metadata:\n", f"metadata:\n{KEEP}", 1)
        for name, text in crd.rendered().items()
    }


def config() -> dict[str, str]:
    """Path → text of what is said to kustomize."""
    found: dict[str, str] = {}
    for folder, (chart, values) in FOLDERS.items():
        files = _files(template(ROOT / "charts" / chart, values))
        if folder == "default":
            files["namespace.yaml"] = _text([_namespace()])
        listed = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "resources": sorted(files)}
        files["kustomization.yaml"] = _text([listed])
        found |= {f"config/{folder}/{name}": text for name, text in files.items()}
    return found


def template(chart: Path, values: Mapping[str, str]) -> str:
    """What Helm renders for the release, without its tests."""
    command: list[str | Path] = [
        helm_folder() / "helm", "template", RELEASE, chart, "--namespace", NAMESPACE, "--skip-tests",
        "--kube-version", KUBERNETES, *(f"--set={name}={value}" for name, value in values.items()),
    ]  # fmt: skip
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def bare(document: Any) -> Any:
    """The object without what speaks of Helm."""
    for place in (document["metadata"], document.get("spec", {}).get("template", {}).get("metadata", {})):
        for name in HELMS:
            place.get("labels", {}).pop(name, None)
        for name in [name for name in place.get("annotations", {}) if name.startswith("helm.sh/")]:
            del place["annotations"][name]
        for name in [name for name in ("labels", "annotations") if place.get(name) == {}]:
            del place[name]
    return document


def _files(rendered: str) -> dict[str, str]:
    """One file for each template of the chart."""
    found: dict[str, list[Any]] = {}
    for part in re.split(r"^---$", rendered, flags=re.MULTILINE):
        if named := re.search(r"^# Source: .*/templates/(.+)$", part, re.MULTILINE):
            found.setdefault(named[1], []).append(bare(yaml.safe_load(part)))
    return {name: _text(documents) for name, documents in found.items()}


def _namespace() -> dict[str, Any]:
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": labels}}


def _text(documents: list[Any]) -> str:
    return yaml.safe_dump_all(documents, sort_keys=False, width=110)


def write(files: Mapping[str, str], root: Path) -> None:
    """Put the files below `root`."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def main() -> None:
    root = Path(sys.argv[1]) if sys.argv[1:] else ROOT
    write(definitions(), root)
    write(config(), root)


if __name__ == "__main__":
    main()
