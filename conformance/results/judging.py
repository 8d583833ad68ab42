"""From the results of a case's runs to its final result, and from results to a verdict."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from conformance.results.case_result import CaseResult, Rerun, Which
from conformance.results.contradiction import Contradiction
from conformance.results.outcome import LOST, Blame, Level, Outcome, RunVerdict, failing


def timed_out(*, answered_before: bool) -> tuple[Outcome, Blame]:
    """Outcome and blame of a case that did not end in time.

    The kernel is to blame only if the guest answered a health probe just before the case
    (``answered_before``); otherwise the guest was already lost.
    """
    return (Outcome.TIMEOUT, Blame.KERNEL) if answered_before else (Outcome.ERROR, Blame.GUEST)


def lost_guest(result: CaseResult) -> bool:
    """Whether the guest was lost, so that the case has to run again."""
    if result.outcome is Outcome.ERROR:
        # A kernel that crashed or hung during boot has reported it.
        unborn = result.blame is Blame.KERNEL and result.reports
        return bool(unborn) or result.blame in {Blame.HOST, Blame.GUEST}
    return result.outcome in LOST


def settle(first: CaseResult, second: CaseResult) -> CaseResult:
    """The final result of a case that ran twice, the second time on a new guest.

    CRASH and TIMEOUT are final: a race must not hide a panic.  After an ERROR of host or guest the
    second result is final, even if it is an ERROR again.  Otherwise the first result is final: the
    kernel's report counts even if the second run does not repeat it.  Raises ValueError for results
    of two cases, or a first result that needs no second run.
    """
    if first.id != second.id:
        raise ValueError(f"a re-run of {first.id} cannot be settled with {second.id}")
    if not (lost_guest(first) or first.has_unexcused_report):
        raise ValueError(f"{first.id} ended with {first.outcome}: its first result stands alone")
    if first.outcome is Outcome.ERROR:
        return replace(second, rerun=_other(first, Which.FIRST))
    return replace(first, rerun=_other(second, Which.SECOND))


def verdict_of(
    results: Iterable[CaseResult],
    contradictions: Sequence[Contradiction] = (),
    fail_on: Level = Level.CONTRACT,
) -> RunVerdict:
    """The verdict of a run with these results.

    A deviation of level ``fail_on`` or stronger makes the run FAIL, even if other cases have no
    result; a contradicted switch counts as the case about it would.  A run with errors, without a
    judged case, or in which only some guests had user_events, has no verdict (ERROR).
    """
    results = tuple(results)
    unbuilt = [each.not_built for each in results if each.had_a_guest]
    if unbuilt and all(unbuilt):
        return RunVerdict.NOT_BUILT
    outcomes = [each.outcome for each in results] + [each.outcome for each in contradictions]
    if not failing(fail_on).isdisjoint(outcomes):
        return RunVerdict.FAIL
    if any(unbuilt) or any(each.outcome is Outcome.ERROR for each in results):
        return RunVerdict.ERROR
    if all(each.outcome is Outcome.SKIP for each in results):
        return RunVerdict.ERROR
    return RunVerdict.PASS


def _other(result: CaseResult, which: Which) -> Rerun:
    return Rerun(result.outcome, result.blame, result.reason, which)
