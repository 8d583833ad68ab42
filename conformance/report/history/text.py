"""The history of a case or a kernel as text; its last line is the conclusion."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from conformance.report.history.changes import CaseHistory, KernelHistory, OutcomeChange, RunChanges
from conformance.results.outcome import Outcome
from host.text import counted, first, one_line, wrapped

WIDTH = 78
# Cases that are named for one change.
_MOST = 12
_INDENT = 4
# Why a change of outcome is not the kernel's, by whether the suite is "-dirty".
_WHY = {
    False: "same build and suite",
    True: "same build; the suite may have changed: it had uncommitted changes",
}
# Maximal columns of a release and of a kernel id.
_COLUMN = 28


def render_case(past: CaseHistory) -> str:
    """The kernels that ran the case, unchanged ones first."""
    plain = [each for each in past.kernels if each.plain]
    others = [each for each in past.kernels if not each.plain]
    lines = [*_table(plain), ""] if plain else []
    if others:
        about = "changed kernels, or judged by another ABI: not evidence about their release"
        lines += [about, *_table(others), ""]
    for one, other in past.suite_differs:
        sides = [f"{past.named(each)} by suite {each.suite}" for each in (one, other)]
        lines += _wrapped(f"judged by two revisions of the suite: {one_line(', '.join(sides))}")
    last = _wrapped(f"uevt: {past.case}: {one_line(past.sentence)}")
    return "\n".join([*lines, *last]) + "\n"


def render_variants(pasts: Sequence[CaseHistory]) -> str:
    """Several cases, grouped by conclusion."""
    by_sentence: dict[str, list[str]] = {}
    for past in pasts:
        by_sentence.setdefault(past.sentence, []).append(past.case)
    lines: list[str] = []
    for sentence, cases in sorted(by_sentence.items()):
        lines += _wrapped(f"{one_line(sentence)} ({len(cases)})")
        lines += _wrapped(", ".join(cases), 2, 0)
    return "\n".join(lines) + "\n"


def render_kernel(name: str, past: Sequence[RunChanges]) -> str:
    """The runs of a kernel, and the cases that changed between them."""
    lines: list[str] = []
    for each in past:
        lines += _run(each)
    changes = sum(bool(each.changes) for each in past)
    flaky = {change.case for each in past for change in each.changes if change.flaky}
    total = f"{counted(len(past), 'run')}, outcomes changed in {changes}"
    total += f", {counted(len(flaky), 'case')} flaky" if flaky else ""
    return "\n".join([*lines, "", *_wrapped(f"uevt: {one_line(name)}: {total}")]) + "\n"


def _table(kernels: Sequence[KernelHistory]) -> list[str]:
    """One line for each kernel, continued in its last column."""
    names = [(one_line(each.kernel.release), one_line(each.kernel.id)) for each in kernels]
    left, right = (min(_COLUMN, max(map(len, column))) for column in zip(*names, strict=True))
    lines = []
    for (release, name), each in zip(names, kernels, strict=True):
        text = f"{release:<{left}}  {name:<{right}}  {_outcome_of(each)}"
        lines += wrapped(text, indent=2, hanging=left + 2, width=WIDTH)
    return lines


def _outcome_of(past: KernelHistory) -> str:
    """The outcome, and the ABI if it is not that of the kernel."""
    kernel = past.kernel
    return _came_to(past) + ("" if past.usual else f" (judged as {one_line(kernel.profile)})")


def _came_to(past: KernelHistory) -> str:
    if past.tally.disagree:
        return f"flaky: {past.tally} runs of one build"
    last = past.stretches[-1]
    text = f"{last.outcome} in {counted(len(last.runs), 'run')}"
    if len(past.stretches) > 1:
        before = past.stretches[-2]
        text += f" since {_day(last.runs[0].head.started)}, {before.outcome} before"
    else:
        text += f", last {_day(last.runs[-1].head.started)}"
    shown = last.reason and last.outcome is not Outcome.PASS
    return text + (f": {one_line(last.reason)}" if shown else "")


def _run(past: RunChanges) -> list[str]:
    run, head = past.run, past.run.head
    counts = ", ".join(f"{number} {outcome}" for outcome, number in past.counts.items() if number)
    release, found = one_line(head.kernel.release), counts or "no case"
    heading = f"{_time(head.started)}  {release} {run.verdict}: {found}"
    place = f"in {one_line(str(run.path))}, suite {one_line(head.suite)}, {head.host['accel']}"
    lines = [*wrapped(heading, hanging=2, width=WIDTH), *_wrapped(place, _INDENT)]
    news = [] if past.same_kernel else ["another build, or judged by another ABI"]
    news += [] if past.same_suite else ["another revision of the suite"]
    news += [f"{counted(past.new_cases, 'case')} for the first time"] if past.new_cases else []
    lines += _wrapped("; ".join(news), _INDENT) if news else []
    changes = sorted(past.changes, key=_key_of)
    for (was, now, flaky), group in groupby(changes, key=_key_of):
        names = first([change.case for change in group], _MOST, "and {} more (--json has all)")
        why = f" (flaky: {_WHY[head.suite.endswith('-dirty')]})" if flaky else ""
        lines += _wrapped(f"{was} -> {now}{why}: {', '.join(names)}", _INDENT)
    return lines


def _key_of(change: OutcomeChange) -> tuple[Outcome, Outcome, bool]:
    return change.was, change.now, change.flaky


def _day(started: str) -> str:
    return one_line(started)[:10]


def _time(started: str) -> str:
    return one_line(started)[:16].replace("T", " ")


def _wrapped(text: str, indent: int = 0, hanging: int = 2) -> list[str]:
    return wrapped(text, indent=indent, hanging=hanging, width=WIDTH)
