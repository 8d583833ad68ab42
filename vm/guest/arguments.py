"""Convert the arguments of a task's system call to integers."""

from __future__ import annotations

from vm.guest.serving import BadCall

TYPE_CHECKING = False  # importing typing takes 0.2 s under emulation
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from vm.guest.native_engine import Slots

_MASK = (1 << 64) - 1


class EmptySlot(Exception):
    """An argument names a slot without a descriptor."""


def numbers(
    arguments: list[Any], slots: dict[int, int] | Slots, place: Callable[[bytes], int]
) -> tuple[list[int], int | None]:
    """The arguments as integers, and the address of an {"out": size}.

    `place` copies bytes into memory and returns their address.  Raises EmptySlot, BadCall.
    """
    out: int | None = None
    plain: list[int] = []
    for argument in arguments:
        if isinstance(argument, int):
            plain.append(argument & _MASK)
            continue
        ((kind, content),) = argument.items()
        if kind == "fd":
            if content not in slots:
                raise EmptySlot
            plain.append(slots[content])
        elif kind == "in":
            plain.append(place(bytes.fromhex(content)))
        elif kind == "out":
            out = place(bytes(int(content)))
            plain.append(out)
        else:
            raise BadCall(f"unknown argument: {argument!r:.200}")
    return plain, out
