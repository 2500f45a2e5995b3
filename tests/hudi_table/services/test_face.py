"""One face: a service has the same noun in Python, in hudictl, as a TableService and on its page,
and the verbs that these say."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from hudi_operator.api.service import PLANNED
from hudi_table.api import HudiTable, open_table
from hudi_table.cli.program import main
from hudi_table.cli.service_verbs import SERVICE_VERBS
from hudi_table.errors import InvalidOptionError, InvalidRequestError, WriteConflictError
from hudi_table.model.service.services import ServicePlan, ServiceResult, ServiceType
from hudi_table.services.base import ScheduledService, Service
from tests.support.written import INDEXES, contents, new_table, rows

(PAGE,) = (Path(__file__).resolve().parents[3] / "docs").rglob("services.md")
NOUNS = {kind.noun: kind for kind in ServiceType}
STORED = {*PLANNED, ServiceType.RESIZE}
"""Types that a TableService plans in one run and executes in another, and the one whose plan is
approved before."""
ROW = r"^\| `services\.(\w+)[`(][^|]*\| `(\w+)` \| (?:`hudictl ([\w-]+)[^|]*`|–) \| [^|]* \| ([^|]*) \|$"
"""Of the page's table: noun, type, verb of hudictl, verbs."""
VERBS = ("plan", "schedule", "pending", "execute", "run")


@pytest.fixture
def table() -> HudiTable:
    """Keys a in x and b in y, each with two logs."""
    made = new_table(index=INDEXES["bucket"], type="MergeOnRead")
    made.insert(rows(("a", "x", 1), ("b", "y", 2)))
    for value in (10, 11):
        made.upsert(rows(("a", "x", value), ("b", "y", value)))
    return made


def services(table: HudiTable) -> dict[str, Service]:
    return vars(table.services)


def verbs(service: object) -> tuple[str, ...]:
    return tuple(name for name in VERBS if hasattr(service, name))


def test_every_type_of_a_table_service_is_a_noun_of_the_table(table: HudiTable) -> None:
    assert {noun: service.type for noun, service in services(table).items()} == NOUNS


def test_those_with_a_stored_plan_can_be_scheduled_and_the_others_cannot(table: HudiTable) -> None:
    for noun, service in services(table).items():
        stored = NOUNS[noun] in STORED
        assert isinstance(service, ScheduledService) == stored, noun
        assert verbs(service) == (VERBS if stored else ("plan", "execute", "run")), noun


def test_the_page_says_the_nouns_and_their_verbs(table: HudiTable) -> None:
    part = PAGE.read_text().partition("## In Python")[2].partition("\n## ")[0]
    said = re.findall(ROW, part, re.MULTILINE)
    assert {noun: kind for noun, kind, _, _ in said} == {noun: kind.value for noun, kind in NOUNS.items()}
    for noun, _, verb, text in said:
        assert tuple(re.findall(r"`(\w+)`", text)) == verbs(services(table)[noun]), noun
        assert (noun in SERVICE_VERBS[verb].nouns) if verb else not ran_by(noun), noun


def ran_by(noun: str) -> list[str]:
    return [name for name, verb in SERVICE_VERBS.items() if noun in verb.nouns]


def test_a_verb_of_hudictl_runs_services_of_the_table_and_no_two_run_the_same() -> None:
    nouns = [noun for verb in SERVICE_VERBS.values() for noun in verb.nouns]
    assert len(nouns) == len(set(nouns))
    assert set(nouns) <= set(NOUNS)


