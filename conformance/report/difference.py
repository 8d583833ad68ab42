"""What differs between the expected and the observed answer, to the byte."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from itertools import zip_longest

from conformance.report.program import line_at
from conformance.results.case_result import CaseResult, Mismatch
from host.text import folded, one_line, printable, wrapped

SIDES = ("expected", "kernel")
"""Names of the two sides of a difference."""
_IOCTL = re.compile(r"ioctl\(\w+, ([^,]+),")
_CALL = re.compile(r"(?:\w+ = )?(?:/\*.*\*/ )?(\w+)\(")
BYTES = re.compile(r"[0-9a-f]{2}( [0-9a-f]{2})*")
# Bytes on one line.
_ROW = 16
# Sizes in bytes of enable words.
_WORDS = (1, 4, 8)
# Lines of a text that are shown.
_FIRST_LINES = 12
_LAST_LINES = 36
# Fields that a title names already.
_PLAIN = frozenset({"errno", "value", "literal"})
# Beginnings of fields whose sides may be bytes; those of others are numbers, names and texts.
_OF_BYTES = ("memory ", "data", "payload ")
# Differences that are shown.
_MOST = 6


def difference_lines(result: CaseResult) -> list[str]:
    """What differs, each difference under the call that shows it; at most 100 columns."""
    lines: list[str] = []
    title = ""
    found = [each for each in result.mismatches if not _is_watched(each, result.mismatches)]
    for mismatch in found[:_MOST]:
        if (place := _place(result, mismatch)) != title:
            lines += wrapped(place, indent=2, hanging=6)
            title = place
        lines += _difference(mismatch, title)
    more = len(found) - _MOST
    return lines + ([f"  and {more} more differences; results.json has all"] if more > 0 else [])


def _is_watched(data: Mismatch, found: Sequence[Mismatch]) -> bool:
    """Whether the data of a load are also a difference in watched memory."""
    return data.field == "data" and any(
        each.field.startswith("memory")
        and (each.step, each.allowed, each.observed) == (data.step, data.allowed, data.observed)
        for each in found
    )


def elided(lines: Sequence[str]) -> list[str]:
    """The first and last lines of a long text."""
    left_out = len(lines) - _FIRST_LINES - _LAST_LINES
    if left_out <= 1:
        return list(lines)
    note = f"[{left_out} lines left out; results.json has them]"
    return [*lines[:_FIRST_LINES], note, *lines[-_LAST_LINES:]]


def is_text(mismatch: Mismatch) -> bool:
    """Whether a side has several lines."""
    return any("\n" in side.strip("\n") for side in (mismatch.allowed, mismatch.observed))


def call_at(result: CaseResult, step: int) -> str:
    """The call of a step in short, ``ioctl(DIAG_IOCSREG)``, "" if it is not known."""
    text = one_line(line_at(result, step)).partition(": ")[2]
    if found := _IOCTL.search(text):
        return f"ioctl({found[1]})"
    if text.startswith(("cat ", "echo ")) or not (found := _CALL.match(text)):
        return text.partition(" = ")[0].partition(" == ")[0]
    return f"{found[1]}()"


def _place(result: CaseResult, mismatch: Mismatch) -> str:
    if not mismatch.step:
        what = one_line(mismatch.field)
        return "the assertion of the case" if what == "literal" else what
    actor = one_line(line_at(result, mismatch.step)).partition(". ")[2].partition(": ")[0]
    call = call_at(result, mismatch.step)
    return f"step {mismatch.step}, {actor}: {call}" if call else f"step {mismatch.step}"


def _difference(mismatch: Mismatch, place: str) -> list[str]:
    field = one_line(mismatch.field)
    sides = (mismatch.allowed, mismatch.observed)
    if is_text(mismatch):
        allowed, observed = (side.splitlines() for side in sides)
        changes = difflib.unified_diff(allowed, observed, n=1, lineterm="")
        legend = f"{field}: - {SIDES[0]}, + {SIDES[1]}"
        # The first three lines of a unified diff are file names and line numbers.
        return [*wrapped(legend, indent=4), *folded(elided(list(changes)[3:]), indent=6)]
    if field.startswith(_OF_BYTES) and all(map(BYTES.fullmatch, sides)):
        return _byte_difference(field, *(bytes.fromhex(side) for side in sides))
    shown = [_side(field, side) for side in sides]
    title = [] if field in (*_PLAIN, place) else wrapped(field, indent=4)
    return [*title, *_pair(shown)]


def _side(field: str, side: str) -> str:
    # Not one_line(): the difference may be white space.
    text = printable(side.strip("\n"))
    if field == "errno":
        return "no error" if text == "success" else f"-1 {text}"
    return text or "nothing"


def _pair(sides: Sequence[str]) -> list[str]:
    lines = []
    for label, side in zip(SIDES, sides, strict=True):
        lines += wrapped(f"{label:<8}  {side}", indent=6, hanging=10)
    return lines


def _byte_difference(field: str, expected: bytes, observed: bytes) -> list[str]:
    """Rows of bytes around the first that differs, and marks under those that do."""
    pairs = list(zip_longest(expected, observed))
    wrong = [place for place, (one, other) in enumerate(pairs) if one != other]
    start = wrong[0] // _ROW * _ROW if wrong and len(pairs) > _ROW else 0
    row = slice(start, start + _ROW)
    at = f", from byte {start}" if start else ""
    length = f", of {len(pairs)} bytes" if len(pairs) > _ROW else ""
    marks = " ".join("^^" if one != other else "  " for one, other in pairs[row]).rstrip()
    return [
        *wrapped(f"{field}{at}{length}{_bits(expected, observed)}", indent=4, hanging=4),
        *_pair([side[row].hex(" ") for side in (expected, observed)]),
        f"{' ' * 16}{marks}",
    ]


def _bits(expected: bytes, observed: bytes) -> str:
    """The bits of an enable word that differ, in words."""
    if len(expected) != len(observed) or len(expected) not in _WORDS:
        return ""
    one, other = (int.from_bytes(side, "little") for side in (expected, observed))
    bits = [bit for bit in range(8 * len(expected)) if (one ^ other) >> bit & 1]
    if len(bits) > 4:
        return ""
    parts = [f"bit {bit} is {'set' if other >> bit & 1 else 'clear'}" for bit in bits]
    return f": {', '.join(parts)}"
