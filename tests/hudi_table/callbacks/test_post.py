"""Sending an event: signed, to whom that is allowed alone, within its time; what becomes of it is
told without what was sent."""

from __future__ import annotations

import socket
import threading
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_table.api import create_table
from hudi_table.callbacks.commits import commits_after
from hudi_table.callbacks.position import Position
from hudi_table.callbacks.post import Answer, post
from hudi_table.callbacks.receivers import Allowed, Target
from hudi_table.callbacks.sending import Hook
from hudi_table.callbacks.signatures import HEADER, is_signed, signature
from hudi_table.errors import InvalidOptionError
from hudi_table.table.store.clock import SystemClock
from tests.support.https import QuietHandler, running_https
from tests.support.receiver import receiver

LOOPBACK = Allowed.of(["127.0.0.1"])


def posted(url: str, allowed: Allowed = LOOPBACK, seconds: float = 5.0) -> Answer:
    return post(
        Target.of(url), b"{}", {"Authorization": "Bearer t0ken"}, allowed=allowed, clock=SystemClock(), seconds=seconds
    )


def test_a_receiver_checks_who_sent_what_and_when() -> None:
    header = signature("key", b"body", 1_000_000)
    assert is_signed("key", b"body", header, 1_000_010)
    assert not is_signed("other", b"body", header, 1_000_010)
    assert not is_signed("key", b"bodY", header, 1_000_010)
    assert not is_signed("key", b"body", header, 1_000_301)
    assert not is_signed("key", b"body", header, 999_000)
    assert not is_signed("key", b"body", header.replace("t=1000000", "t=1000200"), 1_000_010)
    assert not is_signed("key", b"body", "", 0)


def test_an_event_is_sent_signed_with_its_token(tmp_path: Any) -> None:
    table = create_table(str(tmp_path / "t"), pa.schema([("id", pa.string())]), record_key="id")
    table.upsert(pa.table({"id": ["a"]}))
    commit = commits_after(table.context, Position()).told[-1].commit
    with receiver() as there:
        answer = Hook(Target.of(there.url), "k3y", "t0ken").send(table.context, commit, LOOPBACK)
    assert answer == Answer(True)
    (sent,) = there.sent
    assert sent.path == "/commits"
    assert sent.headers["Content-Type"] == "application/cloudevents+json; charset=UTF-8"
    assert sent.headers["Authorization"] == "Bearer t0ken"
    assert is_signed("k3y", sent.body, sent.headers[HEADER], time.time())
    assert sent.event["id"] == f"t/{commit.instant}"
    assert "k3y" not in repr(Hook(Target.of(there.url), "k3y", "t0ken"))


@pytest.mark.parametrize("status", [302, 400, 404, 500])
def test_what_is_not_taken_is_told_and_no_redirect_is_followed(status: int) -> None:
    with receiver(lambda _: status) as there:
        assert posted(there.url) == Answer(False, f"the receiver answered {status}")
        assert len(there.sent) == 1


def test_a_receiver_that_keeps_silent_costs_its_time_and_no_more() -> None:
    with receiver(lambda _: -3) as there:
        began = time.monotonic()
        assert posted(there.url, seconds=0.3) == Answer(False, "no answer within 0.3 s")
        assert time.monotonic() - began < 2


def test_a_receiver_that_answers_drop_by_drop_costs_no_more_either() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def drip() -> None:
            connection, _ = server.accept()
            with connection:
                try:
                    for _ in range(100):
                        connection.sendall(b"H")
                        time.sleep(0.05)
                except OSError:
                    return

        thread = threading.Thread(target=drip)
        thread.start()
        began = time.monotonic()
        assert not posted(f"http://127.0.0.1:{server.getsockname()[1]}/", seconds=0.4).delivered
        assert time.monotonic() - began < 3
        thread.join()


def test_what_does_not_listen_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    assert posted(f"http://127.0.0.1:{port}/") == Answer(False, "Connection refused")


def resolves(monkeypatch: pytest.MonkeyPatch, *addresses: str, seconds: float = 0.0) -> None:
    """What the name of the receiver resolves to."""
    real = socket.getaddrinfo

    def found(host: str, port: int, *more: Any, **named: Any) -> list[Any]:
        if host != "hooks.example.com":
            return real(host, port, *more, **named)
        time.sleep(seconds)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in addresses]

    monkeypatch.setattr(socket, "getaddrinfo", found)


def test_a_name_with_an_address_that_does_not_answer_is_reached_at_another(monkeypatch: pytest.MonkeyPatch) -> None:
    resolves(monkeypatch, "127.0.0.2", "127.0.0.1")
    named = Allowed.of(["hooks.example.com", "127.0.0.0/8"])
    with receiver() as there:
        assert posted(f"http://hooks.example.com:{there.port}/", named) == Answer(True)
        assert len(there.sent) == 1
        one = Allowed.of(["hooks.example.com", "127.0.0.2"])
        assert posted(f"http://hooks.example.com:{there.port}/", one) == Answer(False, "Connection refused")
        assert len(there.sent) == 1


