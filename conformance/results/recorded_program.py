"""The program of a result as data: operations, allowed answers, and what the kernel answered.

Bytes are hexadecimal.  An operation is JSON as ``conformance.ops`` encodes it; nothing here
interprets it.
"""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct

_Hexadecimal = Annotated[str, Meta(pattern="^([0-9a-f]{2})*$")]


class RecordedMemory(Struct, frozen=True):
    """Watched memory of an actor after an operation; ``content`` None is not readable."""

    actor: str
    address: int
    content: _Hexadecimal | None


class RecordedAnswer(Struct, frozen=True):
    """An answer that is allowed, or the kernel's.

    ``value`` and ``data`` None are not compared; ``counted`` data are those of a race, of which
    the kernel's need only be some.
    """

    value: int | None
    errno: str = ""
    data: _Hexadecimal | None = None
    memory: tuple[RecordedMemory, ...] = ()
    counted: bool = False


class RecordedStep(Struct, frozen=True):
    """One operation, the answers that the model allows, and the kernel's.

    ``seen`` is None and ``allowed`` empty for an operation that the kernel did not answer.
    ``waited_s`` is the time in seconds until an eventual answer, None for a single try.
    """

    operation: dict[str, Any]
    allowed: tuple[RecordedAnswer, ...] = ()
    seen: RecordedAnswer | None = None
    waited_s: float | None = None
