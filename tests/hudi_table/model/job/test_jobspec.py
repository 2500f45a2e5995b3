"""`JobResult.within`: whatever a job has to say fits the room that Kubernetes gives it, and is
still a result."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import given

from hudi_table.model.job.jobspec import JobResult

ROOM = 4096
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=3_000)
results = st.builds(
    JobResult,
    attempt=st.just("flights-feed-3f2a91bc-g2-1"),
    outcome=st.sampled_from(["Succeeded", "Failed", "NothingToDo"]),
    error_class=st.sampled_from(["", "CommitStateUnknown"]),
    message=texts,
    instants=st.lists(st.just("20260101000000000"), max_size=300).map(tuple),
    figures=st.dictionaries(st.text("abc", max_size=8), st.floats(0, 1e12), max_size=5),
    checkpoint=texts,
    plan=st.one_of(
        st.just({}),
        st.fixed_dictionaries({"digest": st.just("3f2a91bc00112233"), "details": st.lists(texts, max_size=5)}),
    ),
    index=st.one_of(
        st.just({}), st.fixed_dictionaries({"type": st.just("Bloom"), "advice": st.lists(texts, max_size=3)})
    ),
)


@given(results)
def test_a_result_of_any_size_fits_and_keeps_what_decides(result: JobResult) -> None:
    found = result.within(ROOM)
    assert len(found.to_json().encode()) <= ROOM
    kept = JobResult.from_json(found.to_json())
    assert (kept.attempt, kept.outcome, kept.error_class) == (result.attempt, result.outcome, result.error_class)
    assert kept.instants[-1:] == result.instants[-1:]
    assert result.message.startswith(kept.message)


@given(results)
def test_one_that_fits_stays_as_it_is(result: JobResult) -> None:
    assert result.within(1 << 20) == result


def test_details_of_a_plan_go_before_the_message_does() -> None:
    plan = {"digest": "3f2a91bc00112233", "details": ["2013/01: 4 files"] * 300}
    found = JobResult("a", "Succeeded", message="what was done", plan=plan).within(ROOM)
    assert (found.message, found.plan) == ("what was done", {"digest": "3f2a91bc00112233", "details": []})


def test_advice_goes_before_the_details_of_a_plan_do() -> None:
    index = {"type": "Bloom", "advice": ["x" * ROOM]}
    plan = {"digest": "3f2a91bc00112233", "details": ["2013/01: 4 files"] * 30}
    found = JobResult("a", "Succeeded", message="what was done", plan=plan, index=index).within(ROOM)
    assert (found.message, found.plan, found.index) == ("what was done", plan, {})
