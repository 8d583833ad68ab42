"""The report for a terminal or a log: at most 100 columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from conformance.report.matrix.story import (
    Step,
    Told,
    contradictions,
    counted,
    facts,
    nothing_unexpected,
    run_trouble,
    slowest,
    steps,
    told,
)
from conformance.report.matrix.table import TROUBLE, Matrix
from conformance.results.case_result import Outcome, RunVerdict
from host.text import WIDTH, coloured, one_line, wrapped

# Of one kind so many are told: the page has all.
_MOST = 30
_REASON = 180
_SLOWEST = 5
_COLOURS = {RunVerdict.PASS: "good", RunVerdict.NOT_BUILT: "notable"}


def render_text(matrix: Matrix, *, colour: bool = False) -> str:
    """The report; every line but those of the table is about one thing."""
    lines = [*_kernels(matrix, colour=colour), *_notes(matrix), ""]
    lines += _listed("unexpected", told(matrix, TROUBLE)) or [nothing_unexpected(matrix), ""]
    for column, found in contradictions(matrix):
        text = f"{column.label} contradicts its profile: {found.switch} ({one_line(found.says)})"
        lines += [*wrapped(one_line(text), hanging=2), ""]
    for step in reversed(steps(matrix)):
        lines += [*_step(step), ""]
    lines += _listed("known deviations", told(matrix, {Outcome.XFAIL}))
    longest = slowest(matrix, _SLOWEST)
    lines += ["slowest"] if longest else []
    for row, column, seconds in longest:
        lines += wrapped(f"{seconds:6.2f} s  {row.id} on {one_line(column.label)}", indent=2)
    return "\n".join(lines) + "\n"


def _kernels(matrix: Matrix, *, colour: bool) -> Iterator[str]:
    counts = counted(matrix)
    table = [("release", "verdict", *(name for name, _ in counts))]
    for place, column in enumerate(matrix.columns):
        release = _cut(column.record.head.kernel.release, 12)
        table.append((release, column.said, *(str(each[place]) for _, each in counts)))
    widths = [max(map(len, cells)) for cells in zip(*table, strict=True)]
    room = WIDTH - sum(widths) - 2 * len(widths)
    labels = [_cut(each, room) for each in ("kernel", *(each.label for each in matrix.columns))]
    wide = max(map(len, labels))
    for number, row in enumerate(table):
        padded = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        if number:
            verdict = matrix.columns[number - 1].record.verdict
            padded[1] = coloured(padded[1], _COLOURS.get(verdict, "bad"), enabled=colour)
        yield "  ".join([labels[number].ljust(wide), *padded]).rstrip()


def _notes(matrix: Matrix) -> Iterator[str]:
    """What is wrong with runs, what was covered, and in what they differ that may be why."""
    for column in matrix.columns:
        kernel = column.record.head.kernel
        if kernel.profile != kernel.release:
            text = f"{column.label} is judged as {kernel.profile}"
            yield from wrapped(one_line(text), hanging=2)
        if trouble := run_trouble(column):
            yield from wrapped(f"{one_line(column.label)}: {one_line(trouble)}", hanging=2)
        for covered in column.run.covered:
            text = f"{column.label} executed of {covered}"
            yield from wrapped(one_line(text), hanging=2)
    for fact in facts(matrix):
        if fact.differs and fact.name in ("suite", "accelerator"):
            pairs = zip(matrix.columns, fact.values, strict=True)
            values = ", ".join(f"{column.label} {value}" for column, value in pairs)
            yield from wrapped(f"{fact.name} differs: {one_line(values)}", hanging=2)


def _step(step: Step) -> Iterator[str]:
    names = f"{one_line(step.earlier.label)} -> {one_line(step.later.label)}"
    yield from wrapped(f"{names}: {step.summary}", hanging=2)
    for each in step.changes[:_MOST]:
        yield from _told(each)
    if len(step.changes) > _MOST:
        yield f"  and {len(step.changes) - _MOST} more"
    for turned in step.turned:
        since = f" (since {turned.since})" if turned.since and turned.on else ""
        verb = "now" if turned.on else "no longer"
        text = f"{verb} {turned.switch.name}{since}: {turned.switch.says}"
        yield from wrapped(text, indent=2, hanging=2)


def _listed(title: str, found: Sequence[Told]) -> list[str]:
    if not found:
        return []
    lines = [f"{title} ({sum(len(each.group.rows) for each in found)})"]
    for each in found[:_MOST]:
        lines += _told(each)
    if len(found) > _MOST:
        lines.append(f"  and {len(found) - _MOST} more")
    return [*lines, ""]


def _told(each: Told) -> Iterator[str]:
    """The id to copy, then where, and why."""
    said, where = str(each.outcome), f"on {', '.join(one.label for one in each.columns)}"
    if each.before is not None:
        said = f"{each.before} -> {each.outcome}"
        where = f"({each.before} on {each.elsewhere})" if each.elsewhere else ""
    often = f"({number} variants)" if (number := len(each.group.rows)) > 1 else ""
    text = one_line(f"{said} {each.group.name} {often} {where}")
    yield from wrapped(text, indent=2, hanging=2)
    if each.reason:
        yield from wrapped(_cut(each.reason, _REASON), indent=4)


def _cut(text: str, most: int) -> str:
    text = one_line(text)
    return text if len(text) <= most else f"{text[: most - 1]}…"
