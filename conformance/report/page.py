"""A comparison of two runs for people: what a maintainer asks first comes first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from conformance.outcome import UNEXPECTED, CaseResult, Outcome
from conformance.report.compare import Change, Comparison, Kind
from conformance.report.record import RunRecord
from conformance.report.text import coloured, one_line, wrapped

WIDTH = 78
"""Columns of a page: it has to survive being mailed."""

# Of one kind so many are told; a kernel that breaks everything is read in its own report.
_MOST = 30
# A reason can hold a whole format file.
_REASON = 180
_TITLES = {
    Kind.BROKEN: "newly failing",
    Kind.WORSE: "failing, and now taking the guest with them",
    Kind.CHANGED: "failing in another way",
    Kind.UNDECIDED: "judged before, and not now",
    Kind.FIXED: "fixed",
    Kind.APPEARED: "not in the base run",
    Kind.VANISHED: "only in the base run",
    Kind.OTHERWISE: "with another outcome, right or known in both",
}
_SHORT = {
    Kind.BROKEN: "newly failing",
    Kind.WORSE: "worse",
    Kind.CHANGED: "failing otherwise",
    Kind.UNDECIDED: "no longer judged",
    Kind.APPEARED: "new",
    Kind.VANISHED: "gone",
    Kind.FIXED: "fixed",
    Kind.OTHERWISE: "otherwise different",
}


def render_page(comparison: Comparison, *, colour: bool = False) -> str:
    """The page; its last line says it all."""
    lines = _line("base", comparison.base) + _line("new", comparison.new)
    lines += _notes(comparison)
    lines.append("")
    if comparison.unbuilt:
        lines += ["the new kernel has no user_events: no case was judged", ""]
    for found, title in (
        (comparison.contradicted, "contradicts its profile, and did not"),
        (comparison.kept, "no longer contradicts its profile"),
    ):
        for each in found:
            lines += _wrapped(f"{title}: {each.switch} ({one_line(each.says)})", 0)
        lines += [""] if found else []
    for kind in Kind:
        lines += _group(kind, comparison.of(kind))
    lines += _wrapped(_sentence(comparison, colour=colour), 0)
    return "\n".join(lines) + "\n"


def _line(title: str, record: RunRecord) -> list[str]:
    kernel = record.head.kernel
    parts = [f"{record.count(Outcome.PASS)} passed", f"{record.count(Outcome.XFAIL)} known"]
    parts.append(f"{record.count(*UNEXPECTED)} unexpected")
    for what, number in (
        ("skipped", record.count(Outcome.SKIP)),
        ("undecided", record.count(Outcome.ERROR)),
        ("not run", record.missing),
    ):
        parts += [f"{number} {what}"] if number else []
    said = f"{one_line(kernel.id)} ({one_line(kernel.release) or kernel.profile})"
    return _wrapped(f"{title:<5} {said} {record.verdict}: {', '.join(parts)}", 0)


def _notes(comparison: Comparison) -> list[str]:
    """What else differs between the runs, and may be why."""
    base, new = comparison.base.head, comparison.new.head
    pairs = [
        ("profile", base.kernel.profile, new.kernel.profile),
        ("source", base.kernel.source, new.kernel.source),
        ("suite", base.suite, new.suite),
        ("accelerator", base.host["accel"], new.host["accel"]),
    ]
    if base.kernel.config_sha256 and new.kernel.config_sha256:
        # Digests of 64 digits: that they differ is all there is to say.
        pairs.append(("config", base.kernel.config_sha256[:12], new.kernel.config_sha256[:12]))
    lines = []
    for what, before, after in pairs:
        if before != after:
            text = f"{what} differs: {one_line(before or 'none')}, now {one_line(after or 'none')}"
            lines += _wrapped(text, 6)
    return lines


def _group(kind: Kind, changes: Sequence[Change]) -> list[str]:
    if not changes:
        return []
    lines = [f"{_TITLES[kind]} ({len(changes)})"]
    told = list(changes)
    if kind in (Kind.APPEARED, Kind.VANISHED):
        told = [change for change in changes if not _expected(change.told)]
    elif kind is Kind.OTHERWISE:
        told = [change for change in changes if not _only_adapted(change)]
    for change in told[:_MOST]:
        lines += _change(change)
    if len(told) > _MOST:
        lines.append(f"  and {len(told) - _MOST} more (--json has all)")
    rest = [change for change in changes if change not in told]
    if rest and kind is Kind.OTHERWISE:
        lines += _adapted(rest)
    elif rest:
        lines += _wrapped(f"{len(rest)} as expected: {_surfaces(rest)}", 2)
    return [*lines, ""]


def _change(change: Change) -> list[str]:
    """Two lines or more: the id to copy, then what it was, what it is, and why."""
    base, new = change.base, change.new
    if base is not None and new is not None:
        said = f"{base.outcome} -> {new.outcome}"
    else:
        said = str(change.told.outcome)
    said += f": {reason}" if (reason := _reason(change)) else ""
    for which, result in (("the base's", base), ("its", new)):
        if result is not None and result.rerun is not None:
            rerun = result.rerun
            said += f" ({which} {rerun.of} run: {rerun.outcome})"
    return [f"  {change.id}", *_wrapped(said, 4)]


def _reason(change: Change) -> str:
    """Why the case is what it is; where it is right now, what was wrong with it."""
    base, new = change.base, change.new
    if new is not None and new.outcome is Outcome.XPASS:
        return f"the known deviation is gone, so its expectation has to go: {_cut(new.reason)}"
    if change.kind is Kind.FIXED and base is not None and base.reason:
        return f"was {_cut(base.reason)}"
    return _cut(change.told.reason)


def _adapted(changes: Sequence[Change]) -> list[str]:
    """Cases whose only difference is which switches they were judged with: there can be many."""
    counted = Counter(
        (change.base.adapted, change.new.adapted)
        for change in changes
        if change.base and change.new
    )
    lines = []
    for (before, after), number in sorted(counted.items()):
        was, now = (", ".join(each) or "none" for each in (before, after))
        text = f"{number} judged with other measured switches: {now}, before {was}"
        lines += _wrapped(text, 2)
    return lines


def _only_adapted(change: Change) -> bool:
    return bool(
        change.base
        and change.new
        and change.base.outcome is change.new.outcome
        and change.new.outcome is not Outcome.SKIP
    )


def _expected(result: CaseResult) -> bool:
    return not result.unexpected and result.outcome is not Outcome.ERROR


def _surfaces(changes: Iterable[Change]) -> str:
    counted = Counter(change.told.surface for change in changes)
    return ", ".join(f"{surface} {number}" for surface, number in sorted(counted.items()))


def _sentence(comparison: Comparison, *, colour: bool) -> str:
    base, new = comparison.base.head.kernel, comparison.new.head.kernel
    names = f"uevt: {one_line(new.id)} against {one_line(base.id)}"
    if base.id == new.id:
        names = f"uevt: {one_line(new.id)} {one_line(new.release)} against {one_line(base.release)}"
    if not comparison.different:
        word = coloured("no difference", "good", enabled=colour)
        return f"{names}: {word} in {comparison.same} cases"
    if comparison.regression:
        word = coloured("REGRESSION", "bad", enabled=colour)
    else:
        word = coloured("no regression", "good", enabled=colour)
    counted = Counter(change.kind for change in comparison.changes)
    parts = [f"{counted[kind]} {_SHORT[kind]}" for kind in Kind if counted[kind]]
    if comparison.contradicted:
        number = len(comparison.contradicted)
        parts.insert(0, f"{number} switch{'' if number == 1 else 'es'} contradicted")
    if comparison.unbuilt:
        parts.insert(0, "no user_events")
    return f"{names}: {word}: {', '.join([*parts, f'{comparison.same} as before'])}"


def _cut(text: str) -> str:
    text = one_line(text)
    return text if len(text) <= _REASON else f"{text[: _REASON - 1]}…"


def _wrapped(text: str, indent: int) -> list[str]:
    return wrapped(text, indent=indent, hanging=2, width=WIDTH)
