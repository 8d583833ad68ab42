"""Observed memory: what the model takes over before a call, and what is compared after it."""

from __future__ import annotations

import mmap
from collections.abc import Iterable
from functools import partial

from msgspec import Struct

from conformance import ops
from conformance.abi import uapi
from conformance.abi.profile import USER_REG_OF, Profile
from conformance.model.errors import Errno
from conformance.model.machine import Model
from conformance.model.memory.address_space import AddressSpace
from conformance.model.state.world import World
from vm.recorder.recording import Call, Details, Memory

_RIGHTS = {"r": mmap.PROT_READ, "w": mmap.PROT_WRITE, "x": mmap.PROT_EXEC}
# The member with the bit number is at the same place in both structures.
_BIT_MEMBER = uapi.USER_REG.member("enable_bit")
_WORD_SIZES = (8, 4)


def take_over(model: Model, actor: str, details: Details) -> None:
    """Give the model the memory that was read; what could not be read is not mapped."""

    def learn(world: World) -> None:
        memory = world.process(actor).memory
        for read in details.memory:
            _assume(memory, read, details.rights.get(read.address))

    model.observe(learn)


def _assume(memory: AddressSpace, read: Memory, rights: str | None) -> None:
    protection = None if rights is None else sum(_RIGHTS.get(each, 0) for each in rights)
    shared = rights is not None and "s" in rights
    if read.data:
        memory.assume(read.address, read.data, protection, shared=shared)
    if len(read.data) < read.wanted:
        memory.forget(read.address + len(read.data), read.wanted - len(read.data))


def unmap(model: Model, operation: ops.Mmap) -> None:
    """What was mapped where the kernel puts a new mapping is gone: munmap(2) is not recorded."""

    def learn(world: World) -> None:
        memory = world.process(operation.actor).memory
        memory.forget(operation.address, operation.length)

    model.observe(learn)


def bytes_at(memory: Iterable[Memory], address: int, length: int) -> bytes | None:
    """The last reading of a range, None if it was not read whole."""
    found = None
    for read in memory:
        start = address - read.address
        if start >= 0 and start + length <= len(read.data):
            found = read.data[start : start + length]
    return found


class Watched(Struct, frozen=True):
    """A range that is compared after a call; ``bits`` are those of a word that the kernel owns."""

    watch: ops.Watch
    before: bytes
    bits: int | None = None

    def seen(self, memory: Iterable[Memory]) -> bytes | None:
        """The range as observed; of a word the bits of the program as they were before.

        The program may change its own bits at any time.
        """
        found = bytes_at(memory, self.watch.address, self.watch.length)
        if found is None or self.bits is None:
            return found
        one, other = (int.from_bytes(each, "little") for each in (found, self.before))
        mask = (1 << 8 * self.watch.length) - 1
        merged = one & self.bits | other & ~self.bits & mask
        return merged.to_bytes(self.watch.length, "little")


def watched(model: Model, call: Call, operation: ops.Ioctl) -> list[Watched]:
    """The enable word of an ioctl and the results in its structure, if they can be read."""
    profile, memory = model.profile, call.before.memory
    found = []
    for watch in _results(profile, operation):
        before = bytes_at(memory, watch.address, watch.length)
        if before is not None:
            found.append(Watched(watch, before))
    word = _word(profile, call, operation)
    if word is not None:
        before = bytes_at(memory, word.address, word.length)
        bit = bytes_at(memory, operation.argument + _BIT_MEMBER.offset, 1) or b"\0"
        if before is not None:
            bits = registered_bits(model.world, word) | 1 << bit[0]
            found.append(Watched(word, before, bits))
    return found


def _results(profile: Profile, operation: ops.Ioctl) -> list[ops.Watch]:
    layout = USER_REG_OF[profile.generation]
    if operation.request != uapi.DIAG_IOCSREG:
        return []
    return [
        ops.Watch(operation.actor, operation.argument + each.offset, each.size)
        for each in layout.members
        if each.name in uapi.REG_RESULTS
    ]


def _word(profile: Profile, call: Call, operation: ops.Ioctl) -> ops.Watch | None:
    """The enable word that an ioctl names."""
    layouts = {uapi.DIAG_IOCSREG: uapi.USER_REG, uapi.DIAG_IOCSUNREG: uapi.USER_UNREG}
    layout = layouts.get(operation.request)
    if layout is None or not profile.has("remote_enable"):
        return None
    raw = bytes_at(call.before.memory, operation.argument, layout.size)
    if raw is None:
        return None
    values = layout.unpack(raw)
    address = values.get("enable_addr", values.get("disable_addr", 0))
    # To unregister a bit needs no size: that of the word, as far as it can be read.
    sizes = (values["enable_size"],) if "enable_size" in values else _WORD_SIZES
    for size in sizes:
        if size in _WORD_SIZES and bytes_at(call.before.memory, address, size) is not None:
            return ops.Watch(operation.actor, address, size)
    return None


def registered_bits(world: World, word: ops.Watch) -> int:
    """The bits of a word that its process has registered."""
    process = world.processes.get(word.actor)
    bits = 0
    for enabler in (process.enablers or []) if process is not None else []:
        place = enabler.bit + 8 * (enabler.address - word.address)
        if 0 <= place < 8 * word.length:
            bits |= 1 << place
    return bits


def unexplained_words(model: Model, actor: str, details: Details) -> int:
    """How many words have registered bits that neither kernel nor listener set or cleared."""
    count = 0
    for read in details.memory:
        word = ops.Watch(actor, read.address, len(read.data))
        bits = registered_bits(model.world, word)
        expected = model.observe(partial(_read, word=word))
        seen = int.from_bytes(read.data, "little")
        count += all(((int.from_bytes(each, "little") ^ seen) & bits) for each in expected)
    return count


def _read(world: World, word: ops.Watch) -> bytes:
    try:
        return world.process(word.actor).memory.read(word.address, word.length)
    except Errno:
        return bytes(word.length)
