"""What a case sees: processes that use user_events, words, descriptors, registrations.

Everything here is sugar over operations: a method stores its arguments in the memory of
its process, makes the system call and loads the results, and returns what was observed.
Nothing here judges; the lock-step below does.
"""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from conformance.abi import layouts
from conformance.abi.profiles import Generation, Profile
from conformance.program import operations as op
from conformance.program.operations import Observation
from conformance.sut.lockstep import Lockstep
from conformance.sut.tracefs import DATA, Tracefs

T = TypeVar("T")

READ_WRITE = mmap.PROT_READ | mmap.PROT_WRITE
PAGE = 4096
# Every process of a program maps the same: structures, strings and buffers at SCRATCH,
# enable words at WORDS, and what a case asks for from FREE on.
SCRATCH = 0x2000_0000_0000
_STRUCT = SCRATCH
_STRING = SCRATCH + 2 * PAGE
_BUFFER = SCRATCH + 16 * PAGE
_SCRATCH_PAGES = 64
WORDS = 0x2000_1000_0000
_FREE = 0x2000_2000_0000
# Words lie this many bytes apart, with a pattern around them that must never change.
_WORD_SPACING = 64
_GUARD = 0xA5
_GUARD_BYTES = 8
# What the member is called in which registration tells the place in the status page.
_PLACE = {Generation.BYTE_STATUS: "status_index", Generation.BIT_STATUS: "status_bit"}
# How long, in seconds of an idle machine, the kernel may take for work it does later:
# RCU grace periods and work queues; the references of user_events need the longest.
EVENTUALLY = 10.0


@dataclass(frozen=True, slots=True)
class Word:
    """An enable word: its process, address and size in bytes."""

    process: Process
    address: int
    size: int = 4

    @property
    def value(self) -> int:
        """The word as the process reads it now."""
        return self.process.load_number(self.address, self.size)

    def wait(self) -> int:
        """The word once everything the kernel still has to do about it is done."""
        seen = self.process.eventually(op.Load(self.process.actor, self.address, self.size))
        return int.from_bytes(seen.data or b"", "little")


