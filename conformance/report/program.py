"""The program of a result: the lines that explain its difference, the others folded."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence

from conformance.results.case_result import CaseResult
from host.text import counted, one_line, wrapped

# The longest program that is shown whole, and the lines of a longer one that are kept.
_WHOLE = 20
_MOST = 15
# Lines just before a difference that are kept in any case.
_BEFORE = 3
# Differing lines that are kept.
_MOST_WRONG = 4
_FOLDED = " folded: results.json has all"
_ANSWER = re.compile(r" = -1 \w+")
# Stands for a space where a line must not be split.
_SOLID = "\u2800"
_LEADING = re.compile(r"\d+(?=\.)", re.ASCII)
_VARYING = re.compile(r"0x[0-9a-f]+|\d+|\[[^\]]*\]|\"[^\"]*\"")
# What a line is about: descriptors, variables, events, files.
_SUBJECT = re.compile(
    r"\b(?:\w*fd\d*|(?:word|page)\d*|p\d+ = \w+)\b|user_events/[\w.-]+|=\"[\w.-]+"
)


def program_lines(result: CaseResult, width: int = 100) -> list[str]:
    """The program within ``width`` columns, its differing lines marked with ``>``."""
    steps = [one_line(step) for step in result.evidence.steps]
    places = (_place(steps, each.step) for each in result.mismatches)
    wrong = {place for place in places if place is not None}
    kept = _kept(steps, sorted(wrong))
    lines: list[str] = []
    for place, step in enumerate(steps):
        if place in kept:
            first, *more = _wrapped(step, width)
            lines += [f"  > {first[4:]}" if place in wrong else first, *more]
        elif place == 0 or place - 1 in kept:
            end = next((each for each in kept if each > place), len(steps))
            lines.append(f"    [{counted(end - place, 'line')}{_FOLDED}]")
    return lines


def is_folded(lines: Sequence[str]) -> bool:
    """Whether lines of the program are left out of these."""
    return any(line.endswith(f"{_FOLDED}]") for line in lines)


def line_at(result: CaseResult, step: int) -> str:
    """The line of the program that shows a step, "" if there is none."""
    place = _place(result.evidence.steps, step)
    return "" if place is None else result.evidence.steps[place]


def _place(steps: Sequence[str], step: int) -> int | None:
    """The line of a step: its own, or that of the call whose result the step loads."""
    found = [_LEADING.match(each) for each in steps]
    numbers = [int(each[0]) if each else 0 for each in found]
    place = bisect_right(numbers, step) - 1
    return place if step and place >= 0 else None


def _kept(steps: Sequence[str], wrong: Sequence[int]) -> list[int]:
    """The places of lines that are shown, in order."""
    if len(steps) <= _WHOLE:
        return list(range(len(steps)))
    last = wrong[0] if wrong else len(steps) - 1
    kept = {*wrong[:_MOST_WRONG], *range(max(0, last - _BEFORE), last + 1)}
    subjects = set(_SUBJECT.findall(steps[last]))
    related = [each for each in range(last) if subjects & set(_SUBJECT.findall(steps[each]))]
    for found in (
        _distinct(steps, related),
        reversed(related),
        _distinct(steps, range(last)),
        range(last, 0, -1),
    ):
        kept |= set(list(found)[: max(0, _MOST - len(kept))])
    return sorted(kept)


def _distinct(steps: Sequence[str], places: Sequence[int]) -> list[int]:
    """The first of the lines that say the same of different objects, or again; latest first."""
    shapes = {_VARYING.sub("*", steps[each]): each for each in reversed(places)}
    return sorted(shapes.values(), reverse=True)


def _wrapped(step: str, width: int) -> list[str]:
    """The lines of a step; an answer is not split."""
    whole = _ANSWER.sub(lambda found: found[0].replace(" ", _SOLID), step)
    lines = wrapped(whole, indent=4, hanging=8, width=width)
    return [line.replace(_SOLID, " ") for line in lines]
