"""Weigh the result of a case: the level of its promise, and the known bugs of its kernel."""

from __future__ import annotations

from collections.abc import Collection

from msgspec.structs import replace

from conformance.abi.profile import Profile
from conformance.abi.switch import Kind, Switch
from conformance.abi.switches import BY_NAME
from conformance.cases.case import Case
from conformance.results.case_result import CaseResult, Mismatch, Report
from conformance.results.outcome import LOST, OUTCOME_OF, Blame, Level, Outcome

# Fields of mismatches that are answers to the operations of a case.  A deviation elsewhere, such as
# a kernel report, and memory that is overwritten are a FAIL at every level.
_ANSWERS = frozenset({"errno", "value", "data", "memory", "literal"})
_SUCCESS = "success"
_NO_DOCUMENT = "no documentation names the errno"


def outcome_of_switch(switch: Switch, level: Level, *, measured: bool) -> Outcome:
    """The outcome of a contradicted switch, given the level of the case about it.

    A dated fact of the base fails no run.  A bug that is back is at most CHANGED: which stable
    releases have a fix is the least certain of all dates.
    """
    if switch.bug:
        return Outcome.FIXED if measured else OUTCOME_OF[level.at_most(Level.BEHAVIOUR)]
    return Outcome.NOTE if switch.kind is Kind.BASE else OUTCOME_OF[level]


def own_switches(case: Case, dated: Profile) -> frozenset[str]:
    """Switches in which a case is judged by its profile, whatever was measured.

    They are the switch that the case is about, and bugs that its kernel should not have: the case
    shows the deviation.  A bug that the kernel should have may be fixed.
    """
    return frozenset(
        name
        for name in (case.switch, *case.bugs)
        if name and (dated.has(name) or not BY_NAME[name].bug)
    )


def graded(
    result: CaseResult, case: Case, dated: Profile, contradicted: Collection[str]
) -> CaseResult:
    """The result as it counts: CHANGED or NOTE for FAIL, XFAIL or FIXED if a known bug decides.

    A contract case about a refusal is behaviour as to an errno that its documentation does not
    name.  ``dated`` is the profile of the run, ``contradicted`` the bugs in which the kernel was
    measured to differ from it: they are fixed, or back.  A bug without fingerprints concerns the
    variants whose literals depended on it, which ``result`` names, as it names bugs that show by
    chance.
    """
    shown = result.bug.split()
    result = replace(result, bug="")
    known = [
        bug
        for bug in map(BY_NAME.__getitem__, case.bugs)
        if not dated.has(bug.name) and (bug.fingerprints or bug.name in shown)
    ]
    by_chance = [bug for bug in map(BY_NAME.__getitem__, shown) if bug.by_chance]
    if known:
        result = _with_known_bugs(result, known, contradicted)
    if by_chance and result.outcome is Outcome.PASS:
        return _as(result, Outcome.XFAIL, by_chance)
    if result.outcome is not Outcome.FAIL or not all(map(_is_answer, result.mismatches)):
        return result
    outcome = OUTCOME_OF[case.level]
    if case.switch and BY_NAME[case.switch].kind is Kind.BASE:
        outcome = Outcome.NOTE
    elif not own_switches(case, dated).isdisjoint(contradicted):
        outcome = OUTCOME_OF[case.level.at_most(Level.BEHAVIOUR)]
    elif result.mismatches and all(_refused_otherwise(m, case.doc) for m in result.mismatches):
        outcome = OUTCOME_OF[case.level.at_most(Level.BEHAVIOUR)]
        if case.level is Level.CONTRACT:
            return replace(result, outcome=outcome, reason=f"{result.reason} ({_NO_DOCUMENT})")
    return replace(result, outcome=outcome)


def _with_known_bugs(
    result: CaseResult, known: Collection[Switch], fixed: Collection[str]
) -> CaseResult:
    """The result of a case whose answers, or reports, show bugs that the kernel may have."""
    reporting = [bug for bug in known if bug.fingerprints]
    seen = [bug for bug in reporting if any(_of(bug, each) for each in result.reports)]
    counted = [each for each in result.reports if not each.allowed]
    if result.outcome in LOST | {Outcome.FAIL}:
        explained = counted and all(any(_of(bug, each) for bug in seen) for each in counted)
        return _as(result, Outcome.XFAIL, seen) if explained else result
    if result.outcome is not Outcome.PASS:
        return result
    present = [bug for bug in known if bug not in reporting and bug.name not in fixed]
    if present:
        return _as(result, Outcome.XFAIL, present)
    return _as(result, Outcome.FIXED, known)


def _as(result: CaseResult, outcome: Outcome, bugs: Collection[Switch]) -> CaseResult:
    ids = " ".join(bug.name for bug in bugs)
    symptoms = "; ".join(f"{bug.name}: {bug.says}" for bug in bugs)
    word = "known bug" if outcome is Outcome.XFAIL else "this kernel does not have the known bug"
    return replace(
        result, outcome=outcome, blame=Blame.KERNEL, reason=f"{word} {symptoms}", bug=ids
    )


def _of(bug: Switch, report: Report) -> bool:
    """Whether a kernel report is that of a bug: whole functions of the fingerprint match."""
    return any(f"{report.fingerprint}/".startswith(f"{each}/") for each in bug.fingerprints)


def _is_answer(mismatch: Mismatch) -> bool:
    field = mismatch.field.partition(" ")[0]
    return field in _ANSWERS and not (field == "memory" and _is_corrupted(mismatch))


def _refused_otherwise(mismatch: Mismatch, doc: str) -> bool:
    """Whether a call fails as it has to, with an errno that the documentation does not name."""
    errnos = mismatch.allowed, mismatch.observed
    return mismatch.field == "errno" and _SUCCESS not in errnos and mismatch.allowed not in doc


def _is_corrupted(mismatch: Mismatch) -> bool:
    """Whether memory of the program differs in more than one bit.

    An enable bit in the wrong state is an answer; anything else must never be written.
    """
    try:
        allowed, observed = map(bytes.fromhex, (mismatch.allowed, mismatch.observed))
    except ValueError:
        # Memory that cannot be read.
        return False
    differing = (one ^ other for one, other in zip(allowed, observed, strict=False))
    return sum(byte.bit_count() for byte in differing) > 1