@dataclass(frozen=True, slots=True)
class Registration:
    """The outcome of DIAG_IOCSREG: what was observed, the write index, the word used.

    ``place`` is what kernels before 6.4 answer beside the write index: status_index or
    status_bit.  They use no word: there is none.
    """

    seen: Observation
    index: int
    bit: int
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

    def __init__(self, process: Process, slot: int) -> None:
        self.process = process
        self.slot = slot

    def ioctl(self, request: int, argument: int) -> Observation:
        """Any ioctl(2)."""
        return self.process.run(op.Ioctl(self.process.actor, self.slot, request, argument))

    def register(
        self,
        definition: str | bytes,
        *,
        word: Word | None = None,
        bit: int = 0,
        flags: int = 0,
        struct_size: int | None = None,
        tail: bytes = b"",
        at: int = _STRUCT,
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
        layout = registration_layout(profile)
        members = {
            "size": layout.size if struct_size is None else struct_size,
            "name_args": _STRING if name_args is None else name_args,
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
            members[_PLACE[profile.generation]] = _UNSET
        actor = self.process.actor
        program: list[op.Operation] = [
            op.Store(actor, at, layout.pack(members) + tail),
            op.Store(actor, _STRING, _c_string(definition)),
            op.Ioctl(actor, self.slot, layouts.DIAG_IOCSREG, at),
            op.Load(actor, at, layout.size),
        ]
        seen = self.process.run_all(*program)
        raw = seen[3].data
        found = layout.unpack(raw) if raw else {}
        place = found.get(_PLACE.get(profile.generation, ""), 0)
        return Registration(seen[2], found.get("write_index", 0), bit, place, word)

    def unregister(
        self,
        word: Word | int,
        bit: int = 0,
        *,
        struct_size: int = layouts.USER_UNREG.size,
        reserved: int = 0,
        reserved2: int = 0,
        tail: bytes = b"",
        at: int = _STRUCT,
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
            op.Store(actor, at, layouts.USER_UNREG.pack(members) + tail),
            op.Ioctl(actor, self.slot, layouts.DIAG_IOCSUNREG, at),
        )

    def delete(self, name: str | bytes, *, eventually: bool = False) -> Observation:
        """DIAG_IOCSDEL of a registered name.

        ``eventually`` repeats it until references that are dropped later are gone.
        """
        actor = self.process.actor
        self.process.queue(op.Store(actor, _STRING, _c_string(name)))
        call = op.Ioctl(actor, self.slot, layouts.DIAG_IOCSDEL, _STRING)
        return self.process.eventually(call) if eventually else self.process.run(call)

    def write(self, data: bytes) -> Observation:
        """write(2) of raw bytes: write index and payload."""
        actor = self.process.actor
        return self.process.run(
            op.Store(actor, _BUFFER, data), op.Write(actor, self.slot, _BUFFER, len(data))
        )

    def write_at(self, address: int, count: int) -> Observation:
        """write(2) of whatever lies at an address."""
        return self.process.run(op.Write(self.process.actor, self.slot, address, count))

    def write_event(self, index: int, payload: bytes = b"") -> Observation:
        """write(2) of a write index (signed, 32 bits) and a payload."""
        return self.write(struct.pack("<i", index) + payload)

    def pwrite(self, data: bytes, offset: int) -> Observation:
        """pwrite(2) of raw bytes at a file offset."""
        actor = self.process.actor
        return self.process.run(
            op.Store(actor, _BUFFER, data),
            op.Pwrite(actor, self.slot, _BUFFER, len(data), offset),
        )

    def writev(self, parts: Sequence[bytes]) -> Observation:
        """writev(2) with one iovec per part."""
        program, vector = self._gather(parts)
        call = op.Writev(self.process.actor, self.slot, vector, len(parts))
        return self.process.run(*program, call)

    def writev_at(self, segments: Sequence[tuple[int, int]]) -> Observation:
        """writev(2) of iovecs with these addresses and lengths, whatever lies there."""
        actor = self.process.actor
        vector = b"".join(struct.pack("<QQ", *segment) for segment in segments)
        call = op.Writev(actor, self.slot, _STRUCT, len(segments))
        return self.process.run(op.Store(actor, _STRUCT, vector), call)

    def pwritev(self, parts: Sequence[bytes], offset: int) -> Observation:
        """pwritev(2) with one iovec per part at a file offset."""
        program, vector = self._gather(parts)
        call = op.Pwritev(self.process.actor, self.slot, vector, len(parts), offset)
        return self.process.run(*program, call)

    def _gather(self, parts: Sequence[bytes]) -> tuple[list[op.Operation], int]:
        """Stores of the parts and of iovecs that point to them."""
        actor = self.process.actor
        program: list[op.Operation] = []
        vector = b""
        position = _BUFFER
        for part in parts:
            if part:
                program.append(op.Store(actor, position, part))
            vector += struct.pack("<QQ", position, len(part))
            position += len(part)
        if vector:
            program.append(op.Store(actor, _STRUCT, vector))
        return program, _STRUCT

    def close(self) -> Observation:
        """close(2)."""
        return self.process.run(op.Close(self.process.actor, self.slot))

    def dup(self) -> DataFile:
        """A second descriptor of the same open file."""
        slot = self.process.free_slot()
        self.process.run(op.Dup(self.process.actor, self.slot, slot))
        return DataFile(self.process, slot)

    def of(self, process: Process) -> DataFile:
        """The copy of this descriptor that a forked process has."""
        return DataFile(process, self.slot)


class Process:
    """An actor: a process with memory and descriptors of its own."""

    def __init__(self, lockstep: Lockstep, actor: str) -> None:
        self.actor = actor
        self._lockstep = lockstep
        self._slots = 3
        self._words = 0
        self._free = _FREE

    @property
    def profile(self) -> Profile:
        """The contract this kernel is judged by."""
        return self._lockstep.model.profile

    def run_all(self, *program: op.Operation) -> list[Observation]:
        """Run operations of this process; one observation each."""
        return self._lockstep.run(*program)

    def run(self, *program: op.Operation) -> Observation:
        """Run operations of this process; the observation of the last."""
        return self._lockstep.run(*program)[-1]

    def queue(self, *program: op.Operation) -> None:
        """Operations to run together with the next ones: nobody waits for their answers."""
        self._lockstep.queue(*program)

    def eventually(self, operation: op.Operation) -> Observation:
        """Repeat an operation until nothing is pending that changes its answer."""
        return self._lockstep.eventually(operation, EVENTUALLY)

    def prepare(self) -> None:
        """Come into being and map what the methods of this module need."""
        self.queue(
            op.Spawn(self.actor),
            op.Mmap(self.actor, SCRATCH, _SCRATCH_PAGES * PAGE, READ_WRITE, mmap.MAP_PRIVATE),
            op.Mmap(self.actor, WORDS, PAGE, READ_WRITE, mmap.MAP_PRIVATE),
        )

    def free_slot(self) -> int:
        """A descriptor number that is not in use."""
        self._slots += 1
        return self._slots

    def open(self, path: str, flags: int = os.O_RDWR) -> tuple[Observation, int]:
        """open(2) of any path; what was observed and the slot."""
        slot = self.free_slot()
        return self.run(op.Open(self.actor, slot, path, flags)), slot

    def open_data(self, flags: int = os.O_RDWR) -> DataFile:
        """Open user_events_data."""
        slot = self.free_slot()
        self.queue(op.Open(self.actor, slot, DATA, flags))
        return DataFile(self, slot)

    def word(self, size: int = 4, *, value: int = 0, offset: int = 0) -> Word:
        """A fresh enable word in touched memory, watched with its neighbours.

        ``size`` in bytes; ``offset`` is added to a 64-byte aligned address; ``value`` is
        what the word holds before anything is registered.
        """
        self._words += 1
        address = WORDS + self._words * _WORD_SPACING + offset
        if address + size + _GUARD_BYTES > WORDS + PAGE:
            raise ValueError("a program has room for 62 words; map more memory")
        guard = bytes([_GUARD]) * _GUARD_BYTES
        content = guard + value.to_bytes(size, "little") + guard
        self.queue(op.Store(self.actor, address - _GUARD_BYTES, content))
        return self.word_at(address, size, value=None)

    def word_at(self, address: int, size: int = 4, *, value: int | None = 0) -> Word:
        """A word at an address of the case's own; stored unless ``value`` is None."""
        if value is not None:
            self.queue(op.Store(self.actor, address, value.to_bytes(size, "little")))
        guarded = WORDS <= address < WORDS + PAGE
        margin = _GUARD_BYTES if guarded else 0
        self._lockstep.watch(self.actor, address - margin, size + 2 * margin)
        return Word(self, address, size)

    def map(self, pages: int = 1, *, protection: int = READ_WRITE, shared: bool = False) -> int:
        """Anonymous memory, not touched yet; its address.  A free page follows it."""
        address = self._free
        self._free += (pages + 1) * PAGE
        flags = mmap.MAP_SHARED if shared else mmap.MAP_PRIVATE
        self.run(op.Mmap(self.actor, address, pages * PAGE, protection, flags))
        return address

    def map_again(self, address: int, pages: int = 1) -> Observation:
        """Fresh private memory at an address that was unmapped before."""
        return self.run(op.Mmap(self.actor, address, pages * PAGE, READ_WRITE, mmap.MAP_PRIVATE))

    def map_status(
        self,
        file: int,
        *,
        length: int = PAGE,
        protection: int = mmap.PROT_READ,
        shared: bool = True,
        offset: int = 0,
    ) -> tuple[Observation, int]:
        """mmap(2) of a descriptor of user_events_status; what was observed and the address."""
        address = self._free
        self._free += (length // PAGE + 2) * PAGE
        flags = mmap.MAP_SHARED if shared else mmap.MAP_PRIVATE
        seen = self.run(op.Mmap(self.actor, address, length, protection, flags, file, offset))
        return seen, address

    def place(self, data: bytes) -> int:
        """Store bytes at the end of fresh memory with nothing behind; their address."""
        pages = (len(data) + PAGE - 1) // PAGE or 1
        address = self.map(pages) + pages * PAGE - len(data)
        self.store(address, data)
        return address

    def unmap(self, address: int, pages: int = 1) -> Observation:
        """munmap(2) of whole pages."""
        return self.run(op.Munmap(self.actor, address, pages * PAGE))

    def protect(self, address: int, protection: int, pages: int = 1) -> Observation:
        """mprotect(2) of whole pages."""
        return self.run(op.Mprotect(self.actor, address, pages * PAGE, protection))

    def store(self, address: int, data: bytes) -> Observation:
        """Write memory."""
        return self.run(op.Store(self.actor, address, data))

    def load(self, address: int, length: int) -> Observation:
        """Read memory."""
        return self.run(op.Load(self.actor, address, length))

    def load_number(self, address: int, size: int) -> int:
        """Read an unsigned number of ``size`` bytes."""
        return int.from_bytes(self.load(address, size).data or b"", "little")

    def setuid(self, uid: int = 1000) -> Observation:
        """Become an ordinary user, without capabilities, for good."""
        return self.run(op.Setuid(self.actor, uid))

    def fork(self, child: str) -> Process:
        """fork(2); the watched memory is watched in the child as well."""
        self.run(op.Fork(self.actor, child))
        copy = Process(self._lockstep, child)
        copy._slots, copy._words, copy._free = self._slots, self._words, self._free
        for watch in self._lockstep.watches_of(self.actor):
            self._lockstep.watch(child, watch.address, watch.length)
        return copy

    def exit(self, status: int = 0) -> Observation:
        """_exit(2)."""
        self._lockstep.unwatch(self.actor)
        return self.run(op.Exit(self.actor, status))


class UserEvents:
    """user_events of one system, as one case uses it.

    ``serial`` tells this program's event names from those of other programs in the same
    guest.
    """

    def __init__(self, lockstep: Lockstep, serial: int = 0) -> None:
        self.lockstep = lockstep
        self.prefix = f"t{serial:05}_"
        self._processes = 0
        self._main: Process | None = None
        self._tracefs: Tracefs | None = None

    @property
    def profile(self) -> Profile:
        """The contract this kernel is judged by."""
        return self.lockstep.model.profile

    @property
    def process(self) -> Process:
        """The program's first process."""
        if self._main is None:
            self._main = self.new_process()
        return self._main

    @property
    def tracefs(self) -> Tracefs:
        """The files of tracefs, used by a root process that registers nothing."""
        if self._tracefs is None:
            self.lockstep.queue(op.Spawn("root"))
            self._tracefs = Tracefs(self.lockstep, "root", self.prefix, EVENTUALLY)
        return self._tracefs

    def name(self, stem: str = "e") -> str:
        """An event name nobody else uses; equal stems give equal names."""
        return self.prefix + stem

    def new_process(self) -> Process:
        """One more process, root, that has touched nothing yet."""
        self._processes += 1
        process = Process(self.lockstep, f"p{self._processes}")
        process.prepare()
        return process

    def fork(self, parent: Process) -> Process:
        """A copy of a process."""
        self._processes += 1
        return parent.fork(f"p{self._processes}")

    def open_data(self, flags: int = os.O_RDWR) -> DataFile:
        """Open user_events_data in the first process."""
        return self.process.open_data(flags)

    def dated(self, switch: str, *, since: T, before: T) -> T:
        """A literal that changed with a dated switch."""
        return since if self.profile.has(switch) else before

    def line(self, *values: str, dump: str = "", name: str = "e") -> str:
        """The body of a trace line of event ``name()``, whose fields show these values.

        Give them in the order of definition; before 6.5 the last field comes first.
        ``dump`` is the payload in hexadecimal bytes, which is all that is shown before 6.4.
        """
        if not self.profile.has("remote_enable"):
            return dump
        ordered = values if self.profile.has("fields_printed_in_order") else values[::-1]
        return f"{self.name(name)}: {' '.join(ordered)}"

    def status_line(self, index: int, name: str, used_by: str = "") -> str:
        """A line of user_events_status, with its newline.

        ``index`` is the event's place in the status page, which is shown before 6.4.
        """
        place = "" if self.profile.has("remote_enable") else f"{index}:"
        return f"{place}{name}" + (f" # Used by {used_by}" if used_by else "") + "\n"


# What the write index holds before the kernel fills it in.
_UNSET = 0xFFFFFFFF


def registration_layout(profile: Profile) -> layouts.Layout:
    """struct user_reg of a profile's kernels."""
    return {
        Generation.BYTE_STATUS: layouts.USER_REG_BYTE_STATUS,
        Generation.BIT_STATUS: layouts.USER_REG_BIT_STATUS,
        Generation.REMOTE_ENABLE: layouts.USER_REG,
    }[profile.generation]


def _c_string(text: str | bytes) -> bytes:
    return (text.encode() if isinstance(text, str) else text) + b"\0"
