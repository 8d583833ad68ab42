"""Base of all operations, the reply to a call, the observation, and watched memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from errno import errorcode
from typing import Any, ClassVar

from msgspec import Struct, field

from conformance.ops.calls import Call


class Reply(Struct, frozen=True):
    """The agent's reply to one call: return value, error number (0 for none), bytes read."""

    value: int
    errno: int = 0
    data: bytes | None = None


class Resources(Struct):
    """Open slots and mapped ranges (address, length in bytes) that a process must give back."""

    slots: set[int] = field(default_factory=set)
    ranges: list[tuple[int, int]] = field(default_factory=list)


class Operation(Struct, frozen=True):
    """One system call, or a short fixed sequence of them, by the process ``actor``."""

    actor: str

    # The answer depends on which events exist, not on the memory of processes alone.
    depends_on_events: ClassVar[bool] = False
    # A process that performed the operation cannot serve another program.
    irreversible: ClassVar[bool] = False
    # The operation may change what other programs of the guest share.
    changes_guest: ClassVar[bool] = False

    def c_text(self) -> str:
        """The call in C, without actor and semicolon, as failures show it."""
        raise NotImplementedError(f"C text of {type(self).__name__}")

    def calls(self) -> list[Call]:
        """The calls that the agent performs; memory is compared after the last one."""
        raise NotImplementedError(f"calls of {type(self).__name__}")

    def decode(self, replies: Sequence[Reply]) -> tuple[int, bytes | None]:
        """Value and data of the observation, from the replies to ``calls`` if all succeeded."""
        last = replies[-1]
        return last.value, last.data

    def record(self, resources: Resources) -> None:
        """Add or remove the descriptors and mappings that a successful call changes."""

    def renamed(self, name: Callable[[str], str]) -> Operation:
        """The operation with actors renamed; ``self`` if its calls name no actor."""
        return self

    def encode(self) -> dict[str, Any]:
        """The operation as JSON values; bytes become ``{"hex": …}``."""
        encoded = _encoded_fields(self)
        encoded["op"] = type(self).__name__
        return encoded


def _encoded_fields(value: Any) -> dict[str, Any]:
    return {name: _encoded(getattr(value, name)) for name in value.__struct_fields__}


def _encoded(value: Any) -> Any:
    if value is None or type(value) in (int, str, bool):
        return value
    if isinstance(value, bytes):
        return {"hex": value.hex()}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple):
        return [_encoded(each) for each in value]
    if isinstance(value, Operation):
        return value.encode()
    return _encoded_fields(value)


def error_name(number: int) -> str:
    """The name of an error number, ``errno 4000`` for one without a name."""
    return errorcode.get(number, f"errno {number}")


class Observation(Struct, frozen=True):
    """What the kernel answered: the value, the name of the error, and the bytes read.

    ``value`` is -1 when ``errno`` is set; ``errno`` is "" on success, else a name such as
    "EINVAL".  ``watched`` holds the watched memory right after the operation, by (actor,
    address); None is memory that cannot be read.
    """

    value: int
    errno: str = ""
    data: bytes | None = None
    watched: tuple[tuple[tuple[str, int], bytes | None], ...] = ()

    @property
    def ok(self) -> bool:
        """Whether the call succeeded."""
        return not self.errno

    @property
    def text(self) -> str:
        """``data`` as text; bytes outside UTF-8 are kept as surrogates."""
        return (self.data or b"").decode("utf-8", "surrogateescape")


class Watch(Struct, frozen=True):
    """A range of an actor's memory that is compared after every operation; bytes."""

    actor: str
    address: int
    length: int
