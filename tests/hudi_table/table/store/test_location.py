"""What may stand in a location and in the options of a store, and what no message repeats."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from obstore.store import S3Store

from hudi_table.api import create_table, open_table
from hudi_table.errors import (
    CorruptTableError,
    HudiError,
    InvalidOptionError,
    InvalidRequestError,
    InvariantError,
    UnavailableError,
)
from hudi_table.table.store.location import parse_location, shown
from hudi_table.table.store.opening import Reopen, open_storage
from hudi_table.table.store.ports import Storage
from hudi_table.table.store.remote import ObjectStorage
from hudi_table.table.store.retry import Pace
from tests.support.s3 import running_s3
from tests.support.written import new_table, rows

NOWHERE = "http://127.0.0.1:1"
KEYS = {"endpoint": NOWHERE, "access_key_id": "AKIAEXAMPLE", "secret_access_key": "SECRET-VALUE", "retries": "0"}
WITHOUT_ENDPOINT = {name: value for name, value in KEYS.items() if name != "endpoint"}


def opened(uri: str = "s3://bucket/t", **options: str) -> HudiError:
    with pytest.raises(HudiError) as raised:
        open_table(uri, storage_options=KEYS | options)
    return raised.value


@pytest.mark.parametrize("slip", ["\n", "\r\n", "\0", "\x7f"])
@pytest.mark.parametrize("name", ["access_key_id", "secret_access_key", "session_token", "region", "endpoint"])
def test_a_control_character_is_refused_by_the_name_of_the_option_alone(name: str, slip: str) -> None:
    error = opened(**{name: f"{KEYS.get(name, 'PART-OF-IT')}{slip}"})
    assert isinstance(error, InvalidOptionError)
    assert f"storage option {name} has the control character U+00" in str(error)
    assert "PART-OF-IT" not in str(error)
    assert KEYS.get(name, "PART-OF-IT") not in str(error)


def test_a_control_character_in_the_environment_is_refused_by_the_name_of_the_variable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE\n")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
    with pytest.raises(
        InvalidOptionError, match=r"variable AWS_ACCESS_KEY_ID has the control character U\+000A at its end"
    ) as e:
        open_table("s3://bucket/t", storage_options={"endpoint": NOWHERE})
    assert "AKIAEXAMPLE" not in str(e.value)


@pytest.mark.parametrize("name", ["access_key_id", "session_token", "region"])
def test_text_that_no_header_carries_is_refused(name: str) -> None:
    assert f"{name} has characters that are not ASCII" in str(opened(**{name: "ключ"}))


@pytest.mark.parametrize(
    "endpoint", ["127.0.0.1:1", "ftp://h", "http://[::1", "http://h:99999", "http://h?x=1", "http://"]
)
def test_an_endpoint_that_is_no_url_of_a_server_is_refused(endpoint: str) -> None:
    error = opened(endpoint=endpoint)
    assert isinstance(error, InvalidOptionError)
    assert "endpoint is no URL of a server" in str(error)


@pytest.mark.parametrize("name", ["endpoint", "aws_endpoint", "endpoint_url"])
def test_an_endpoint_without_a_text_is_refused_before_the_client_panics(name: str) -> None:
    """The client panicked at its first request."""
    with pytest.raises(InvalidOptionError, match="the storage option endpoint is empty: give a URL, or leave it out"):
        open_table("s3://bucket/t", storage_options=WITHOUT_ENDPOINT | {name: ""})


@pytest.mark.parametrize("name", ["AWS_ENDPOINT", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"])
def test_a_variable_of_an_endpoint_without_a_text_is_refused_unless_an_option_has_one(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "")
    with pytest.raises(InvalidOptionError, match=f"the variable {name} is empty: give a URL, or unset it"):
        open_table("s3://bucket/t", storage_options=WITHOUT_ENDPOINT)
    assert isinstance(opened(), UnavailableError)


@pytest.mark.s3
@pytest.mark.parametrize("elsewhere", [NOWHERE, ""])
def test_the_option_of_an_endpoint_goes_before_every_variable(elsewhere: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client went where `AWS_ENDPOINT_URL_S3` says, and without a text of it panicked."""
    for name in ("AWS_ENDPOINT", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"):
        monkeypatch.setenv(name, elsewhere)
    with running_s3() as server:
        open_storage(server.new_uri(), server.options).put("x", b"1")
        assert len(server.keys()) == 1


@pytest.mark.parametrize(
    ("name", "value"), [("timeout", "nan"), ("timeout", "inf"), ("retries", "1e30"), ("connect_timeout", "1e12")]
)
def test_a_number_beyond_measure_is_refused(name: str, value: str) -> None:
    assert f"storage option {name} is '{value}'" in str(opened(**{name: value}))


SECRETS: dict[str, Callable[[], HudiError]] = {
    "password in the endpoint": lambda: opened(endpoint="http://user:pass-canary@127.0.0.1:1"),
    "password in an S3 location": lambda: opened("s3://key:pass-canary@bucket/t"),
    "password in an Azure location": lambda: opened("abfss://c:pass-canary@acc.dfs.core.windows.net/t"),
    "password in a location of Google": lambda: opened("gs://u:pass-canary@bucket/t"),
    "password in a scheme that is not known": lambda: opened("https://u:pass-canary@host/t"),
    "password beside a host in a file URL": lambda: opened("file://u:pass-canary@host/t"),
    "signature in a query": lambda: opened("az://container/t?sig=pass-canary"),
    "signature in a query of S3": lambda: opened("s3://bucket/t?X-Amz-Signature=pass-canary"),
    "secret where something else belongs": lambda: opened(
        secret_access_key="pass-canary", checksum_algorithm="pass-canary"
    ),
    "half of a secret of S3 before its slash": lambda: opened("s3://key:pass-canary/more@bucket/t"),
    "secret of S3 with a slash": lambda: opened("s3://key:a/pass-canary@bucket/t"),
    "password with a slash in a location of Google": lambda: opened("gs://u:a/pass-canary@bucket/t"),
    "password with a slash in an Azure location": lambda: opened("abfss://c:a/pass-canary@acc.dfs.core.windows.net/t"),
    "password with a slash in a scheme that is not known": lambda: opened("https://u:a/pass-canary@host/t"),
    "password with a space, in a location with a NUL": lambda: opened("s3://u:a pass-canary@bucket/t\0"),
    "password with an @": lambda: opened(retries="s3://u:a@pass-canary@bucket/t"),
    "user alone where a number belongs": lambda: opened(retries="s3://pass-canary@bucket/t"),
    "password with a slash in a file URL": lambda: opened("file://u:pass-canary/b@host/t"),
    "URL with a password where a number belongs": lambda: opened(retries="http://u:pass-canary@h"),
    "URL with a password that the store cannot parse": lambda: opened(s3_express="http://u:a/pass-canary@h"),
    "URL with a password in an option that is refused": lambda: refused_option("hoodie.bootstrap.base.path"),
    "URL with a password in an option that acts": lambda: refused_option("hoodie.index.type"),
    "URL with a password in an option of the table": lambda: refused_option("hoodie.table.name"),
}


def refused_option(key: str) -> HudiError:
    """What a write says of an option with a location whose password has a slash."""
    with pytest.raises(HudiError, match=key) as raised:
        new_table().upsert(rows(("a", "x", 1)), options={key: "s3://AKIAEXAMPLE:a/pass-canary@bucket/t"})
    return raised.value


@pytest.mark.parametrize("name", SECRETS)
def test_no_message_repeats_a_secret(name: str) -> None:
    error = SECRETS[name]()
    assert isinstance(error, InvalidRequestError)
    assert "pass-canary" not in str(error)
    assert error.__cause__ is None


def test_a_location_is_shown_without_user_and_query() -> None:
    assert shown("s3://u:p@b/x?sig=1") == "s3://…@b/x?…"
    assert shown("/a//b@c?d") == "/a//b@c?d"
    assert shown("abfss://container@account/x@y") == "abfss://container@account/x@y"


@pytest.mark.parametrize(
    "url", ["file:///a/%2e%2e/b", "file:///a/../b", "file:/a/%2E/b", "file:///a%2fb", "file:///a/%00", "file:///a/%ff"]
)
def test_a_file_url_that_programs_understand_differently_is_refused(url: str) -> None:
    with pytest.raises(InvalidRequestError, match="write the path"):
        parse_location(url)


def test_a_file_url_is_decoded() -> None:
    assert parse_location("file:///a%20b/c%25") == ("file", "", "/a b/c%")


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("s3:/bucket/t", r"one slash behind 's3': write s3://bucket/prefix for a store, and \./s3:/bucket/t"),
        ("dbfs:/lake/t", "one slash behind 'dbfs'"),
        ("~/lake/t", r"'~', which only a shell knows: write the whole path, and \./~/lake/t"),
        ("~", "which only a shell knows"),
    ],
)
def test_a_path_that_means_another_place_to_who_wrote_it_is_refused(path: str, says: str) -> None:
    with pytest.raises(InvalidRequestError, match=says):
        create_table(path, rows(("a", "x", 1)), record_key="id")
    assert parse_location(f"./{path}") == ("file", "", f"./{path}")
    assert parse_location("lake/x:/~t") == ("file", "", "lake/x:/~t")


