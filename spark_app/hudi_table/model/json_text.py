"""JSON of files that others may have written: whatever is wrong with it is a ValueError."""

from __future__ import annotations

import json
from typing import Any


def parse_json(text: str | bytes) -> Any:
    """The document. Raises ValueError, also where lists lie in lists so deep that Python's parser
    gives up."""
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error
