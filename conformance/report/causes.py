"""Results that differ in the same way, as one cause."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from conformance.report.difference import BYTES, call_at, is_text
from conformance.results.case_result import CaseResult, Mismatch
from conformance.results.outcome import UNEXPECTED

# Functions that are named as the likely place of a bug.
_MOST = 5
_NUMBER = re.compile(r"\d+(\.\d+)?")
# A function or variable of user_events in ``Evidence.spec``, but no file.
_FUNCTION = re.compile(r"\b\w*user_\w+(?![\w.])")
# Event names of older results, console timestamps and addresses.
_OF_A_RUN = re.compile(r"\b[tT]\d+_|0x[0-9a-f]+|\[ *\d+\.\d+\]")


def symptom(result: CaseResult, first: Mismatch | None = None) -> tuple[object, ...]:
    """A key that is equal for results that differ in the same way.

    ``first`` is the difference that counts, by default the first one.
    """
    if first is None and not result.mismatches:
        return result.outcome, result.blame, _without_numbers(result.reason, result.id)
    first = first or result.mismatches[0]
    call = _without_numbers(call_at(result, first.step), result.id)
    return result.blame, call, first.field.partition(" ")[0], *_sides(first, result.id)


def by_cause(results: Iterable[CaseResult]) -> list[tuple[CaseResult, list[CaseResult]]]:
    """The first result of each cause with the others, in order."""
    groups: dict[tuple[object, ...], list[CaseResult]] = {}
    for result in results:
        groups.setdefault(symptom(result), []).append(result)
    return [(first, others) for first, *others in groups.values()]


def deciding_functions(results: Iterable[CaseResult]) -> str:
    """One line: the functions that decide many deviating cases and few others, the likely place
    of a bug.  Empty if no two deviating cases have a function in common.
    """
    named: Counter[str] = Counter()
    deviating: Counter[str] = Counter()
    for result in results:
        # Such a result exists only if it deviates.
        if result.aftermath_of:
            continue
        functions = set(_FUNCTION.findall(result.evidence.spec))
        named.update(functions)
        if result.outcome in UNEXPECTED:
            deviating.update(functions)
    found = [name for name, number in deviating.items() if number > 1]
    found.sort(key=lambda name: (-(deviating[name] ** 2) / named[name], name))
    shown = ", ".join(f"{name} {deviating[name]} of {named[name]}" for name in found[:_MOST])
    return f"cases that deviate, by the function that decides: {shown}" if shown else ""


def _sides(found: Mismatch, case: str) -> tuple[object, ...]:
    sides = (found.allowed, found.observed)
    if found.field == "leftover":
        return ()
    if found.field == "unfreed":
        # Lines of function and number: the number depends on the fields of the event.
        return tuple(_NUMBER.sub("*", side) for side in sides)
    if found.field.startswith("memory") and all(map(BYTES.fullmatch, sides)):
        allowed, observed = (int.from_bytes(bytes.fromhex(side), "little") for side in sides)
        return bool(observed & ~allowed), bool(allowed & ~observed)
    if is_text(found):
        lines = [set(side.splitlines()) for side in sides]
        only = (lines[0] - lines[1], lines[1] - lines[0])
        return tuple(frozenset(map(without_run_specifics, each)) for each in only)
    if not found.step:
        return tuple(_without_numbers(side, case) for side in sides)
    return tuple(map(without_run_specifics, sides))


def _without_numbers(text: str, case: str) -> str:
    """A text without the parts that differ between cases."""
    for name in (case, case.rpartition(".")[0]):
        text = text.replace(name, "*") if name else text
    return _NUMBER.sub("*", without_run_specifics(text))


def without_run_specifics(text: str) -> str:
    """A text without the parts that differ from run to run."""
    return _OF_A_RUN.sub("*", text)
