"""Volumes that the jobs of tests share with the operator: the folders in which tests keep their
tables."""

from __future__ import annotations

import getpass
import json
import tempfile
from pathlib import Path

from hudi_operator.api.fields.pods import PodPolicies, PodPolicy, Volume

FOLDER = f"{tempfile.gettempdir()}/pytest-of-{getpass.getuser()}"
PATHS = (FOLDER, "/nowhere")
POLICIES = PodPolicies(PodPolicy(volumes=tuple(Volume(f"lake-{n}", path) for n, path in enumerate(PATHS))), {})


def job_pods(folder: Path) -> list[str]:
    """Arguments of an operator whose jobs have these volumes."""
    file = folder / "job-pods.json"
    volumes = [{"claim": f"lake-{n}", "path": path} for n, path in enumerate(PATHS)]
    file.write_text(json.dumps({"pods": {"volumes": volumes}}))
    return ["--job-pods", str(file)]
