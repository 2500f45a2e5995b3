"""Faults of rollbacks and restores: live writers that are taken back, dead ones that come back."""

from __future__ import annotations

from tests.museum.mutant import Mutant

MUTANTS = (
    Mutant(
        name="a rollback does not look whether the write has committed meanwhile",
        bug="#7826",
        file="table/commit/recovery.py",
        old="return _finish_commit(recovery, instant, decision[1], rollback)",
        new="return roll_back(ctx, recovery.timeline, instant, over=True)",
        test="hudi_table/table/commit/test_guards.py::test_with_the_guard_the_scenario_holds[chain scan in recovery]",
    ),
    Mutant(
        name="heartbeats of a live writer are not looked at",
        bug="#3956",
        file="table/commit/recovery.py",
        old='signs.append(ctx.storage.head(f"{HEARTBEAT}/{time}").modified)',
        new="pass",
        test="hudi_table/table/commit/test_recovery.py::test_a_long_write_shows_signs_of_life_and_is_left_alone",
    ),
    Mutant(
        name="a writer that has just begun is taken for failed",
        bug="#3956",
        file="table/commit/recovery.py",
        old="return (now - max(signs)).total_seconds() >= ctx.settings.suspect_after_seconds",
        new="return (now - max(signs)).total_seconds() >= 0",
        test="hudi_table/table/commit/test_recovery.py::test_a_young_pending_write_is_left_alone",
    ),
    Mutant(
        name="files are deleted before anybody has decided that their writer failed",
        bug="RFC-79",
        file="table/commit/recovery.py",
        old="entry = _decide_dead(ctx, instant.time)\n",
        new='entry = ChainEntry(Kind.ABORT, instant.time, "recovery")\n',
        test="hudi_table/table/commit/test_protocol_trace.py::test_every_call_of_a_recovery_is_an_enabled_step",
    ),
    Mutant(
        name="two recoveries make two rollbacks of one write",
        bug="#7469",
        file="table/commit/rollback.py",
        old="            delete_claim(ctx, timeline, other.instant)\n    return only",
        new="            pass\n    return only",
        test="hudi_table/table/commit/test_failed_writes.py::test_two_recoveries_that_find_two_rollbacks_of_one_write_end_with_one_at_any_interleaving",
    ),
    Mutant(
        name="two rollbacks have one instant",
        bug="#4227",
        file="table/commit/rollback.py",
        old="if not load_timeline(ctx).shares(rollback):",
        new="if rollback:",
        test="hudi_table/table/commit/test_recovery.py::test_a_rollback_whose_instant_another_claims_at_the_same_moment_takes_the_next",
    ),
    Mutant(
        name="a claim that comes late to an archived commit stays for ever",
        bug="#7826",
        file="table/commit/recovery.py",
        old="    if not recovery.is_late(instant):\n        return []\n    delete_claim(recovery.ctx, recovery.timeline, instant)\n    return [instant.time]",
        new="    return []",
        test="hudi_table/table/commit/test_recovery.py::test_a_late_claim_of_an_archived_commit_loses_only_its_claim_file",
    ),
    Mutant(
        name="a commit that another engine is taking back is published again",
        bug="RFC-79",
        file="table/commit/publish.py",
        old="if entry.kind is Kind.COMMIT and entry.instant in open_rollbacks(ctx, timeline):",
        new="if False:",
        test="hudi_table/services/test_planning.py::test_a_write_that_another_engine_has_begun_to_take_back_is_not_published_again",
    ),
    Mutant(
        name="what a restore has begun and not ended stays",
        bug="HUDI-5349",
        file="table/commit/undo.py",
        old="        carry_out(ctx, planned_undo(ctx, instant))\n    return bool(waiting)",
        new="        planned_undo(ctx, instant)\n    return False",
        test="hudi_table/services/test_restore.py::test_writers_finish_a_restore_that_was_decided_before_they_begin",
    ),
    Mutant(
        name="a write that was rolled back comes back by the late claim of a paused process",
        bug="RFC-91",
        file="table/commit/undo.py",
        old="        _abort(ctx, target.time)\n    timeline = load_timeline(ctx)",
        new="        pass\n    timeline = load_timeline(ctx)",
        test="hudi_table/services/test_rollback.py::test_a_late_claim_of_a_write_that_was_taken_back_does_not_bring_it_back",
    ),
    Mutant(
        name="a rollback takes back a write whose superseded files were cleaned",
        bug="HUDI-5881",
        file="services/restoring/plan.py",
        old="        check_what_comes_back(view, target, metadata)\n",
        new="",
        test="hudi_table/services/test_rollback.py::test_a_write_before_which_files_were_cleaned_is_not_rolled_back",
    ),
    Mutant(
        name="a restore goes past what is pending after its savepoint",
        bug="HUDI-4501",
        file="services/restoring/plan.py",
        old="if pending and not (writers_stopped or dry):",
        new="if False:",
        test="hudi_table/services/test_restore.py::test_a_restore_without_confirmation_waits_for_the_quarantine_and_for_what_is_pending",
    ),
)
