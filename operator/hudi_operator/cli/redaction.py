"""Documents without secrets: what people may have put into options and properties, by the names of
the keys and by URLs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from hudi_table.errors import without_users

HIDDEN = "***"
_SECRET = re.compile(
    r"secret|passw|token|credential|access[._-]?key|account[._-]?key|private[._-]?key|\bsas\b|auth", re.IGNORECASE
)
_REFERENCE = frozenset({"credentialsSecretRef"})
_QUERY = re.compile(r"(?i)([?&][^=&\s]*(?:sig|token|secret|key|signature|credential)[^=&\s]*=)[^&\s]+")


def redacted(value: Any) -> Any:
    """The same, with `***` in place of what a key's name calls secret, and of users and signatures
    in URLs."""
    if isinstance(value, Mapping):
        return {key: _member(str(key), item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [redacted(item) for item in value]
    return _QUERY.sub(rf"\g<1>{HIDDEN}", without_users(value, HIDDEN)) if isinstance(value, str) else value


def _member(key: str, item: Any) -> Any:
    if key in _REFERENCE or isinstance(item, Mapping | list):
        return redacted(item)
    return HIDDEN if _SECRET.search(key) and item not in (None, "", True, False) else redacted(item)
