"""A comparison as sections, in the order in which a maintainer asks; pages are made of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from conformance.expectations.loader import NOT_SEEN
from conformance.report.compare.compare import Change, Comparison
from conformance.report.compare.evidence import Evidence, cut, evidence_of, symptom
from conformance.report.compare.kinds import Kind
from conformance.results.case_result import UNEXPECTED, Outcome
from conformance.results.run import RunRecord
from host.text import one_line

# Of one kind so many are told; a kernel that breaks everything is read in its own report.
_MOST = 20
# Ids of cases of which there is no more to tell.
_MOST_IDS = 40
_TITLES = {
    Kind.BROKEN: "newly failing",
    Kind.WORSE: "failing, and now taking the guest with them",
    Kind.REWRITTEN: "newly failing, by programs that the suite has changed",
    Kind.UNEXPLAINED: "deviating as before, and no longer explained by an expectation",
    Kind.CHANGED: "failing in another way",
    Kind.REWORDED: "failing as before, with another text",
    Kind.STILL: "still failing",
    Kind.UNDECIDED: "judged before, and not now",
    Kind.EXPLAINED: "failing before, and now explained by an expectation",
    Kind.FIXED: "fixed",
    Kind.APPEARED: "not in the base run",
    Kind.VANISHED: "only in the base run",
    Kind.OTHERWISE: "with another outcome, right or known in both",
}
_SHORT = {
    Kind.BROKEN: "newly failing",
    Kind.WORSE: "worse",
    Kind.REWRITTEN: "failing with another program",
    Kind.UNEXPLAINED: "no longer explained",
    Kind.CHANGED: "failing otherwise",
    Kind.REWORDED: "changed in text only",
    Kind.UNDECIDED: "no longer judged",
    Kind.EXPLAINED: "newly explained",
    Kind.FIXED: "fixed",
    Kind.APPEARED: "new",
    Kind.VANISHED: "gone",
    Kind.OTHERWISE: "otherwise different",
}
# What was not so before is told with what shows it.
_SHOWN = frozenset({Kind.BROKEN, Kind.WORSE, Kind.REWRITTEN})
# Of these the ids say it.
_LISTED = frozenset({Kind.STILL, Kind.REWORDED})


@dataclass(frozen=True, slots=True)
class Item:
    """One case: what it was and is, and what shows it; ``alike`` are others that show the same."""

    id: str
    said: str
    evidence: Evidence = ()
    alike: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Section:
    """Cases of one kind; ``ids`` are told by name alone, ``notes`` are about the rest."""

    title: str
    items: tuple[Item, ...] = ()
    ids: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def head(title: str, record: RunRecord, runs: int) -> str:
    """One run in a line of any length."""
    kernel = record.head.kernel
    parts = [f"{record.count(Outcome.PASS)} passed", f"{record.count(Outcome.XFAIL)} known"]
    parts.append(f"{record.count(*UNEXPECTED)} unexpected")
    for what, number in (
        ("skipped", record.count(Outcome.SKIP)),
        ("undecided", record.count(Outcome.ERROR)),
        ("not run", record.missing),
    ):
        parts += [f"{number} {what}"] if number else []
    said = f"{one_line(kernel.id)} ({one_line(kernel.release) or one_line(kernel.profile)})"
    several = f" (one of {runs} runs of this kernel)" if runs > 1 else ""
    return f"{title:<5} {said} {record.verdict}: {', '.join(parts)}{several}"


def remarks(comparison: Comparison) -> Iterator[str]:
    """What is to be said before any case."""
    if comparison.unbuilt:
        yield "the new kernel has no user_events: no case was judged"
    for found, title in (
        (comparison.contradicted, "contradicts its profile, and did not"),
        (comparison.kept, "no longer contradicts its profile"),
    ):
        for each in found:
            yield f"{title}: {one_line(each.switch)} ({one_line(each.says)})"


def sections(comparison: Comparison) -> Iterator[Section]:
    """All that are not empty."""
    for kind in Kind:
        if found := comparison.of(kind):
            yield _section(kind, found)
        if kind is Kind.REWRITTEN and comparison.flaky:
            yield _flaky(comparison)


def sentence(comparison: Comparison) -> tuple[str, str, str]:
    """What it comes to: which kernels, the word, and the numbers."""
    base, new = comparison.base.head.kernel, comparison.new.head.kernel
    names = f"{one_line(new.id)} against {one_line(base.id)}"
    if base.id == new.id:
        names = f"{one_line(new.id)} {one_line(new.release)} against {one_line(base.release)}"
    still = len(comparison.still)
    same = f"{comparison.same - still} as before"
    if not comparison.different:
        also = f" ({still} of them failing in both)" if still else ""
        cases = f"{comparison.same} case{'s' * (comparison.same != 1)}"
        return names, "no difference", f" in {cases}{also}"
    word = "REGRESSION" if comparison.regression else "no regression"
    counted = Counter(change.kind for change in comparison.changes)
    parts = [f"{counted[kind]} {_SHORT[kind]}" for kind in Kind if counted[kind]]
    parts += [f"{len(comparison.flaky)} flaky"] if comparison.flaky else []
    parts += [f"{still} still failing"] if still else []
    if comparison.contradicted:
        number = len(comparison.contradicted)
        parts.insert(0, f"{number} switch{'' if number == 1 else 'es'} contradicted")
    if comparison.unbuilt:
        parts.insert(0, "no user_events")
    return names, word, f": {', '.join([*parts, same])}"


def _section(kind: Kind, changes: Sequence[Change]) -> Section:
    title = f"{_TITLES[kind]} ({len(changes)})"
    if kind in _LISTED:
        return Section(title, ids=_ids([change.id for change in changes]))
    told = [change for change in changes if _worth_telling(change)]
    rest = [change for change in changes if change not in told]
    items = _grouped(told) if kind in _SHOWN else [Item(each.id, _said(each)) for each in told]
    notes = _adapted(rest) if kind is Kind.OTHERWISE else _expected(rest)
    if len(items) > _MOST:
        left = sum(1 + len(item.alike) for item in items[_MOST:])
        notes = [f"and {left} more (--json has all)", *notes]
    return Section(title, tuple(items[:_MOST]), notes=tuple(notes))


def _flaky(comparison: Comparison) -> Section:
    items = [
        Item(
            each.id,
            f"base: {each.base}; new: {each.new}"
            + (" (a regression: the base's guests survived it)" if each.regression else ""),
        )
        for each in comparison.flaky
    ]
    more = [f"and {len(items) - _MOST} more (--json has all)"] if len(items) > _MOST else []
    title = f"flaky: runs of one kernel disagree ({len(items)})"
    return Section(title, tuple(items[:_MOST]), notes=tuple(more))


def _grouped(changes: Sequence[Change]) -> list[Item]:
    """Cases that fail for one reason are one item, the first of them with its evidence."""
    groups: dict[tuple[object, ...], list[Change]] = {}
    for change in changes:
        was = change.base.outcome if change.base else None
        groups.setdefault((was, *symptom(change.told, change.base)), []).append(change)
    return [
        Item(
            first.id,
            _outcomes(first),
            evidence_of(first.told, first.base),
            _ids([each.id + _second_run(each) for each in others]),
        )
        for first, *others in sorted(groups.values(), key=_severity)
    ]


def _severity(group: Sequence[Change]) -> tuple[bool, int]:
    """Whoever panics comes first, then what many cases show: it is nearest to the cause."""
    return group[0].told.outcome is not Outcome.CRASH, -len(group)


def _ids(ids: Sequence[str]) -> tuple[str, ...]:
    more = [f"and {len(ids) - _MOST_IDS} more (--json has all)"] if len(ids) > _MOST_IDS else []
    return (*ids[:_MOST_IDS], *more)


def _said(change: Change) -> str:
    reason = _reason(change)
    return _outcomes(change) + (f": {reason}" if reason else "")


def _outcomes(change: Change) -> str:
    base, new = change.base, change.new
    if base is None or new is None:
        return f"{change.told.outcome}{_second_run(change)}"
    said = f"{base.outcome} -> {new.outcome}{_second_run(change)}"
    if change.rewritten is None:
        return f"{said} (its programs differ: one ended early, or the suite changed it)"
    return f"{said} (program changed)" if change.rewritten else said


def _second_run(change: Change) -> str:
    said = ""
    for which, result in (("the base's", change.base), ("its", change.new)):
        if result is not None and result.rerun is not None:
            said += f" ({which} {result.rerun.of} run: {result.rerun.outcome})"
    return said


def _reason(change: Change) -> str:
    """Why the case is what it is; where it is right now, what was wrong with it."""
    base, new = change.base, change.new
    if new is not None and new.outcome is Outcome.XPASS:
        gone = "the known deviation is gone, so its expectation has to go"
        if base is not None and base.outcome is Outcome.PASS:
            gone = "an expectation says that it deviates"
        return f"{gone}: {cut(new.reason.removeprefix(NOT_SEEN))}"
    if change.kind is Kind.FIXED and base is not None and base.reason:
        return f"was {cut(base.reason)}"
    reason = cut(change.told.reason)
    if change.kind is Kind.CHANGED and base is not None and base.reason:
        return f"{reason}; was {cut(base.reason)}"
    return reason


def _worth_telling(change: Change) -> bool:
    if change.kind in (Kind.APPEARED, Kind.VANISHED):
        return change.told.unexpected or change.told.outcome is Outcome.ERROR
    return change.kind is not Kind.OTHERWISE or not _only_adapted(change)


def _only_adapted(change: Change) -> bool:
    return bool(
        change.base
        and change.new
        and change.base.outcome is change.new.outcome
        and change.new.outcome is not Outcome.SKIP
    )


def _adapted(changes: Sequence[Change]) -> list[str]:
    """Cases whose only difference is which switches they were judged with: there can be many."""
    counted = Counter(
        (change.base.adapted, change.new.adapted)
        for change in changes
        if change.base and change.new
    )
    return [
        f"{number} judged with other measured switches: {_names(now)}, before {_names(before)}"
        for (before, now), number in sorted(counted.items())
    ]


def _names(switches: Iterable[str]) -> str:
    return ", ".join(map(one_line, switches)) or "none"


def _expected(changes: Sequence[Change]) -> list[str]:
    """Of cases that are in one run only those that went as they should are counted."""
    if not changes:
        return []
    counted = Counter[str](change.told.surface for change in changes)
    said = ", ".join(f"{surface} {number}" for surface, number in sorted(counted.items()))
    return [f"{len(changes)} as expected: {said}"]
