"""A descriptor of user_events_data, and what a registration through it gives.

Everything here is sugar over operations: a method stores its arguments in the memory of
its process, makes the system call and loads the results, and returns what was observed.
Nothing here judges; the lock-step below does.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from conformance import ops
from conformance.abi import uapi
from conformance.abi.profile import PLACE_MEMBER, USER_REG_OF, Profile
from conformance.client.addresses import BUFFER, STRING, STRUCT
from conformance.ops import Observation

# What the write index holds before the kernel fills it in.
_UNSET = 0xFFFFFFFF


class Caller(Protocol):
    """The process that a descriptor or word belongs to."""

    actor: str

    @property
    def profile(self) -> Profile:
        """The contract this kernel is judged by."""
        ...

    def run_all(self, *program: ops.Operation) -> list[Observation]:
        """Run operations; one observation each."""
        ...

    def run(self, *program: ops.Operation) -> Observation:
        """Run operations; the observation of the last."""
        ...

    def queue(self, *program: ops.Operation) -> None:
        """Operations to run together with the next ones."""
        ...

    def eventually(self, operation: ops.Operation) -> Observation:
        """Repeat an operation until nothing is pending that changes its answer."""
        ...

    def free_slot(self) -> int:
        """A descriptor number that is not in use."""
        ...

    def word(self) -> Word:
        """A fresh enable word."""
        ...

    def place(self, data: bytes) -> int:
        """Store bytes at the end of fresh memory with nothing behind; their address."""
        ...

    def load_number(self, address: int, size: int) -> int:
        """Read an unsigned number of ``size`` bytes."""
        ...


@dataclass(frozen=True, slots=True)
class Word:
    """An enable word: its process, address and size in bytes."""

    process: Caller
    address: int
    size: int = 4

    @property
    def value(self) -> int:
        """The word as the process reads it now."""
        return self.process.load_number(self.address, self.size)

    def wait(self) -> int:
        """The word once everything the kernel still has to do about it is done."""
        seen = self.process.eventually(ops.Load(self.process.actor, self.address, self.size))
        return int.from_bytes(seen.data or b"", "little")


@dataclass(frozen=True, slots=True)
class Registration:
    """The outcome of DIAG_IOCSREG: what was observed, the write index, the word used.

    ``place`` is what kernels before 6.4 answer beside the write index: status_index or
    status_bit.  They use no word: there is none.
    """

    seen: Observation
    index: int
    place: int
    chosen: Word | None

    @property
    def word(self) -> Word:
        """The enable word.  Raises ValueError on a kernel that has a status page."""
        if self.chosen is None:
            raise ValueError("registrations have no word before 6.4")
        return self.chosen

    @property
    def errno(self) -> str:
        """Name of the error, "" on success."""
        return self.seen.errno

    @property
    def value(self) -> int:
        """What ioctl(2) returned."""
        return self.seen.value


class DataFile:
    """A descriptor of user_events_data."""

    def __init__(self, process: Caller, slot: int) -> None:
        self.process = process
        self.slot = slot

    def ioctl(self, request: int, argument: int) -> Observation:
        """Any ioctl(2)."""
        return self.process.run(ops.Ioctl(self.process.actor, self.slot, request, argument))

    def register(
        self,
        definition: str | bytes,
        *,
        word: Word | None = None,
        bit: int = 0,
        flags: int = 0,
        struct_size: int | None = None,
        tail: bytes = b"",
        at: int = STRUCT,
        enable_addr: int | None = None,
        enable_size: int | None = None,
        name_args: int | None = None,
    ) -> Registration:
        """DIAG_IOCSREG of a definition such as ``name u32 a; char[20] b``.

        Without ``word`` a fresh one is used, where the kernel uses words at all.  The
        keyword arguments below ``tail`` (bytes stored behind the structure) put raw values
        in the place of what fits: ``at`` is where the structure lies, ``name_args``
        replaces the pointer to the definition.
        """
        profile = self.process.profile
        layout = USER_REG_OF[profile.generation]
        members = {
            "size": layout.size if struct_size is None else struct_size,
            "name_args": STRING if name_args is None else name_args,
            "write_index": _UNSET,
        }
        if profile.has("remote_enable"):
            word = word or self.process.word()
            members |= {
                "enable_bit": bit,
                "enable_size": word.size if enable_size is None else enable_size,
                "flags": flags,
                "enable_addr": word.address if enable_addr is None else enable_addr,
            }
        else:
            word = None
            members[PLACE_MEMBER[profile.generation]] = _UNSET
        actor = self.process.actor
        program: list[ops.Operation] = [
            ops.Store(actor, at, layout.pack(members) + tail),
            ops.Store(actor, STRING, _c_string(definition)),
            ops.Ioctl(actor, self.slot, uapi.DIAG_IOCSREG, at),
            ops.Load(actor, at, layout.size),
        ]
        seen = self.process.run_all(*program)
        raw = seen[3].data
        found = layout.unpack(raw) if raw else {}
        place = found.get(PLACE_MEMBER.get(profile.generation, ""), 0)
        return Registration(seen[2], found.get("write_index", 0), place, word)

    def unregister(
        self,
        word: Word | int,
        bit: int = 0,
        *,
        struct_size: int = uapi.USER_UNREG.size,
        reserved: int = 0,
        reserved2: int = 0,
        tail: bytes = b"",
        at: int = STRUCT,
    ) -> Observation:
        """DIAG_IOCSUNREG of a word (or a raw address) and bit."""
        address = word.address if isinstance(word, Word) else word
        members = {
            "size": struct_size,
            "disable_bit": bit,
            "__reserved": reserved,
            "__reserved2": reserved2,
            "disable_addr": address,
        }
        actor = self.process.actor
        return self.process.run(
            ops.Store(actor, at, uapi.USER_UNREG.pack(members) + tail),
            ops.Ioctl(actor, self.slot, uapi.DIAG_IOCSUNREG, at),
        )

    def delete(self, name: str | bytes, *, eventually: bool = False) -> Observation:
        """DIAG_IOCSDEL of a registered name.

        ``eventually`` repeats it until references that are dropped later are gone.
        """
        actor = self.process.actor
        self.process.queue(ops.Store(actor, STRING, _c_string(name)))
        call = ops.Ioctl(actor, self.slot, uapi.DIAG_IOCSDEL, STRING)
        return self.process.eventually(call) if eventually else self.process.run(call)

    def write(self, data: bytes) -> Observation:
        """write(2) of raw bytes: write index and payload."""
        actor = self.process.actor
        return self.process.run(
            ops.Store(actor, BUFFER, data), ops.Write(actor, self.slot, BUFFER, len(data))
        )

    def write_at(self, address: int, count: int) -> Observation:
        """write(2) of whatever lies at an address."""
        return self.process.run(ops.Write(self.process.actor, self.slot, address, count))

    def write_event(self, index: int, payload: bytes = b"") -> Observation:
        """write(2) of a write index (signed, 32 bits) and a payload."""
        return self.write(struct.pack("<i", index) + payload)

    def pwrite(self, data: bytes, offset: int) -> Observation:
        """pwrite(2) of raw bytes at a file offset."""
        actor = self.process.actor
        return self.process.run(
            ops.Store(actor, BUFFER, data),
            ops.Pwrite(actor, self.slot, BUFFER, len(data), offset),
        )

    def pwrite_at(self, address: int, count: int, offset: int) -> Observation:
        """pwrite(2) of whatever lies at an address, at a file offset."""
        return self.process.run(ops.Pwrite(self.process.actor, self.slot, address, count, offset))

    def writev(self, parts: Sequence[bytes]) -> Observation:
        """writev(2) with one iovec per part."""
        program, vector = self._gather(parts)
        call = ops.Writev(self.process.actor, self.slot, vector, len(parts))
        return self.process.run(*program, call)

    def writev_at(self, segments: Sequence[tuple[int, int]]) -> Observation:
        """writev(2) of iovecs with these addresses and lengths, whatever lies there."""
        actor = self.process.actor
        vector = b"".join(struct.pack("<QQ", *segment) for segment in segments)
        call = ops.Writev(actor, self.slot, STRUCT, len(segments))
        return self.process.run(ops.Store(actor, STRUCT, vector), call)

    def pwritev(self, parts: Sequence[bytes], offset: int) -> Observation:
        """pwritev(2) with one iovec per part at a file offset."""
        program, vector = self._gather(parts)
        call = ops.Pwritev(self.process.actor, self.slot, vector, len(parts), offset)
        return self.process.run(*program, call)

    def submit(self, data: bytes, *, offset: int = 0) -> Observation:
        """A write of raw bytes through io_uring."""
        actor = self.process.actor
        self.process.queue(ops.Store(actor, BUFFER, data))
        return self.process.run(ops.SubmitWrite(actor, self.slot, BUFFER, len(data), offset))

    def submit_at(self, address: int, count: int, *, vector: bool = False) -> Observation:
        """A write through io_uring of whatever lies at an address: bytes or iovecs."""
        actor = self.process.actor
        return self.process.run(ops.SubmitWrite(actor, self.slot, address, count, vector=vector))

    def submitv(self, parts: Sequence[bytes]) -> Observation:
        """A writev through io_uring with one iovec per part."""
        program, vector = self._gather(parts)
        call = ops.SubmitWrite(self.process.actor, self.slot, vector, len(parts), vector=True)
        return self.process.run(*program, call)

    def _gather(self, parts: Sequence[bytes]) -> tuple[list[ops.Operation], int]:
        """Stores of the parts and of iovecs that point to them."""
        actor = self.process.actor
        program: list[ops.Operation] = []
        vector = b""
        position = BUFFER
        for part in parts:
            if part:
                program.append(ops.Store(actor, position, part))
            vector += struct.pack("<QQ", position, len(part))
            position += len(part)
        if vector:
            program.append(ops.Store(actor, STRUCT, vector))
        return program, STRUCT

    def close(self) -> Observation:
        """close(2)."""
        return self.process.run(ops.Close(self.process.actor, self.slot))

    def dup(self) -> DataFile:
        """A second descriptor of the same open file."""
        slot = self.process.free_slot()
        self.process.run(ops.Dup(self.process.actor, self.slot, slot))
        return DataFile(self.process, slot)

    def of(self, process: Caller) -> DataFile:
        """The copy of this descriptor that a forked process has."""
        return DataFile(process, self.slot)


def _c_string(text: str | bytes) -> bytes:
    return (text.encode() if isinstance(text, str) else text) + b"\0"