@pytest.mark.parametrize("uri", ["/a/\udcff", "s3://bucket/\ud800"])
def test_a_location_that_is_no_unicode_is_refused(uri: str) -> None:
    with pytest.raises(InvalidRequestError, match="not valid Unicode"):
        open_storage(uri)


CALLS: dict[str, Callable[[Storage], Any]] = {
    "get": lambda s: s.get("k"),
    "list": lambda s: s.list(""),
    "list_dir": lambda s: s.list_dir(""),
    "open_read": lambda s: s.open_read("k"),
    "put": lambda s: s.put("k", b""),
    "put_if_absent": lambda s: s.put_if_absent("k", b""),
    "delete": lambda s: s.delete("k"),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CALLS)
def test_a_panic_of_the_client_is_an_error_of_ours(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    store = S3Store(
        "bucket", config={"access_key_id": "AK\n", "secret_access_key": "s", "endpoint": NOWHERE, "region": "r"}
    )
    storage = ObjectStorage(
        store, store, Pace(), uri="s3://bucket", prefix="", where="bucket 'bucket'", reopen=Reopen("s3://bucket")
    )
    with pytest.raises(InvariantError, match="panicked") as raised:
        CALLS[name](storage)
    assert raised.value.__cause__ is None
    capfd.readouterr()


def special(kind: str, path: Path) -> None:
    if kind == "fifo":
        os.mkfifo(path)
    else:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(path))


@pytest.mark.parametrize("kind", ["fifo", "socket"])
def test_what_is_no_file_is_never_waited_for(tmp_path: Path, kind: str) -> None:
    special(kind, tmp_path / "k")
    storage = open_storage(str(tmp_path))
    for call in (storage.get, storage.head, storage.open_read):
        with pytest.raises(CorruptTableError, match="FIFO, a socket or a device"):
            call("k")
    storage.put("k", b"now a file")
    assert storage.get("k") == b"now a file"


def test_a_table_whose_properties_are_a_fifo_is_refused(tmp_path: Path) -> None:
    (tmp_path / ".hoodie").mkdir()
    os.mkfifo(tmp_path / ".hoodie" / "hoodie.properties")
    with pytest.raises(CorruptTableError, match="FIFO"):
        open_table(str(tmp_path))
