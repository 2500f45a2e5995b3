"""Several HudiTables at one place, above or below it, of several namespaces: who has a table goes
on, and a manifest without one keeps nobody from his, whenever it came."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_operator.api.resources import Key
from hudi_operator.launchers.local import LocalLauncher
from hudi_operator.runtime.local.folder import FolderCluster
from hudi_operator.runtime.observing import claims
from hudi_operator.runtime.reconcile import Reconciler
from hudi_table.api import create_table
from hudi_table.errors import AccessDeniedError, UnavailableError
from hudi_table.table.store.opening import open_storage
from hudi_table.table.store.ports import Storage
from tests.hudi_operator.runtime.test_local_runtime import conditions
from tests.support.manifests import manifest, spec
from tests.support.tables import TestClock

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64())])
INDEX = {"type": "Bucket", "buckets": 4}
GOOD, OTHER = "good", "other"
NOWHERE = {"credentialsSecretRef": {"name": "nowhere"}}


@dataclass
class Lake:
    """A cluster without pods, beside a store that all namespaces reach."""

    folder: Path
    base: str = field(default_factory=lambda: f"memory://{uuid.uuid4().hex}/lake")
    clock: TestClock = field(default_factory=TestClock)
    cluster: FolderCluster = field(init=False)

    def __post_init__(self) -> None:
        self.cluster = FolderCluster(self.folder, self.clock, lambda key, event: None)
        self.cluster.acquire()

    def apply(self, namespace: str, below: str = "/flights", name: str = "flights", **changes: Any) -> Key:
        """A manifest, a second younger than the one before."""
        self.clock.advance(1)
        document = manifest(name, **spec(location=f"{self.base}{below}", ingest=[], **changes))
        return self.cluster.apply({**document, "metadata": {"name": name, "namespace": namespace}})

    def make(self, below: str = "/flights") -> None:
        """A table at a place."""
        create_table(f"{self.base}{below}", SCHEMA, record_key="id", ordering_fields="ts", index=INDEX)

    def looked(self, *keys: Key) -> list[str]:
        """What an operator that has just begun says of each: the table's name that it gives way to,
        its reason for standing still, or nothing."""
        reconciler = Reconciler(self.cluster, LocalLauncher(self.folder / "attempts"), self.clock)
        for key in keys:
            reconciler.reconcile(key)
        return [_standing(self.cluster.get(key)) for key in keys]


def _standing(document: Mapping[str, Any] | None) -> str:
    assert document is not None
    found = conditions(document)
    assert "SharedLocation" in found, "all say that others lie there"
    _, reason, message = found.get("Stalled", ("", "", ""))
    return message.partition("spec.location: HudiTable ")[2].partition(",")[0] or reason


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    found = Lake(tmp_path)
    yield found
    found.cluster.release()


@pytest.mark.parametrize(
    ("claimed", "changes", "said"),
    [
        ("", {}, "InvalidRequest"),
        ("/flights/inner", {}, "good/flights has its table there"),
        ("/flights/.hoodie/metadata", {}, "good/flights has its table there"),
        ("/flights", {"storage": NOWHERE}, "InvalidSpec"),
    ],
)
def test_a_manifest_that_came_first_and_has_no_table_keeps_no_other_namespace_from_its_own(
    lake: Lake, claimed: str, changes: dict[str, Any], said: str
) -> None:
    claim = lake.apply(OTHER, claimed, **changes)
    owner = lake.apply(GOOD)
    lake.make()
    if claimed.endswith("metadata"):
        lake.make(claimed)
    assert lake.looked(claim, owner) == [said, ""]
    assert lake.looked(owner, claim) == ["", said], "whoever is looked at first, by whatever process"


def test_of_two_without_a_table_the_older_makes_his(lake: Lake) -> None:
    older, younger = lake.apply(OTHER, ""), lake.apply(GOOD)
    assert lake.looked(younger, older) == ["other/flights", ""]


@pytest.mark.parametrize("above", ["", "/flights"])
def test_of_two_that_have_a_table_the_older_goes_on(lake: Lake, above: str) -> None:
    older, younger = lake.apply(OTHER, above), lake.apply(GOOD)
    lake.make(above)
    if above != "/flights":
        lake.make()
    assert lake.looked(younger, older) == ["other/flights has its table there", ""]


def test_of_three_one_goes_on_whatever_namespaces_they_are_of(lake: Lake) -> None:
    """By age alone within a namespace, and by tables between two, each would give way to the
    next."""
    oldest, older, youngest = lake.apply(GOOD), lake.apply(OTHER, ""), lake.apply(OTHER, "/flights/inner", "inner")
    lake.make("/flights/inner")
    assert lake.looked(oldest, older, youngest)[2] == ""
    assert all(lake.looked(oldest, older))


def test_a_table_that_is_deleted_gives_its_place_back_to_who_came_first(lake: Lake) -> None:
    claim, owner = lake.apply(OTHER, ""), lake.apply(GOOD)
    lake.make()
    assert lake.looked(owner, claim) == ["", "InvalidRequest"]
    storage = open_storage(f"{lake.base}/flights")
    for each in list(storage.list()):
        storage.delete(each.path)
    assert lake.looked(owner, claim) == ["other/flights", ""]


def test_a_store_that_does_not_answer_is_asked_again_and_decides_nothing(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim, owner = lake.apply(OTHER, ""), lake.apply(GOOD)
    lake.make()
    assert lake.looked(owner, claim) == ["", "InvalidRequest"]

    def away(*_: object) -> Storage:
        raise UnavailableError("the store is away")

    with monkeypatch.context() as changes:
        changes.setattr(claims, "open_storage", away)
        assert lake.looked(owner) == [""]
        document = lake.cluster.get(owner)
        assert document is not None
        assert conditions(document)["Ready"][:2] == ("Unknown", "Unavailable")
    assert lake.looked(owner, claim) == ["", "InvalidRequest"]


def test_where_our_credentials_do_not_reach_those_of_the_other_one_are_tried_and_may_fail(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim, owner = lake.apply(OTHER, ""), lake.apply(GOOD)
    lake.make("")
    lake.make()
    asked: list[str] = []
    errors: list[type[Exception]] = [AccessDeniedError]

    def denied(location: str, options: Mapping[str, str]) -> Storage:
        asked.append(location)
        if len(asked) <= len(errors):
            raise errors[len(asked) - 1]("no")
        return open_storage(location, options)

    monkeypatch.setattr(claims, "open_storage", denied)
    assert lake.looked(owner) == ["other/flights has its table there"]
    assert asked == [lake.base] * 2
    asked.clear()
    errors.append(ValueError)
    assert lake.looked(owner) == [""]
    assert lake.looked(claim) == [""]


FAILS = {
    "a token that has expired": AccessDeniedError("the token has expired"),
    "a store that is away": UnavailableError("the store is away"),
    "what nobody foresaw": ValueError("?"),
}


def failing(lake: Lake, monkeypatch: pytest.MonkeyPatch, error: Exception, below: str = "") -> None:
    """From now on the credentials of others fail, which are asked at one and the same place."""

    def fails(location: str, options: Mapping[str, str]) -> Storage:
        if location == f"{lake.base}{below}":
            raise error
        return open_storage(location, options)

    monkeypatch.setattr(claims, "open_storage", fails)


@pytest.mark.parametrize("error", FAILS.values(), ids=FAILS)
def test_who_was_seen_with_a_table_there_keeps_the_place_while_its_credentials_fail(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    owner, stranger = lake.apply(GOOD), lake.apply(OTHER)
    lake.make()
    assert lake.looked(owner, stranger) == ["", "good/flights has its table there"]
    with monkeypatch.context() as changes:
        failing(lake, changes, error, "/flights")
        assert lake.looked(stranger) == ["good/flights has its table there"]
    assert lake.looked(owner, stranger) == ["", "good/flights has its table there"]


def test_a_secret_that_is_made_anew_costs_nobody_his_place(lake: Lake) -> None:
    owner, stranger = lake.apply(GOOD), lake.apply(OTHER)
    lake.make()
    assert lake.looked(owner) == [""]
    lake.apply(GOOD, storage=NOWHERE)
    assert lake.looked(owner, stranger) == ["InvalidSpec", "good/flights has its table there"]
    assert lake.looked(stranger) == ["good/flights has its table there"], "its own status still says so"


@pytest.mark.parametrize("error", FAILS.values(), ids=FAILS)
def test_who_never_saw_a_table_there_keeps_nobody_from_it_whatever_fails(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    lake.apply(OTHER)
    owner = lake.apply(GOOD)
    lake.make()
    failing(lake, monkeypatch, error, "/flights")
    assert lake.looked(owner) == [""]


def test_a_table_that_was_seen_elsewhere_gives_no_claim_to_the_place_that_a_manifest_names_now(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim, owner = lake.apply(OTHER, "/theirs"), lake.apply(GOOD)
    lake.make("/theirs")
    lake.make()
    reconciler = Reconciler(lake.cluster, LocalLauncher(lake.folder / "attempts"), lake.clock)
    reconciler.reconcile(claim)
    document = lake.cluster.get(claim)
    assert document is not None
    assert document["status"]["tableLocation"] == f"{lake.base}/theirs"
    lake.apply(OTHER, "/flights", storage=NOWHERE)
    failing(lake, monkeypatch, AccessDeniedError("no"), "/flights")
    assert lake.looked(claim, owner) == ["InvalidSpec", ""]


def test_a_table_that_is_gone_is_not_taken_for_there(lake: Lake) -> None:
    owner = lake.apply(GOOD)
    lake.apply(OTHER)
    lake.make()
    assert lake.looked(owner) == [""]
    storage = open_storage(f"{lake.base}/flights")
    for each in list(storage.list()):
        storage.delete(each.path)
    lake.looked(owner)
    document = lake.cluster.get(owner)
    assert document is not None
    assert "tableLocation" not in document["status"]
