"""What the probes and metrics of a running operator answer."""

from __future__ import annotations

import re
import urllib.error
import urllib.request
from pathlib import Path


def answered(port: int, path: str) -> tuple[int, str]:
    """(status, text) of a path, whatever the status is."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def port_told(log: Path) -> int | None:
    """The port that an operator says in its log; None before it does."""
    line = re.search(r"probes and metrics on port (\d+)", log.read_text()) if log.exists() else None
    return int(line[1]) if line else None
