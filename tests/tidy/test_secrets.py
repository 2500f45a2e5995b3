"""No credential is in the repository: its files are searched for what keys and tokens look like."""

from __future__ import annotations

import re

import pytest

from tests.tidy.sources import ROOT, project_files

LOOKS = {
    "a key of AWS": r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",
    "a private key": r"-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----\s*\n?[A-Za-z0-9+/=]{32}",
    "a token of GitHub": r"\bgh[pousr]_[A-Za-z0-9]{36}\b",
    "a token of Slack": r"\bxox[abprs]-[A-Za-z0-9-]{10,}",
    "a key of Google": r"\bAIza[0-9A-Za-z_-]{35}\b",
    "a JSON web token": r"\beyJ[A-Za-z0-9_-]{16,}\.eyJ[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}",
    "a key of an Azure account": r"AccountKey=[A-Za-z0-9+/]{64,}",
    "a password in a URL": r"https?://[^/\s:@\"'{}<>$*]+:(?!canary|secret|pass|\*|\w*\{)[^/\s@\"'{}<>$]{8,}@",
}
SIZE_MAX = 2 << 20


@pytest.mark.parametrize("look", LOOKS)
def test_nothing_looks_like_a_credential(look: str) -> None:
    pattern = re.compile(LOOKS[look].encode())
    files = [ROOT / name for name in project_files() if name != "tests/tidy/test_secrets.py"]
    found = [
        str(path.relative_to(ROOT))
        for path in files
        if path.stat().st_size < SIZE_MAX and pattern.search(path.read_bytes())
    ]
    assert not found


@pytest.mark.parametrize(
    ("look", "text"),
    [
        ("a key of AWS", "AKIA" + "A" * 16),
        ("a private key", "-----BEGIN RSA PRIVATE" + " KEY-----\n" + "A" * 40),
        ("a token of GitHub", "ghp_" + "a" * 36),
        ("a password in a URL", "https://user:" + "hunter2hunter2@example.org/"),
    ],
)
def test_one_would_be_seen(look: str, text: str) -> None:
    assert re.search(LOOKS[look], text)
