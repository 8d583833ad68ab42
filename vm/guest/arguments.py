"""The arguments of a system call that a task performs, as the kernel gets them."""

from __future__ import annotations

from vm.guest.serving import BadCall

TYPE_CHECKING = False  # as typing's, whose import costs a fifth of a second here
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from vm.guest.native_engine import Slots

_MASK = (1 << 64) - 1


class NoSlot(Exception):
    """An argument names a slot that holds no descriptor."""


def numbers(
    arguments: list[Any], slots: dict[int, int] | Slots, place: Callable[[bytes], int]
) -> tuple[list[int], int | None]:
    """Arguments as the kernel gets them, and where an {"out": size} is.

    ``place`` puts bytes into memory.  Raises NoSlot, BadCall.
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
                raise NoSlot
            plain.append(slots[content])
        elif kind == "in":
            plain.append(place(bytes.fromhex(content)))
        elif kind == "out":
            out = place(bytes(int(content)))
            plain.append(out)
        else:
            raise BadCall(f"no such argument: {argument!r:.200}")
    return plain, out
