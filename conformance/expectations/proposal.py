"""What runs suggest for the expectations: tables to add, to narrow, and to take out.

Only what every run of a kernel shows alike is proposed.  A crash, a time-out, a complaint on the
console, an error and what is flaky are never explained away; nor is what a patched kernel shows,
for a condition cannot name a patch.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from conformance.expectations.condition import Comparison, Condition, KernelContext
from conformance.expectations.generalising import covering, narrowed
from conformance.expectations.loader import TODO, Expectation
from conformance.expectations.review import Ran, Use, fixed_by, use_of
from conformance.results.case_result import Blame, CaseResult, Mismatch, Outcome

_VARYING = (
    (re.compile(r"\b([tT])\d+_"), r"\1\\d+_"),
    (re.compile(r"\b0x[0-9a-f]+"), "0x[0-9a-f]+"),
)
_SPECIAL = re.compile(r"[.^$*+?{}\[\]\\|()]")
_RIGHT = frozenset({Outcome.PASS, Outcome.XPASS})
_DEVIATES = frozenset({Outcome.FAIL, Outcome.XFAIL})


@dataclass(frozen=True, slots=True)
class Kernel:
    """One kernel and its runs; of a ``changed`` one nothing follows for a release."""

    name: str
    runs: tuple[Ran, ...]
    changed: bool = False


@dataclass(frozen=True, slots=True)
class Addition:
    """A table to be added; a person has to write its reason."""

    case: str
    steps: tuple[int, ...]
    field: str
    pattern: str
    when: str

    @property
    def reason(self) -> str:
        """What the loader refuses."""
        return f"{TODO}: why the kernel deviates here, and who knows of it"


@dataclass(slots=True)
class Proposal:
    """All that is to be done; ``narrowed`` has new conditions, ``notes`` why cases are left out."""

    added: list[Addition] = field(default_factory=list)
    narrowed: list[tuple[Expectation, str]] = field(default_factory=list)
    removed: list[Expectation] = field(default_factory=list)
    notes: dict[str, list[str]] = field(default_factory=dict)

    def leave_out(self, why: str, what: str) -> None:
        """Nothing is proposed for a case, or a kernel."""
        self.notes.setdefault(why, []).append(what)


def pattern_of(observed: str) -> str:
    """A regular expression for what was observed, whatever a run calls its events."""
    text = _SPECIAL.sub(r"\\\g<0>", observed).replace("\n", r"\n").replace("\t", r"\t")
    for varying, stands_for in _VARYING:
        text = varying.sub(stands_for, text)
    return text


def propose(
    entries: Sequence[Expectation],
    kernels: Sequence[Kernel],
    cases: Collection[str],
    known: Callable[[Condition], Sequence[KernelContext]],
    fixes: Mapping[str, str],
) -> Proposal:
    """What the runs of some kernels suggest.

    ``cases`` are the ids of all functions and variants, ``known`` the kernels there are for a
    condition to fit; ``fixes`` names the switch that a commit of this title turns on.
    """
    found = Proposal()
    judged = []
    for kernel in kernels:
        if kernel.changed:
            found.leave_out("a condition cannot name what is added to a kernel", kernel.name)
        else:
            judged.append(kernel)
    for entry in entries:
        if entry.case not in cases:
            found.removed.append(entry)
        else:
            _reconsider(entry, judged, known, fixes, found)
    _explain(entries, judged, cases, found)
    return found


# Entries that there are


def _reconsider(
    entry: Expectation,
    kernels: Sequence[Kernel],
    known: Callable[[Condition], Sequence[KernelContext]],
    fixes: Mapping[str, str],
    found: Proposal,
) -> None:
    """Take an entry from the kernels that have its fix, or on which it covers nothing."""
    uses = {
        kernel.name: {use_of(entry, ran) for ran in kernel.runs} - {Use.NONE} for kernel in kernels
    }
    needless = {Use.GONE, Use.OTHERWISE}
    stale = [kernel for kernel in kernels if uses[kernel.name] and uses[kernel.name] <= needless]
    used = [kernel for kernel in kernels if uses[kernel.name] & {Use.COVERS, Use.PARTLY}]
    for kernel in kernels:
        if Use.PARTLY in uses[kernel.name]:
            why = f"on {kernel.name} some variants deviate and others do not; write their ids"
            found.leave_out(why, entry.case)
        elif uses[kernel.name] & needless and kernel not in stale:
            found.leave_out(f"flaky on {kernel.name}", entry.case)
    wanted, unwanted = _contexts(used, entry.case), _contexts(stale, entry.case)
    condition = entry.when
    if switch := fixed_by(entry, known(condition), fixes):
        unfixed = Condition((*condition.comparisons, Comparison("switch", "!=", switch)))
        condition = unfixed if all(map(unfixed.holds, wanted)) else condition
    mended = narrowed(condition, wanted, unwanted)
    if mended is None:
        names = ", ".join(kernel.name for kernel in stale)
        found.leave_out(f"no condition leaves out {names} alone; mend it by hand", entry.case)
    elif not wanted and unwanted and not any(map(mended.holds, known(mended))):
        found.removed.append(entry)
    elif mended != entry.when:
        found.narrowed.append((entry, str(mended)))


def _contexts(kernels: Iterable[Kernel], case: str) -> list[KernelContext]:
    """What conditions ask about kernels, as a case was judged on them."""
    return [
        ran.context(result)
        for kernel in kernels
        for ran in kernel.runs
        for id, result in ran.cases.items()
        if id == case or id.startswith(f"{case}.")
    ]


# What nobody has explained

# A field and a pattern, with the steps at which they were seen.
_Deviation = dict[tuple[str, str], frozenset[int]]


def _explain(
    entries: Sequence[Expectation],
    kernels: Sequence[Kernel],
    cases: Collection[str],
    found: Proposal,
) -> None:
    """Add a table for each way in which a case deviates, for all kernels that show it."""
    deviations: dict[str, dict[str, _Deviation]] = {}
    for case in sorted({id for kernel in kernels for ran in kernel.runs for id in ran.cases}):
        shown = {
            kernel.name: deviation
            for kernel in kernels
            if (deviation := _stable(case, kernel, entries, found)) is not None
        }
        if any(shown.values()):
            deviations[case] = shown
    told: set[str] = set()
    for case in deviations:
        family = _family(case, cases, kernels)
        alike = len(family) > 1 and all(deviations.get(id) == deviations[case] for id in family)
        subject = _function(case, cases) if alike else case
        if subject not in told:
            told.add(subject)
            found.added += _tables(subject, case, deviations[case], kernels, found)


def _tables(
    subject: str,
    case: str,
    shown: Mapping[str, _Deviation],
    kernels: Sequence[Kernel],
    found: Proposal,
) -> Iterator[Addition]:
    for key in sorted({key for deviation in shown.values() for key in deviation}):
        having = [kernel for kernel in kernels if key in shown.get(kernel.name, {})]
        # Also those on which it is flaky, or worse: no condition may mean them.
        lacking = [each for each in kernels if each not in having and _judged(case, each)]
        when = covering(_contexts(having, case), _contexts(lacking, case))
        if when is None:
            names = ", ".join(kernel.name for kernel in having)
            found.leave_out(f"no condition tells {names} from kernels that do not deviate", case)
            continue
        steps = frozenset[int]().union(*(shown[kernel.name][key] for kernel in having))
        yield Addition(subject, tuple(sorted(steps)), *key, when)


def _stable(
    case: str, kernel: Kernel, entries: Sequence[Expectation], proposal: Proposal
) -> _Deviation | None:
    """What nobody has explained of a case on a kernel; None where its runs do not say it alike."""
    judged = _judged(case, kernel)
    if not judged:
        return None
    unfit = next((why for ran, result in judged if (why := _unfit(ran, result))), None)
    if unfit is not None:
        proposal.leave_out(f"{unfit} on {kernel.name}, which no expectation explains", case)
        return None
    found = [_unexplained(ran, result, entries) for ran, result in judged]
    right = {result.outcome in _RIGHT for _, result in judged}
    if len(right) > 1 or any(each != found[0] for each in found):
        proposal.leave_out(f"flaky on {kernel.name}: {len(judged)} runs do not agree", case)
        return None
    return found[0]


def _judged(case: str, kernel: Kernel) -> list[tuple[Ran, CaseResult]]:
    """The runs of a kernel that judged a case."""
    results = [(ran, ran.cases[case]) for ran in kernel.runs if case in ran.cases]
    return [pair for pair in results if pair[1].outcome is not Outcome.SKIP]


def _unfit(ran: Ran, result: CaseResult) -> str | None:
    """Why a result is never to be expected, None where it may be."""
    if result.id in ran.contradicted:
        return "a contradicted switch, for which there is --abi,"
    if result.rerun is not None:
        return "run twice"
    if result.outcome in _RIGHT:
        return None
    if result.outcome not in _DEVIATES:
        return result.outcome.value
    if result.blame is not Blame.KERNEL:
        return f"FAIL with blame {result.blame}"
    if any(each.field == "console" for each in result.mismatches):
        return "a complaint on the console"
    return None if result.mismatches else "FAIL without a difference"


def _unexplained(ran: Ran, result: CaseResult, entries: Sequence[Expectation]) -> _Deviation:
    if result.outcome in _RIGHT:
        return {}
    context = ran.context(result)
    applicable = [each for each in entries if each.about(result.id) and each.when.holds(context)]
    steps: defaultdict[tuple[str, str], set[int]] = defaultdict(set)
    for mismatch in result.mismatches:
        if not any(each.covers(mismatch) for each in applicable):
            steps[_key(mismatch)].add(mismatch.step)
    return {key: frozenset(found) for key, found in steps.items()}


def _key(mismatch: Mismatch) -> tuple[str, str]:
    return mismatch.field.partition(" ")[0], pattern_of(mismatch.observed)


def _function(case: str, cases: Collection[str]) -> str:
    """The function of which a case is a variant; the case where it is none."""
    parts = case.split(".")
    prefixes = (".".join(parts[:number]) for number in range(2, len(parts)))
    return next((prefix for prefix in prefixes if prefix in cases), case)


def _family(case: str, cases: Collection[str], kernels: Sequence[Kernel]) -> set[str]:
    """The variants of a case's function that ran anywhere."""
    function = _function(case, cases)
    return {
        id
        for kernel in kernels
        for ran in kernel.runs
        for id in ran.cases
        if id == case or (function != case and id.startswith(f"{function}."))
    }
