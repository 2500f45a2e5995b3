"""Hash and filter vectors that the classes of Apache Hudi printed (tests/data/vectors)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[1] / "data" / "vectors"


def hash_vectors() -> dict[str, Any]:
    """All of them, by topic."""
    loaded: dict[str, Any] = json.loads((FOLDER / "hashes.json").read_text("utf-8"))
    return loaded