def test_an_address_that_keeps_silent_leaves_time_for_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    with receiver() as there, socket.socket() as silent:
        # A queue of connections that is full answers nobody.
        silent.bind(("127.0.0.2", there.port))
        silent.listen(0)
        with socket.create_connection(("127.0.0.2", there.port)):
            resolves(monkeypatch, "127.0.0.2", "127.0.0.1")
            named = Allowed.of(["hooks.example.com", "127.0.0.0/8"])
            began = time.monotonic()
            assert posted(f"http://hooks.example.com:{there.port}/", named, seconds=2.0) == Answer(True)
            assert time.monotonic() - began < 2


def test_a_name_that_is_resolved_slowly_costs_its_time_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    resolves(monkeypatch, "127.0.0.1", seconds=3)
    began = time.monotonic()
    assert posted("http://hooks.example.com/", Allowed.of(["*.example.com"]), seconds=0.3) == Answer(
        False, "no answer within 0.3 s"
    )
    assert time.monotonic() - began < 2


def test_what_can_be_no_name_of_a_host_is_told() -> None:
    long = "a" * 64
    assert posted(f"http://{long}.example.com/", Allowed.of(["*.example.com"])) == Answer(False, "no name of a host")


class Taking(QuietHandler):
    """Takes what is posted."""

    def do_POST(self) -> None:  # noqa: N802  # the base class names it
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(204)
        self.end_headers()


def test_a_receiver_of_https_is_reached_where_its_authority_is_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running_https(Taking, tmp_path) as there:
        url = f"https://127.0.0.1:{there.port}/commits"
        assert posted(url) == Answer(False, "TLS: CERTIFICATE_VERIFY_FAILED")
        (tmp_path / "ca.pem").write_bytes(there.certificate)
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
        assert posted(url) == Answer(True)
        # The name of the URL must be one of the certificate.
        resolves(monkeypatch, "127.0.0.1")
        named = Allowed.of(["hooks.example.com", "127.0.0.1"])
        assert posted(f"https://hooks.example.com:{there.port}/", named) == Answer(
            False, "TLS: CERTIFICATE_VERIFY_FAILED"
        )


@pytest.mark.parametrize("allowed", [[], ["example.com"], ["10.0.0.0/8"]])
def test_a_host_that_is_not_listed_is_never_connected_to(allowed: list[str]) -> None:
    with receiver() as there:
        answer = posted(there.url, Allowed.of(allowed))
        assert (answer.delivered, answer.refused, answer.why) == (False, True, "host 127.0.0.1 is not allowed")
        assert there.sent == []


@pytest.mark.parametrize(
    "address", ["127.0.0.1", "169.254.169.254", "::1", "fe80::1", "0.0.0.0", "::ffff:169.254.169.254"]
)
def test_a_listed_name_at_an_address_of_the_own_machine_or_link_is_refused(
    monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [(family, socket.SOCK_STREAM, 6, "", (address, 80))])
    answer = posted("http://hooks.example.com/", Allowed.of(["hooks.example.com"]))
    assert answer.refused
    assert "an address of this machine or its link" in answer.why


def test_names_and_addresses_are_listed_in_several_ways() -> None:
    allowed = Allowed.of(["hooks.example.com", "*.svc.cluster.local", "10.1.0.0/16", "::1"])
    good = ("hooks.example.com", "a.b.svc.cluster.local", "10.1.2.3", "::1", "hooks.example.com.")
    bad = ("example.com", "x.hooks.example.com", "svc.cluster.local", "evilsvc.cluster.local", "10.2.0.1", "127.0.0.1")
    assert [allowed.host(host) for host in good] == [True] * len(good)
    assert [allowed.host(host) for host in bad] == [False] * len(bad)


@pytest.mark.parametrize("entry", ["", "*", "*.", "http://x", "a b", "a..b", "x/y"])
def test_an_entry_that_is_no_host_is_refused(entry: str) -> None:
    with pytest.raises(InvalidOptionError, match="is no host: give a name"):
        Allowed.of([entry])


@pytest.mark.parametrize(
    "url",
    [
        "ftp://a/",
        "http:///x",
        "http://u:p@a/",
        "http://a/?token=x",
        "http://a/#x",
        "http://a:99999/",
        "http://a/x y",
        "a",
    ],
)
def test_a_url_that_is_none_or_holds_a_secret_is_refused(url: str) -> None:
    with pytest.raises(InvalidOptionError, match="url"):
        Target.of(url)
