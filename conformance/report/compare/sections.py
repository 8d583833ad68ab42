"""A comparison as sections, shared by the text and Markdown pages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from conformance.report.compare.compare import Change, Comparison
from conformance.report.compare.evidence import Evidence, brief, evidence_of, symptom_of
from conformance.report.compare.kinds import REGRESSIONS, Kind
from conformance.results.case_result import CaseResult
from conformance.results.outcome import CONFORMING, Level, Outcome
from conformance.results.run import RunRecord
from host.text import counted, first, one_line

# Follows a list that is cut.
_MORE = "and {} more (--json has all)"
# Items of one section; a kernel that breaks everything needs a report of its own.
_MOST = 20
# Ids in a list without details, and variants that conform.
_MOST_IDS = 40
_MOST_PASSING = 6
# Sections for each level.
_BY_LEVEL = frozenset(list(Kind)[: list(Kind).index(Kind.UNDECIDED)])
# Items with evidence.
_WITH_EVIDENCE = frozenset({Kind.BROKEN, Kind.WORSE, Kind.REWRITTEN})
# Sections of ids only.
_IDS_ONLY = frozenset({Kind.STILL, Kind.REWORDED})


class Item(Struct, frozen=True):
    """One case with its outcomes and evidence; ``alike`` are cases with the same symptom.

    ``passing`` are its other variants that conform, ``shown`` the result that the evidence is of.
    """

    id: str
    text: str
    evidence: Evidence = ()
    alike: tuple[str, ...] = ()
    passing: tuple[str, ...] = ()
    shown: CaseResult | None = None


class Section(Struct, frozen=True):
    """Cases of one kind; ``ids`` are listed without details, ``notes`` describe the rest."""

    title: str
    items: tuple[Item, ...] = ()
    ids: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def head(title: str, record: RunRecord, runs: int) -> str:
    """A run on one line of any length."""
    kernel = record.head.kernel
    name = f"{one_line(kernel.id)} ({one_line(kernel.release) or one_line(kernel.profile)})"
    several = f"one of {runs} runs of this kernel" if runs > 1 else ""
    notes = "".join(f" ({each})" for each in (record.share, several) if each)
    return f"{title:<5} {name} {record.verdict}: {', '.join(record.counts)}{notes}"


def remarks(comparison: Comparison) -> Iterator[str]:
    """Differences that concern the kernel as a whole."""
    if comparison.lost_user_events:
        yield "the new kernel has no user_events: no case was judged"
    if comparison.gained_user_events:
        yield "the base kernel has no user_events: there is nothing to compare with"
    for found, title in (
        (comparison.newly_contradicted, "newly contradicts its profile"),
        (comparison.no_longer_contradicted, "no longer contradicts its profile"),
    ):
        for each in found:
            states = "{} in the kernel, {} in its profile".format(*each.states)
            yield one_line(f"{title}: {each.outcome} {each.switch}, {states} ({each.says})")


def sections(comparison: Comparison) -> Iterator[Section]:
    """The sections that are not empty."""
    passing: dict[str, list[str]] = {}
    for case in comparison.new.cases:
        if case.outcome in CONFORMING and case.id != _function(case.id):
            passing.setdefault(_function(case.id), []).append(case.id)
    for kind in Kind:
        found = comparison.of(kind)
        if kind in _BY_LEVEL:
            for level in Level:
                if weighed := [each for each in found if each.weight is level]:
                    yield _section(kind, f"{kind.heading}: {level.words}", weighed, passing)
        elif found:
            yield _section(kind, kind.heading, found, passing)
        if kind is Kind.REWRITTEN and comparison.flaky:
            yield _flaky(comparison)


def sentence(comparison: Comparison) -> tuple[str, str, str]:
    """The conclusion: names of the kernels, verdict, and numbers."""
    base, new = comparison.base.head.kernel, comparison.new.head.kernel
    names = f"{one_line(new.id)} against {one_line(base.id)}"
    if base.id == new.id:
        names = f"{one_line(new.id)} {one_line(new.release)} against {one_line(base.release)}"
    still = len(comparison.still_failing)
    same = f"{comparison.same - still} as before"
    if not comparison.different:
        also = f" ({still} of them deviating in both)" if still else ""
        return names, "no difference", f" in {counted(comparison.same, 'case')}{also}"
    word = "REGRESSION" if comparison.regression else "no regression"
    if not comparison.regression and any(each.kind in REGRESSIONS for each in comparison.changes):
        word += f" with --fail-on {comparison.fail_on}"
    parts = [_number(kind, found) for kind in Kind if kind.short and (found := comparison.of(kind))]
    parts += [f"{len(comparison.flaky)} flaky"] if comparison.flaky else []
    parts += [f"{still} still deviating"] if still else []
    if comparison.newly_contradicted:
        number = len(comparison.newly_contradicted)
        parts.insert(0, f"{number} switch{'' if number == 1 else 'es'} contradicted")
    if comparison.lost_user_events:
        parts.insert(0, "no user_events")
    if comparison.gained_user_events:
        parts.insert(0, "no user_events in the base kernel")
    return names, word, f": {', '.join([*parts, same])}"


def _number(kind: Kind, changes: Sequence[Change]) -> str:
    """How many changes of one kind, and of which levels if they are worse."""
    number = f"{len(changes)} {kind.short}"
    if kind not in REGRESSIONS:
        return number
    levels = Counter(change.weight for change in changes)
    parts = [f"{levels[each]} {each}" for each in Level if levels[each]]
    return f"{number} ({', '.join(parts) if parts[1:] else changes[0].weight})"


def _function(case: str) -> str:
    """The id of a case without its variant."""
    return ".".join(case.split(".")[:2])


def _section(
    kind: Kind, title: str, changes: Sequence[Change], passing: Mapping[str, Sequence[str]]
) -> Section:
    title = f"{title} ({len(changes)})"
    if kind in _IDS_ONLY:
        return Section(title, ids=_ids([change.id for change in changes]))
    listed = [change for change in changes if _is_listed(change)]
    rest = [change for change in changes if change not in listed]
    if kind in _WITH_EVIDENCE:
        items = _grouped(listed, passing)
    else:
        items = [Item(each.id, _summary(each)) for each in listed]
    notes = _adapted(rest) if kind is Kind.OTHERWISE else _expected(rest)
    if len(items) > _MOST:
        left = sum(1 + len(item.alike) for item in items[_MOST:])
        notes = [_MORE.format(left), *notes]
    return Section(title, tuple(items[:_MOST]), notes=tuple(notes))


def _flaky(comparison: Comparison) -> Section:
    worse = {True: " (a regression: no guest of base crashed)", False: ""}
    found = comparison.flaky
    items = [
        Item(each.id, f"base: {each.base}; new: {each.new}{worse[each.regression]}")
        for each in found[:_MOST]
    ]
    more = [_MORE.format(len(found) - _MOST)] if len(found) > _MOST else []
    title = f"flaky: runs of one kernel disagree ({len(found)})"
    return Section(title, tuple(items), notes=tuple(more))


def _grouped(changes: Sequence[Change], passing: Mapping[str, Sequence[str]]) -> list[Item]:
    """Group cases with the same symptom; the first of each group has the evidence."""
    groups: dict[tuple[object, ...], list[Change]] = {}
    for change in changes:
        was = change.base.outcome if change.base else None
        groups.setdefault((was, *symptom_of(change.result, change.base)), []).append(change)
    return [
        Item(
            change.id,
            _outcomes(change),
            evidence_of(change.result, change.base),
            _ids([each.id + _second_run(each) for each in others]),
            tuple(first(passing.get(_function(change.id), ()), _MOST_PASSING, _MORE)),
            change.result,
        )
        for change, *others in sorted(groups.values(), key=_severity)
    ]


def _severity(group: Sequence[Change]) -> tuple[bool, int]:
    """Crashes first, then the largest group, which is nearest to the cause."""
    return group[0].result.outcome is not Outcome.CRASH, -len(group)


def _ids(ids: Sequence[str]) -> tuple[str, ...]:
    return tuple(first(ids, _MOST_IDS, _MORE))


def _summary(change: Change) -> str:
    reason = _reason(change)
    return _outcomes(change) + (f": {reason}" if reason else "")


def _outcomes(change: Change) -> str:
    base, new = change.base, change.new
    if base is None or new is None:
        return f"{change.result.outcome}{_second_run(change)}"
    change_of = f"{base.outcome} -> {new.outcome}{_second_run(change)}"
    if change.program_changed is None:
        return f"{change_of} (programs differ: one ended early, or the suite changed)"
    return f"{change_of} (program changed)" if change.program_changed else change_of


def _second_run(change: Change) -> str:
    sides = (("base", change.base), ("new", change.new))
    return "".join(
        f" ({side} {result.rerun.of} run: {result.rerun.outcome})"
        for side, result in sides
        if result is not None and result.rerun is not None
    )


def _reason(change: Change) -> str:
    """The reason of the outcome; for a fixed case, the reason of the failure."""
    base = change.base
    if change.kind is Kind.FIXED and base is not None and base.reason:
        return f"was {brief(base.reason)}"
    reason = brief(change.result.reason)
    if change.kind is Kind.DIFFERENT and base is not None and base.reason:
        return f"{reason}; was {brief(base.reason)}"
    return reason


def _is_listed(change: Change) -> bool:
    if change.kind is Kind.DECIDED:
        return False
    if change.kind in (Kind.APPEARED, Kind.VANISHED):
        return change.result.unexpected or change.result.outcome is Outcome.ERROR
    return change.kind is not Kind.OTHERWISE or not _only_adapted(change)


def _only_adapted(change: Change) -> bool:
    outcomes = {each.outcome for each in (change.base, change.new) if each is not None}
    return len(outcomes) == 1 and Outcome.SKIP not in outcomes


def _adapted(changes: Sequence[Change]) -> list[str]:
    """Counts of cases that differ only in measured switches."""
    numbers = Counter(
        (each.base.adapted, each.new.adapted) for each in changes if each.base and each.new
    )
    return [
        f"{number} judged with other measured switches: {_names(now)}; before: {_names(before)}"
        for (before, now), number in sorted(numbers.items())
    ]


def _names(switches: Iterable[str]) -> str:
    return ", ".join(map(one_line, switches)) or "none"


def _expected(changes: Sequence[Change]) -> list[str]:
    """Counts by surface of the other cases of a section."""
    if not changes:
        return []
    numbers = Counter[str](change.result.surface for change in changes)
    surfaces = ", ".join(f"{surface} {number}" for surface, number in sorted(numbers.items()))
    return [f"{len(changes)} that do not deviate: {surfaces}"]
