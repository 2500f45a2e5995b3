"""Messages without the values of a Secret."""

from __future__ import annotations

import base64
import json
from urllib.parse import quote, quote_plus

import pytest

from hudi_operator.plan.observed import Problem, SourceObservation
from hudi_operator.runtime.masking import masked, masked_problem, masked_source

SECRET = {"AWS_SECRET_ACCESS_KEY": "hunter2-hunter2", "DATABASE_PASSWORD": "pass", "AWS_SESSION_TOKEN": "abc"}


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("signed with hunter2-hunter2, twice: hunter2-hunter2", "signed with ***, twice: ***"),
        ("user x with pass failed", "user x with *** failed"),
        ("abc is too short to be told from a word", "abc is too short to be told from a word"),
        ("nothing of it", "nothing of it"),
        ("", ""),
        (None, None),
    ],
)
def test_no_value_of_four_characters_or_more_stays_in_a_message(message: str | None, shown: str | None) -> None:
    assert masked(message, SECRET) == shown


PASSWORD = "pä ss/w0rd+=@"
PEM = "-----BEGIN PRIVATE KEY-----\nMIIEvQ+IBADA/NBg==\nkqhkiG9w0BAQ\n-----END PRIVATE KEY-----\n"


@pytest.mark.parametrize(
    "form",
    [
        PASSWORD,
        quote(PASSWORD, safe=""),
        quote(PASSWORD),
        quote_plus(PASSWORD).lower(),
        "p%C3%A4%20ss/w0rd+=%40",
        json.dumps(PASSWORD)[1:-1],
        base64.b64encode(PASSWORD.encode()).decode(),
        base64.urlsafe_b64encode(PASSWORD.encode()).decode().rstrip("="),
        base64.b64encode(f"shop:{PASSWORD}".encode()).decode(),
        quote(base64.b64encode(f"shop:{PASSWORD}".encode()).decode(), safe=""),
        PEM,
        " ".join(PEM.split()),
        json.dumps(PEM)[1:-1],
        repr(PEM)[1:-1],
        base64.b64encode(PEM.encode()).decode(),
    ],
)
def test_no_form_in_which_a_value_is_sent_or_quoted_stays_in_a_message(form: str) -> None:
    secret = {"SCHEMA_REGISTRY_USERNAME": "shop", "SCHEMA_REGISTRY_PASSWORD": PASSWORD, "KAFKA_CLIENT_KEY": PEM}
    assert masked(f"said <{form}> of it", secret) == "said <***> of it"


def test_a_value_that_holds_another_one_is_hidden_whole() -> None:
    assert masked("it is longword", {"A": "word", "B": "longword"}) == "it is ***"


def test_a_problem_keeps_all_but_the_values_in_its_message() -> None:
    found = masked_problem(Problem("AccessDenied", "the key hunter2-hunter2 is none", retryable=True), SECRET)
    assert found == Problem("AccessDenied", "the key *** is none", retryable=True)


def test_what_could_not_be_seen_of_a_source_holds_no_value() -> None:
    said, shown = Problem("AccessDenied", "hunter2-hunter2"), Problem("AccessDenied", "***")
    found = masked_source(SourceObservation("feed", problem=said, lag=said, retention=said), SECRET)
    assert (found.problem, found.lag, found.retention) == (shown, shown, shown)
