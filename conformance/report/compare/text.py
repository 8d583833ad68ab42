"""A comparison of two runs as text."""

from __future__ import annotations

from collections.abc import Collection

from conformance.report.causes import deciding_functions
from conformance.report.compare.compare import Comparison
from conformance.report.compare.differences import differences
from conformance.report.compare.evidence import Evidence
from conformance.report.compare.kinds import Kind
from conformance.report.compare.sections import Item, Section, head, remarks, sections, sentence
from conformance.report.program import program_lines
from host.text import coloured, wrapped

WIDTH = 78
"""Columns of the page, for quoting in mail."""

_LABEL = 8
_INDENT = 4
# Cases whose program is shown: one explains most kernels.
_PROGRAMS = 3


def render_page(
    comparison: Comparison, *, colour: bool = False, printed: Collection[str] = ()
) -> str:
    """The page; its last line is the conclusion.

    ``printed`` are the cases whose evidence was printed before.
    """
    sides = (("base", comparison.base), ("new", comparison.new))
    lines: list[str] = []
    for (title, record), runs in zip(sides, comparison.runs, strict=True):
        lines += _wrapped(head(title, record, runs), 0)
    for each in differences(comparison):
        lines += _wrapped(each, 6)
    lines.append("")
    for each in remarks(comparison):
        lines += [*_wrapped(each, 0), ""]
    found = list(sections(comparison))
    explained = [item.id for section in found for item in section.items if item.shown][:_PROGRAMS]
    for section in found:
        lines += [*_section(section, printed, explained), ""]
    if comparison.of(Kind.BROKEN) and (places := deciding_functions(comparison.new.cases)):
        lines += [*_wrapped(places, 0), ""]
    names, word, numbers = sentence(comparison)
    # Escape sequences have no width: colour the word after wrapping.
    last = _wrapped(f"uevt: {names}: {word}{numbers}", 0)
    bad = comparison.regression
    painted = coloured(word, "bad" if bad else "good", enabled=colour)
    lines += [line.replace(f": {word}", f": {painted}", 1) for line in last]
    return "\n".join(lines) + "\n"


def _section(section: Section, printed: Collection[str], explained: Collection[str]) -> list[str]:
    lines = _wrapped(section.title, 0)
    for item in section.items:
        shown = item.id not in printed
        lines += _item(item, item.evidence if shown else ())
        if shown and item.shown is not None and item.id in explained:
            lines += program_lines(item.shown, WIDTH)
    lines += _wrapped(", ".join(section.ids), 2, 0) if section.ids else []
    for note in section.notes:
        lines += _wrapped(note, 2)
    return lines


def _item(item: Item, evidence: Evidence) -> list[str]:
    """The id on a line of its own, to be copied, then outcomes and evidence."""
    lines = [f"  {item.id}", *_wrapped(item.text, _INDENT)]
    lines += [" " * _INDENT + line for line in evidence_lines(evidence)]
    if item.alike:
        lines += _wrapped(f"{'also':<{_LABEL}} {', '.join(item.alike)}", _INDENT, _LABEL + 1)
    if item.passing:
        lines += _wrapped(f"{'but not':<{_LABEL}} {', '.join(item.passing)}", _INDENT, _LABEL + 1)
    return lines


def evidence_lines(evidence: Evidence) -> list[str]:
    """Evidence with its labels in a column."""
    lines = []
    for name, (first, *others) in evidence:
        label = name if len(name) <= _LABEL else f"{name}:"
        lines += _wrapped(f"{label:<{_LABEL}} {first}", 0, _LABEL + 1, WIDTH - _INDENT)
        for other in others:
            lines += _wrapped(other, _LABEL + 1, 2, WIDTH - _INDENT)
    return lines


def _wrapped(text: str, indent: int, hanging: int = 2, width: int = WIDTH) -> list[str]:
    return wrapped(text, indent=indent, hanging=hanging, width=width)
