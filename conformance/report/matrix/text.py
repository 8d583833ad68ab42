"""The report as text of at most 100 columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from conformance.report.matrix import story
from conformance.report.matrix.story import GroupedResult, Transition
from conformance.report.matrix.table import Matrix
from conformance.results.outcome import RunVerdict
from host.text import WIDTH, coloured, cut, first, one_line, wrapped

# Entries of one section; the HTML page has all.
_MOST = 30
_REASON = 180
_SLOWEST = 5
_COLOURS = {RunVerdict.PASS: "good", RunVerdict.NOT_BUILT: "notable"}


def render_text(matrix: Matrix, *, colour: bool = False) -> str:
    """Render the table of kernels, then the sections."""
    lines = [*_kernels(matrix, colour=colour), *_notes(matrix), ""]
    failed = _listed("failed", story.failed_results(matrix))
    lines += failed or [story.nothing_failed(matrix), ""]
    for title, _, found in story.other_results(matrix):
        lines += _listed(title.lower(), found)
    for column, each in story.contradictions(matrix):
        here, dated = each.states
        text = f"{each.switch}: {here} in {column.label}, {dated} in its profile ({each.says})"
        lines += [*wrapped(one_line(text), hanging=2), ""]
    for transition in reversed(story.transitions(matrix)):
        lines += [*_transition(transition), ""]
    longest = story.slowest(matrix, _SLOWEST)
    lines += ["slowest"] if longest else []
    for row, column, seconds in longest:
        lines += wrapped(f"{seconds:6.2f} s  {row.id} on {one_line(column.label)}", indent=2)
    return "\n".join(lines) + "\n"


def _kernels(matrix: Matrix, *, colour: bool) -> Iterator[str]:
    counts = story.counted(matrix)
    table = [("release", "verdict", *(name for name, _ in counts))]
    for place, column in enumerate(matrix.columns):
        release = _cut(column.record.head.kernel.release, 12)
        table.append((release, column.verdict, *(str(each[place]) for _, each in counts)))
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
    """Problems of runs, coverage, and differences that may explain outcomes."""
    for column in matrix.columns:
        kernel = column.record.head.kernel
        if kernel.profile != kernel.release:
            text = f"{column.label} is judged as {kernel.profile}"
            yield from wrapped(one_line(text), hanging=2)
        if trouble := story.run_trouble(column):
            yield from wrapped(f"{one_line(column.label)}: {one_line(trouble)}", hanging=2)
        for covered in column.run.covered:
            text = f"{column.label} covered {covered}"
            yield from wrapped(one_line(text), hanging=2)
    for fact in story.facts(matrix):
        if fact.differs and fact.name in ("suite", "accelerator"):
            pairs = zip(matrix.columns, fact.values, strict=True)
            values = ", ".join(f"{column.label} {value}" for column, value in pairs)
            yield from wrapped(f"{fact.name} differs: {one_line(values)}", hanging=2)


def _transition(transition: Transition) -> Iterator[str]:
    names = f"{one_line(transition.earlier.label)} -> {one_line(transition.later.label)}"
    yield from wrapped(f"{names}: {transition.summary}", hanging=2)
    yield from _first(transition.changes)
    for change in transition.switch_changes:
        text = f"{change.verb} {change.switch.name}{change.when}: {change.switch.says}"
        yield from wrapped(text, indent=2, hanging=2)


def _listed(title: str, found: Sequence[GroupedResult]) -> list[str]:
    if not found:
        return []
    return [f"{title} ({sum(each.cases for each in found)})", *_first(found), ""]


def _first(results: Sequence[GroupedResult]) -> list[str]:
    return first(["\n".join(_result(each)) for each in results], _MOST, "  and {} more")


def _result(each: GroupedResult) -> Iterator[str]:
    """Outcome and id, then the reason."""
    outcome, often, where = each.heading("->")
    text = one_line(f"{outcome} {each.group.name} {often} {where}")
    yield from wrapped(text, indent=2, hanging=2)
    if each.reason:
        yield from wrapped(_cut(each.reason, _REASON), indent=4)
    if each.alike:
        yield from wrapped(f"also {story.also(each)}", indent=4, hanging=2)


def _cut(text: str, most: int) -> str:
    return cut(one_line(text), most)