def test_hudictl_takes_the_noun_for_the_verb(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base = str(tmp_path / "t")
    new_table(base, index=INDEXES["bucket"], type="MergeOnRead").upsert(rows(("a", "x", 1)))
    for name, verb in SERVICE_VERBS.items():
        for noun in verb.aliases(name):
            assert main([noun, base]) == main([name, base]), noun
    open_table(base).upsert(rows(("a", "x", 2)))
    open_table(base).upsert(rows(("a", "x", 3)))
    capsys.readouterr()
    assert main(["log-compaction", base, "--now"]) == 0
    assert "logs compacted" in capsys.readouterr().out


SHORT: dict[str, tuple[Callable[[HudiTable], object], Callable[[HudiTable], object]]] = {
    "compact": (lambda t: t.compact(force=True), lambda t: t.services.compaction(force=True).run()),
    "compact_logs": (lambda t: t.compact_logs(force=True), lambda t: t.services.log_compaction(force=True).run()),
    "cluster": (lambda t: t.cluster(force=True), lambda t: t.services.clustering(force=True).run()),
    "plan_clean": (lambda t: t.plan_clean(), lambda t: t.services.cleaning(force=True).plan()),
    "clean": (lambda t: t.clean(force=True), lambda t: t.services.cleaning(force=True).run()),
    "resize_buckets": (lambda t: [t.resize_buckets(4)], lambda t: t.services.resize(4).run()),
    "plan_resize": (lambda t: t.plan_resize(4), lambda t: t.services.resize(4).plan()),
    "savepoint": (lambda t: [t.savepoint()], lambda t: t.services.savepoint.run()),
}


@pytest.mark.parametrize("call", SHORT)
def test_a_short_call_is_the_service(call: str) -> None:
    """Two tables of one history answer alike, or refuse alike."""
    said: list[object] = []
    for ask in SHORT[call]:
        made = new_table(index=INDEXES["bucket"], type="MergeOnRead")
        made.insert(rows(("a", "x", 1)))
        made.upsert(rows(("a", "x", 2)))
        made.upsert(rows(("a", "x", 3)))
        try:
            found = ask(made)
        except InvalidRequestError as error:
            said.append(type(error).__name__)
            continue
        said.append(shape(found))
    assert said[0] == said[1]


def shape(found: object) -> object:
    """What does not differ by instants, moments and drawn names."""
    if isinstance(found, list):
        return [(done.service, sorted(done.figures), done.replayed) for done in found]
    if isinstance(found, ServicePlan):
        return (found.service, found.file_groups, found.files_before, found.files_after)
    return found


def test_all_results_are_of_one_type(table: HudiTable) -> None:
    done = [*table.compact_logs(force=True), *table.compact(force=True), table.savepoint(), table.resize_buckets(4)]
    done += table.services.repair.run()
    assert {type(result) for result in done} == {ServiceResult}
    assert [result.service.noun for result in done] == ["log_compaction", "compaction", "savepoint", "resize", "repair"]


def test_a_dry_run_is_executed_as_it_was_shown(table: HudiTable) -> None:
    service = table.services.compaction(force=True)
    plan = service.plan()
    assert plan is not None
    before = contents(table)
    done = service.execute(plan)
    assert done.figures["fileGroups"] == plan.file_groups
    assert contents(table) == before
    assert service.execute(plan).replayed, "its instant is found by its digest"
    assert service.pending() == []


def test_a_dry_run_that_no_longer_holds_is_refused(table: HudiTable) -> None:
    service = table.services.compaction(force=True)
    plan = service.plan()
    assert plan is not None
    table.upsert(rows(("a", "x", 12)))
    with pytest.raises(WriteConflictError, match="has changed since the plan was made"):
        service.execute(plan)
    kept = table.services.savepoint
    shown = kept.plan()
    assert shown is not None
    table.upsert(rows(("c", "x", 13)))
    with pytest.raises(WriteConflictError, match="the table has moved since"):
        kept.execute(shown)
    assert table.savepoints() == []


def test_a_plan_without_instant_and_digest_is_refused_by_name(table: HudiTable) -> None:
    with pytest.raises(InvalidRequestError, match="neither an instant nor a digest"):
        table.services.compaction.execute(ServicePlan(ServiceType.COMPACTION, "made up"))


def test_a_service_whose_value_is_missing_says_what_it_needs(table: HudiTable) -> None:
    with pytest.raises(InvalidOptionError, match="a resize needs"):
        table.services.resize.plan()
    with pytest.raises(InvalidRequestError, match="is no write on the timeline"):
        table.services.rollback("20200101000000000").plan()


def test_a_service_refuses_options_that_describe_another_table(table: HudiTable) -> None:
    for noun in ("compaction", "clustering", "cleaning", "archiving", "partition_ttl"):
        with pytest.raises(InvalidOptionError, match=r"hoodie\.table\.name=other contradicts the table"):
            getattr(table.services, noun)({"hoodie.table.name": "other"})


def test_a_table_of_a_past_moment_has_no_services(table: HudiTable) -> None:
    instant = table.savepoint().instant
    past = open_table(table.base_path, as_of=instant)
    with pytest.raises(InvalidRequestError, match="opened as of a past moment"):
        _ = past.services
