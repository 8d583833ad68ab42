"""Answers of the model, and how an observation differs from one.

``Answer.data`` None means that content is not compared: an id, a pid, or a file outside of
user_events that is read for the first time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct, field

from conformance.ops import Observation
from conformance.ops.race import conforms

FREED = b"\0\n"
"""A line of freed memory, in ``Answer.data``."""
# The allocator's pointer in a freed object is aligned.
_POINTER = 8
UNREADABLE = "not readable"
"""Memory that is not mapped, in a difference."""

Memory = Mapping[tuple[str, int], bytes | None]


class Answer(Struct, frozen=True):
    """One allowed answer to an operation.

    ``value`` None means that the number is not compared.  ``memory`` is the content of watched
    ranges afterwards, None for unreadable memory.  ``example`` is what the model answers when it
    acts as a kernel.  ``counted`` results of a race need only be among those in ``data``.
    ``reason`` says what the caller did wrong.  ``bug`` is the known bug of the kernel that alone
    explains the answer: memory of the line ``freed`` is freed while it is shown, and FREED stands
    for it in ``data``.
    """

    value: int | None
    errno: str = ""
    data: bytes | None = None
    memory: Memory = field(default_factory=dict)
    example: bytes | None = None
    counted: bool = False
    reason: str = ""
    bug: str = ""
    freed: bytes = b""


class Difference(Struct, frozen=True):
    """A field in which an observation is not allowed; both sides as text."""

    field: str
    allowed: str
    observed: str


def differences(answer: Answer, seen: Observation) -> list[Difference]:
    """The fields in which an observation differs from an answer."""
    found = []
    if answer.errno != seen.errno:
        found.append(Difference("errno", answer.errno or "success", seen.errno or "success"))
    elif answer.value is not None and answer.value != seen.value:
        found.append(Difference("value", str(answer.value), str(seen.value)))
    if answer.data is not None and not answer.errno and not _fits(answer, seen.data or b""):
        found.append(Difference("data", _text(answer.data), _text(seen.data or b"")))
    for (actor, address), content in seen.watched:
        expected = answer.memory[actor, address]
        if expected != content:
            where = f"memory {actor} {address:#x}"
            found.append(Difference(where, _hex(expected), _hex(content)))
    return found


def is_allowed(seen: Observation, answers: Iterable[Answer]) -> bool:
    """Whether an observation matches one of the answers."""
    return any(not differences(answer, seen) for answer in answers)


def _fits(answer: Answer, data: bytes) -> bool:
    if answer.counted and answer.data is not None:
        return conforms(answer.data.decode(), data.decode())
    if answer.data is not None and answer.freed:
        before, _, after = answer.data.partition(FREED)
        return _shows_freed(answer.freed, before, after, data)
    return answer.data == data


def _shows_freed(line: bytes, before: bytes, after: bytes, data: bytes) -> bool:
    """Whether a line between two texts ends as freed memory does: in bytes that are no text, or
    cut off where the pointer of the allocator begins with a NUL.
    """
    found = data[len(before) : len(data) - len(after)]
    if data != before + found + after or not found.endswith(b"\n") or found == line:
        return False
    shown = found.replace(b"\n", b"").decode("latin-1")
    cut_off = len(shown) > 0 and len(shown) % _POINTER == 0 and line.startswith(found[:-1])
    return cut_off or not (shown.isascii() and shown.isprintable())


def _text(data: bytes) -> str:
    """Text of a file as it is, other bytes in hexadecimal."""
    text = data.decode("utf-8", "backslashreplace")
    printable = text.replace("\n", "").replace("\t", "").isprintable()
    # A trace may hold bytes of any encoding, in lines.
    return text if printable and ("\n" in text or data.isascii()) else data.hex(" ")


def _hex(content: bytes | None) -> str:
    return UNREADABLE if content is None else content.hex(" ")
