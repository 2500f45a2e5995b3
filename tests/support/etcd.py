"""What etcd holds, byte by byte: every key of an API server with its value, whatever the
resource."""

from __future__ import annotations

import base64
import json
import urllib.request

PAGE = 500
_FIRST = b"\0"


def dump(url: str) -> dict[str, bytes]:
    """Key → value of everything, through etcd's own JSON gateway, page by page."""
    found: dict[str, bytes] = {}
    start = _FIRST
    while True:
        body = {"key": _text(start), "range_end": _text(b"\0"), "limit": str(PAGE)}
        asked = urllib.request.Request(f"{url}/v3/kv/range", json.dumps(body).encode(), method="POST")
        with urllib.request.urlopen(asked, timeout=30) as answer:
            said = json.loads(answer.read())
        for pair in said.get("kvs", ()):
            last = base64.b64decode(pair["key"])
            found[last.decode("utf-8", "replace")] = base64.b64decode(pair.get("value", ""))
        if not said.get("more"):
            return found
        start = last + b"\0"


def _text(key: bytes) -> str:
    return base64.b64encode(key).decode()
