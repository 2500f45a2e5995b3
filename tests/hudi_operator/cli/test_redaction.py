"""What a report hides: whatever a key's name calls secret, and users and signatures in URLs; and
what it shows all the same."""

from __future__ import annotations

import json

import hypothesis.strategies as st
import pytest
from hypothesis import given

from hudi_operator.cli.redaction import HIDDEN, redacted

CANARY = "canary-7f3a91bc"


@pytest.mark.parametrize(
    "key",
    [
        "spark.hadoop.fs.s3a.secret.key", "spark.hadoop.fs.s3a.access.key", "fs.azure.account.key.x", "password",
        "hoodie.write.lock.zookeeper.password", "AWS_SESSION_TOKEN", "AWS_SECRET_ACCESS_KEY", "ssl.private.key",
        "spark.authenticate.secret",
    ],
)  # fmt: skip
def test_what_a_key_calls_secret_is_hidden(key: str) -> None:
    assert redacted({"spec": {"options": {key: CANARY}}}) == {"spec": {"options": {key: HIDDEN}}}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"https://me:{CANARY}@s3.example/lake", "https://***@s3.example/lake"),
        (f"az://lake/x?sv=1&sig={CANARY}&se=2", "az://lake/x?sv=1&sig=***&se=2"),
        (f"s3://AKIAEXAMPLE:a/{CANARY}@lake/flights", "s3://***@lake/flights"),
        ("abfss://lake@account.dfs.core.windows.net/t", "abfss://lake@account.dfs.core.windows.net/t"),
        ("s3://lake/flights", "s3://lake/flights"),
    ],
)
def test_users_and_signatures_of_urls_are_hidden(text: str, shown: str) -> None:
    assert redacted([text]) == [shown]


@pytest.mark.parametrize(
    "value",
    [
        {"storage": {"credentialsSecretRef": {"name": "s3"}, "region": "us-east-1"}},
        {"recordKey": ["id"], "hashFields": ["id"], "keepCommits": 10},
        {"hoodie.parquet.max.file.size": "1", "spark.executor.memory": "2g"},
    ],
)
def test_what_is_no_secret_is_shown(value: object) -> None:
    assert redacted(value) == value


@given(
    st.recursive(
        st.just(0),
        lambda inner: st.one_of(
            st.lists(inner, max_size=3),
            st.dictionaries(st.sampled_from(["a", "b"]), inner, max_size=2),
            st.fixed_dictionaries({"secretKey": st.just(CANARY)}),
            st.just(f"http://u:{CANARY}@h"),
        ),
        max_leaves=8,
    )
)
def test_however_deep_it_lies_it_is_hidden(value: object) -> None:
    assert CANARY not in json.dumps(redacted(value))
