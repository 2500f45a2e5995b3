"""Patterns and lengths that fields of several parts share."""

from __future__ import annotations

import re

QUANTITY = r"^[1-9][0-9]*(k|M|G|T|Ki|Mi|Gi|Ti)?$"
CPU = r"^[1-9][0-9]*m?$"
LOCATION = r"^(s3|s3a|gs|az|abfs|abfss|file|memory)://([^$?#/:]+(/[^$?#]*)?|/[^$?#]+)$"
"""No colon before the path: a URI may name a container and its account, and no key."""
ENDPOINT = r"^https?://[^/@?#]+(/[^@?#]*)?$"
"""No user, no query: credentials stand in a Secret."""
DURATION = r"^([0-9]+(ms|s|m|h|d))+$"
NAME = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
OBJECT_NAME = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
"""Of Kubernetes' objects: labels with dots between them."""
COLUMN_LENGTH_MAX = 256


def is_pattern(text: str) -> bool:
    """Whether a text is a regular expression; whoever matches with it asks whether RE2 takes it."""
    try:
        re.compile(text)
    except re.error:
        return False
    return True
