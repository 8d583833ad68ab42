"""Descriptor of user_events_data: register, unregister, delete, write.

A method stores its arguments in the memory of its process, makes the system call, loads the
results and returns the observation.  The lock-step comparison below judges.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from msgspec import Struct

from conformance import ops
from conformance.abi import uapi
from conformance.abi.profile import PLACE_MEMBER, USER_REG_OF, Profile
from conformance.client.addresses import BUFFER, STRING, STRUCT
from conformance.client.caller import Descriptor, Word
from conformance.ops import Observation

# Value of the write index before the kernel sets it.
_UNSET = 0xFFFFFFFF


class Registration(Struct, frozen=True):
    """Result of DIAG_IOCSREG: observation, write index and enable word.

    Before 6.4 there is no word, and ``place`` is the status_index or status_bit.
    """

    seen: Observation
    index: int
    place: int
    chosen: Word | None

    @property
    def word(self) -> Word:
        """The enable word.  Raises ValueError before 6.4."""
        if self.chosen is None:
            raise ValueError("registrations have no word before 6.4")
        return self.chosen

    @property
    def word_value(self) -> int | None:
        """The value of the enable word, None before 6.4."""
        return self.chosen.value if self.chosen else None

    @property
    def errno(self) -> str:
        """Name of the error, "" on success."""
        return self.seen.errno

    @property
    def value(self) -> int:
        """The return value of ioctl(2)."""
        return self.seen.value


class DataFile(Descriptor):
    """A descriptor of user_events_data."""

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

        Since 6.4 a fresh word is enabled unless ``word`` is given.  ``tail`` is stored after the
        structure, ``at`` is the structure's address.  The other arguments override single members.
        """
        profile = self.process.profile
        layout = USER_REG_OF[profile.generation]
        word = (word or self.process.word()) if profile.has("remote_enable") else None
        members = reg_members(profile, STRING, word, bit, flags)
        overrides = {
            "size": struct_size,
            "name_args": name_args,
            "enable_addr": enable_addr,
            "enable_size": enable_size,
        }
        for name, value in overrides.items():
            if value is not None and name in members:
                members[name] = value
        actor = self.process.actor
        program: list[ops.Operation] = [
            ops.Store(actor, at, layout.pack(members) + tail),
            ops.Store(actor, STRING, c_string(definition)),
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

        ``eventually`` repeats the call until deferred references are dropped.
        """
        actor = self.process.actor
        self.process.queue(ops.Store(actor, STRING, c_string(name)))
        call = ops.Ioctl(actor, self.slot, uapi.DIAG_IOCSDEL, STRING)
        return self.process.eventually(call) if eventually else self.process.run(call)

    def write(self, data: bytes) -> Observation:
        """write(2) of raw bytes: write index and payload."""
        actor = self.process.actor
        return self.process.run(
            ops.Store(actor, BUFFER, data), ops.Write(actor, self.slot, BUFFER, len(data))
        )

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
        """pwrite(2) of memory at an address, at a file offset."""
        return self.process.run(ops.Pwrite(self.process.actor, self.slot, address, count, offset))

    def writev(self, parts: Sequence[bytes]) -> Observation:
        """writev(2) with one iovec per part."""
        program, vector = self._gather(parts)
        call = ops.Writev(self.process.actor, self.slot, vector, len(parts))
        return self.process.run(*program, call)

    def writev_at(self, segments: Sequence[tuple[int, int]]) -> Observation:
        """writev(2) of iovecs with these addresses and lengths."""
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
        """IORING_OP_WRITE of raw bytes."""
        actor = self.process.actor
        self.process.queue(ops.Store(actor, BUFFER, data))
        return self.process.run(ops.SubmitWrite(actor, self.slot, BUFFER, len(data), offset))

    def submit_registered(self, data: bytes) -> Observation:
        """IORING_OP_WRITE_FIXED of raw bytes in a registered buffer."""
        actor = self.process.actor
        self.process.queue(ops.Store(actor, BUFFER, data))
        call = ops.SubmitWrite(actor, self.slot, BUFFER, len(data), registered=True)
        return self.process.run(call)

    def submit_at(self, address: int, count: int, *, vector: bool = False) -> Observation:
        """IORING_OP_WRITE of memory, or IORING_OP_WRITEV of iovecs, at an address."""
        actor = self.process.actor
        return self.process.run(ops.SubmitWrite(actor, self.slot, address, count, vector=vector))

    def submitv(self, parts: Sequence[bytes]) -> Observation:
        """IORING_OP_WRITEV with one iovec per part."""
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

    def dup(self) -> DataFile:
        """dup(2): a second descriptor of the same open file."""
        slot = self.process.free_slot()
        self.process.run(ops.Dup(self.process.actor, self.slot, slot))
        return DataFile(self.process, slot)


def reg_members(
    profile: Profile, name_args: int, word: Word | None, bit: int, flags: int
) -> dict[str, int]:
    """The members of struct user_reg before the call; there is a ``word`` since 6.4."""
    generation = profile.generation
    members = {"size": USER_REG_OF[generation].size, "name_args": name_args, "write_index": _UNSET}
    if word is None:
        return members | {PLACE_MEMBER[generation]: _UNSET}
    return members | {
        "enable_bit": bit,
        "enable_size": word.size,
        "flags": flags,
        "enable_addr": word.address,
    }


def c_string(text: str | bytes) -> bytes:
    """Text with the NUL that ends it."""
    return (text.encode() if isinstance(text, str) else text) + b"\0"
