"""Clients that find their credentials around them: shared while those are the same, made anew when
they were replaced."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import obstore.store
import pytest

from hudi_table.table.store.opening import open_storage
from tests.support.s3 import S3Server, running_s3

pytestmark = pytest.mark.s3
VARIABLES = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE")


class Signed:
    """Notes (access key, session token) of each request."""

    def __init__(self, app: Any) -> None:
        self._app = app
        self.by: list[tuple[str, str]] = []

    def __call__(self, environ: Any, start_response: Any) -> Iterable[bytes]:
        key = re.search("Credential=([^/]+)/", environ.get("HTTP_AUTHORIZATION", ""))
        self.by.append((key[1] if key else "", environ.get("HTTP_X_AMZ_SECURITY_TOKEN", "")))
        found: Iterable[bytes] = self._app(environ, start_response)
        return found


@pytest.fixture
def signed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[tuple[S3Server, Signed]]:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    made: list[Signed] = []

    def around(app: Any) -> Signed:
        made.append(Signed(app))
        return made[0]

    with running_s3(around) as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", server.endpoint)
        monkeypatch.setenv("AWS_REGION", "us-east-1")
        yield server, made[0]


def counted(monkeypatch: pytest.MonkeyPatch, name: str) -> list[object]:
    """The clients of a kind, as they are made."""
    made: list[object] = []
    original: Callable[..., Any] = getattr(obstore.store, name)

    def make(*given: Any, **options: Any) -> Any:
        made.append(original(*given, **options))
        return made[-1]

    monkeypatch.setattr(f"obstore.store.{name}", make)
    return made


def test_what_is_opened_after_the_keys_in_the_environment_were_replaced_signs_with_the_new_ones(
    signed: tuple[S3Server, Signed], monkeypatch: pytest.MonkeyPatch
) -> None:
    server, signatures = signed
    for number in (1, 2):
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", f"key-{number}")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", f"secret-{number}")
        monkeypatch.setenv("AWS_SESSION_TOKEN", f"token-{number}")
        open_storage(f"s3://{server.bucket}/t").put("x", b"1")
        assert signatures.by[-1] == (f"key-{number}", f"token-{number}")


def test_tables_by_one_profile_share_clients_until_its_keys_are_replaced(
    signed: tuple[S3Server, Signed], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    server, signatures = signed
    made = counted(monkeypatch, "S3Store")
    keys = tmp_path / "keys"
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(keys))
    monkeypatch.setenv("AWS_PROFILE", "lake")
    for name in ("key-one", "key-of-others"):
        made.clear()
        keys.write_text(f"[lake]\naws_access_key_id = {name}\naws_secret_access_key = secret\n")
        for table in ("a", "b", "c"):
            open_storage(f"s3://{server.bucket}/{table}").put("x", b"1")
        assert signatures.by[-1] == (name, "")
        assert len(made) == 2, "one that repeats requests and one that does not"


@pytest.mark.parametrize("root", ["az://container", "gs://bucket"])
def test_tables_by_the_identity_of_their_surroundings_share_clients(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = counted(monkeypatch, "from_url")
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "lake")
    for table in ("a", "b", "c/d"):
        assert open_storage(f"{root}/{table}").base_path == f"{root}/{table}"
    assert len(made) == 2, "one that repeats requests and one that does not"
    monkeypatch.setenv("AZURE_CLIENT_ID", "another")
    open_storage(f"{root}/a")
    assert len(made) == 4
