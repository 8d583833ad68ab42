"""DIAG_IOCSUNREG: a process stops following an event at an address and bit."""

from __future__ import annotations

import mmap
import os

from conformance.abi.layouts import DIAG_IOCSUNREG, USER_UNREG
from conformance.cases.declare import case, variants
from conformance.sut.data_file import Word
from conformance.sut.places import PAGE
from conformance.sut.user_events import UserEvents

DOC = "Documentation/trace/user_events.rst@v6.12: Unregistering"
SIZE = f"{DOC}: size is that of struct user_unreg"
KNOWN = f"{DOC}: address and bit must have been registered before"
CLEARED = f"{DOC}: ends updates of the bit; nothing is said about what it is left at"
MEMORY = f"{DOC}: nothing is said about memory that went away"

GET = "trace_events_user.c:user_unreg_get"
UNREG = "trace_events_user.c:user_events_ioctl_unreg"
CLEAR = "trace_events_user.c:user_event_mm_clear_bit"
FAULT = "trace_events_user.c:user_event_mm_fault_in"


# The structure


@case(
    "unregister.size",
    spec=GET,
    doc=SIZE,
    tier="full",
)
@variants(
    "size, tail, errno",
    {
        "0": (0, b"", "EINVAL"),
        "4": (4, b"", "EINVAL"),
        "15": (15, b"", "EINVAL"),
        "16": (16, b"", ""),
        "16-not-looking-behind": (16, b"\x01", ""),
        "17-zero": (17, b"\0", ""),
        "17-nonzero": (17, b"\x01", "E2BIG"),
        "4096-zero": (4096, bytes(4080), ""),
        "4096-nonzero-at-the-end": (4096, bytes(4079) + b"\x01", "E2BIG"),
        "4097-zero": (4097, bytes(4081), "E2BIG"),
        "huge": (0xFFFF_FFFF, b"", "E2BIG"),
    },
)
def test_size(ue: UserEvents, size: int, tail: bytes, errno: str) -> None:
    """A structure has 16 bytes or more up to a page, and zeros in what is unknown."""
    data = ue.open_data()
    word = data.register(ue.name()).word
    assert data.unregister(word, struct_size=size, tail=tail).errno == errno
    assert data.register(ue.name(), word=word).errno == ("EADDRINUSE" if errno else "")


@case("unregister.struct_unreadable", spec=GET, doc=SIZE)
@variants("address", {"null": 0, "first-page": 0x300, "kernel-half": 0xFFFF_8880_0000_0000})
def test_struct_unreadable(ue: UserEvents, address: int) -> None:
    """A structure that cannot be read is EFAULT."""
    data = ue.open_data()
    data.register(ue.name())
    assert data.ioctl(DIAG_IOCSUNREG, address).errno == "EFAULT"


@case(
    "unregister.struct_read_only",
    spec=GET,
    doc=SIZE,
    tier="full",
)
def test_struct_read_only(ue: UserEvents) -> None:
    """The structure is only read: it may lie in memory that cannot be written."""
    data = ue.open_data()
    word = data.register(ue.name()).word
    at = ue.process.map()
    ue.process.store(at, USER_UNREG.pack({"size": 16, "disable_addr": word.address}))
    ue.process.protect(at, mmap.PROT_READ)
    assert data.ioctl(DIAG_IOCSUNREG, at).value == 0


@case(
    "unregister.reserved",
    spec=GET,
    doc=f"{DOC}: the reserved members are to be zero",
)
@variants(
    "reserved, reserved2",
    {"byte-1": (1, 0), "short-1": (0, 1), "byte-80": (0x80, 0), "short-8000": (0, 0x8000)},
    quick=2,
)
def test_reserved(ue: UserEvents, reserved: int, reserved2: int) -> None:
    """Any bit in a reserved member is EINVAL, and the word stays registered."""
    data = ue.open_data()
    word = data.register(ue.name()).word
    assert data.unregister(word, reserved=reserved, reserved2=reserved2).errno == "EINVAL"
    assert data.unregister(word).errno == ""


@case("unregister.order", spec=GET, doc=f"{DOC}: nothing is said about two mistakes at once")
@variants(
    "size, reserved, present, errno",
    {
        "too-big-before-unreadable": (4097, 0, 4, "E2BIG"),
        "too-small-before-unreadable": (15, 0, 4, "EINVAL"),
        "too-big-before-reserved": (4097, 1, 16, "E2BIG"),
        "reserved-before-unknown": (16, 1, 16, "EINVAL"),
        "unreadable-before-unknown": (16, 0, 15, "EFAULT"),
    },
)
def test_order(ue: UserEvents, size: int, reserved: int, present: int, errno: str) -> None:
    """Size, then readability, then reserved members, then whether the word is known."""
    raw = USER_UNREG.pack({"size": size, "__reserved": reserved, "disable_addr": 0x1000})
    data = ue.open_data()
    assert data.ioctl(DIAG_IOCSUNREG, ue.process.place(raw[:present])).errno == errno


@case("unregister.tail_before_unknown", spec=GET, doc=SIZE)
def test_tail_before_unknown(ue: UserEvents) -> None:
    """Bytes that must be zero are judged before the word is looked for: E2BIG."""
    data = ue.open_data()
    word = ue.process.word()
    assert data.unregister(word, struct_size=24, tail=bytes(7) + b"\x01").errno == "E2BIG"
    assert data.unregister(word, struct_size=24, tail=bytes(8)).errno == "ENOENT"


# Which word


@case("unregister.never_registered", spec=UNREG, doc=KNOWN)
def test_never_registered(ue: UserEvents) -> None:
    """A process that never registered anything gets ENOENT, and its memory stays."""
    word = ue.process.word(value=0xFF)
    assert ue.open_data().unregister(word).errno == "ENOENT"
    assert word.value == 0xFF


@case(
    "unregister.unknown_word",
    spec=UNREG,
    doc=KNOWN,
    tier="full",
)
@variants(
    "offset, bit",
    {
        "next-bit": (0, 6),
        "bit-200": (0, 200),
        "bit-255": (0, 255),
        "bit-37": (0, 37),
        "bit-69": (0, 69),
        "bit-133": (0, 133),
        "word-before": (-4, 5),
        "word-behind": (4, 5),
        "inside-the-word": (1, 5),
    },
)
def test_unknown_word(ue: UserEvents, offset: int, bit: int) -> None:
    """Address and bit must both be the registered ones: else ENOENT and nothing changes."""
    data = ue.open_data()
    word = ue.process.word()
    data.register(ue.name(), word=word, bit=5)
    ue.tracefs.enable(ue.name())
    assert data.unregister(word.address + offset, bit=bit).errno == "ENOENT"
    assert word.value == 0x20
    assert data.unregister(word, bit=5).errno == ""


@case("unregister.unknown_address", spec=UNREG, doc=KNOWN)
@variants("address", {"null": 0, "kernel-half": 0xFFFF_8880_0000_0000, "last": (1 << 64) - 1})
def test_unknown_address(ue: UserEvents, address: int) -> None:
    """An address is only compared: one that could never be registered is ENOENT as well."""
    data = ue.open_data()
    data.register(ue.name())
    assert data.unregister(address).errno == "ENOENT"


@case("unregister.twice", spec=UNREG, doc=KNOWN)
def test_twice(ue: UserEvents) -> None:
    """A second unregistration of the same address and bit finds nothing: ENOENT."""
    data = ue.open_data()
    event = data.register(ue.name())
    assert data.unregister(event.word).value == 0
    assert data.unregister(event.word).errno == "ENOENT"


@case("unregister.any_descriptor", spec=UNREG, doc=DOC)
@variants(
    "flags",
    {"read-only": os.O_RDONLY, "write-only": os.O_WRONLY, "read-write": os.O_RDWR},
)
def test_any_descriptor(ue: UserEvents, flags: int) -> None:
    """Words belong to the process: any descriptor of it unregisters them."""
    word = ue.open_data().register(ue.name()).word
    assert ue.open_data(flags).unregister(word).value == 0


@case("unregister.after_close", spec=UNREG, doc=DOC)
def test_after_close(ue: UserEvents) -> None:
    """A word stays registered when the descriptor that registered it is closed."""
    data = ue.open_data()
    word = data.register(ue.name()).word
    data.close()
    other = ue.open_data()
    ue.tracefs.enable(ue.name())
    assert word.value == 1
    assert other.unregister(word).value == 0
    assert word.value == 0


@case(
    "unregister.other_process",
    spec=UNREG,
    doc=KNOWN,
    tier="full",
)
def test_other_process(ue: UserEvents) -> None:
    """A process cannot unregister what another registered at the same address: ENOENT."""
    data = ue.open_data()
    word = data.register(ue.name()).word
    ue.tracefs.enable(ue.name())
    other = ue.new_process()
    there = other.word_at(word.address, value=1)
    stranger = other.open_data()
    assert stranger.unregister(there).errno == "ENOENT"
    stranger.register(ue.name("own"), word=there, bit=1)
    assert stranger.unregister(there).errno == "ENOENT"
    assert (word.value, there.value) == (1, 1)


@case(
    "unregister.child_for_itself",
    spec="trace_events_user.c:user_event_mm_dup",
    doc=f"{DOC}: fork keeps registrations, to be undone in each process",
)
def test_child_for_itself(ue: UserEvents) -> None:
    """A child unregisters its own copy of a word; its parent goes on following the event."""
    data = ue.open_data()
    word = data.register(ue.name()).word
    child = ue.fork(ue.process)
    there = Word(child, word.address)
    copy = data.of(child)
    assert copy.unregister(there).value == 0
    assert copy.unregister(there).errno == "ENOENT"
    ue.tracefs.enable(ue.name())
    assert (word.wait(), there.wait()) == (1, 0)
    assert data.unregister(word).value == 0


@case(
    "unregister.parent_for_itself",
    spec="trace_events_user.c:user_event_mm_dup",
    doc=f"{DOC}: fork keeps registrations, to be undone in each process",
    tier="full",
)
def test_parent_for_itself(ue: UserEvents) -> None:
    """What the parent unregisters stays registered in a child it has forked."""
    data = ue.open_data()
    word = data.register(ue.name()).word
    child = ue.fork(ue.process)
    there = Word(child, word.address)
    assert data.unregister(word).value == 0
    ue.tracefs.enable(ue.name())
    assert (word.wait(), there.wait()) == (0, 1)
    assert data.of(child).unregister(there).value == 0


# What it does


@case("unregister.clears_the_bit", spec=CLEAR, doc=CLEARED)
def test_clears_the_bit(ue: UserEvents) -> None:
    """Unregistering clears the bit of an enabled event and leaves its neighbours alone."""
    data = ue.open_data()
    event = data.register(ue.name(), bit=3, word=ue.process.word(value=0xFFFFFFFF))
    ue.tracefs.enable(ue.name())
    assert event.word.value == 0xFFFFFFFF
    assert data.unregister(event.word, bit=3).value == 0
    assert event.word.value == 0xFFFFFFF7


@case("unregister.clears_at_any_place", spec=CLEAR, doc=CLEARED)
@variants(
    "size, offset, bit, left",
    {
        "u32-bit31": (4, 0, 31, 0x7FFF_FFFF),
        "u32-odd-bit0": (4, 4, 0, 0xFFFF_FFFE),
        "u32-odd-bit31": (4, 4, 31, 0x7FFF_FFFF),
        "u64-bit31": (8, 0, 31, 0xFFFF_FFFF_7FFF_FFFF),
        "u64-bit32": (8, 0, 32, 0xFFFF_FFFE_FFFF_FFFF),
        "u64-bit63": (8, 0, 63, 0x7FFF_FFFF_FFFF_FFFF),
    },
)
def test_clears_at_any_place(ue: UserEvents, size: int, offset: int, bit: int, left: int) -> None:
    """The right bit of a word of either size is cleared, also between 64-bit boundaries."""
    data = ue.open_data()
    word = ue.process.word(size, offset=offset)
    data.register(ue.name(), word=word, bit=bit)
    ue.process.store(word.address, b"\xff" * size)
    assert data.unregister(word, bit=bit).value == 0
    assert word.value == left


@case(
    "unregister.one_of_two_bits",
    spec=UNREG,
    doc=KNOWN,
)
def test_one_of_two_bits(ue: UserEvents) -> None:
    """Of two bits of one word only the named one is unregistered."""
    data = ue.open_data()
    word = ue.process.word()
    data.register(ue.name("a"), word=word, bit=0)
    data.register(ue.name("b"), word=word, bit=9)
    ue.tracefs.enable(ue.name("a"))
    ue.tracefs.enable(ue.name("b"))
    assert word.value == 0x201
    assert data.unregister(word).value == 0
    assert word.value == 0x200
    ue.tracefs.disable(ue.name("b"))
    assert word.value == 0


@case(
    "unregister.one_of_two_words",
    spec=UNREG,
    doc=KNOWN,
    tier="full",
)
def test_one_of_two_words(ue: UserEvents) -> None:
    """Of two words that follow one event only the named one is unregistered."""
    data = ue.open_data()
    first, second = data.register(ue.name()).word, data.register(ue.name()).word
    ue.tracefs.enable(ue.name())
    assert data.unregister(second).value == 0
    assert (first.value, second.value) == (1, 0)


@case(
    "unregister.ends_updates",
    spec=UNREG,
    doc=DOC,
)
def test_ends_updates(ue: UserEvents) -> None:
    """The kernel does not touch an unregistered word any more."""
    data = ue.open_data()
    word = data.register(ue.name()).word
    data.unregister(word)
    ue.tracefs.enable(ue.name())
    assert word.value == 0
    ue.process.store(word.address, b"\xff\xff\xff\xff")
    ue.tracefs.disable(ue.name())
    assert word.value == 0xFFFF_FFFF


@case(
    "unregister.write_index_stays",
    spec="trace_events_user.c:user_events_write_core",
    doc=DOC,
    tier="full",
)
def test_write_index_stays(ue: UserEvents) -> None:
    """The write index stays valid: events can be written without a word."""
    data = ue.open_data()
    event = data.register(f"{ue.name()} u32 a")
    data.unregister(event.word)
    assert data.write_event(0, bytes(4)).errno == ue.dated(
        "ebadf_when_disabled", since="EBADF", before=""
    )
    ue.tracefs.enable(ue.name())
    assert data.write_event(0, bytes(4)).value == 8
    assert data.write_event(1, bytes(4)).errno == "ENOENT"


@case("unregister.keeps_the_event", spec="trace_events_user.c:user_event_put", doc=DOC)
def test_keeps_the_event(ue: UserEvents) -> None:
    """Unregistering is not deleting: the descriptor keeps the event."""
    data = ue.open_data()
    data.unregister(data.register(f"{ue.name()} u32 a").word)
    assert ue.tracefs.dynamic_events(eventually=True) == f"u:{ue.name()} u32 a\n"


@case(
    "unregister.last_reference",
    spec="trace_events_user.c:user_event_enabler_destroy",
    doc="Documentation/trace/user_events.rst@v6.12: an event goes with its last reference",
    needs=("auto_delete",),
)
def test_last_reference(ue: UserEvents) -> None:
    """Once the descriptor is closed the word alone keeps the event; then it goes."""
    data, other = ue.open_data(), ue.open_data()
    word = data.register(ue.name()).word
    data.close()
    assert ue.tracefs.status(eventually=True) == f"{ue.name()}\n"
    other.unregister(word)
    assert ue.tracefs.status(eventually=True) == ""


# Memory that changed in between


@case("unregister.memory_unwritable", spec=CLEAR, doc=MEMORY)
@variants("protection", {"read-only": mmap.PROT_READ, "unmapped": None})
def test_memory_unwritable(ue: UserEvents, protection: int | None) -> None:
    """A word that cannot be written any more is EFAULT, and unregistered all the same."""
    data = ue.open_data()
    address = ue.process.map()
    data.register(ue.name(), enable_addr=address)
    if protection is None:
        ue.process.unmap(address)
    else:
        ue.process.protect(address, protection)
    assert data.unregister(address).errno == "EFAULT"
    assert data.unregister(address).errno == "ENOENT"


@case("unregister.memory_replaced", spec=CLEAR, doc=MEMORY)
def test_memory_replaced(ue: UserEvents) -> None:
    """The bit is cleared in whatever memory lies at the address now."""
    data = ue.open_data()
    address = ue.process.map()
    data.register(ue.name(), enable_addr=address)
    ue.process.unmap(address)
    ue.process.map_again(address)
    ue.process.store(address, b"\xff" * 8)
    assert data.unregister(address).value == 0
    assert ue.process.load(address, 8).data == b"\xfe" + b"\xff" * 7


@case("unregister.memory_not_touched", spec=FAULT, doc=MEMORY)
def test_memory_not_touched(ue: UserEvents) -> None:
    """A word in a page that is not there yet is unregistered at once, and reads zero."""
    data = ue.open_data()
    address = ue.process.map()
    data.register(ue.name(), enable_addr=address + PAGE - 4)
    ue.process.unmap(address)
    ue.process.map_again(address)
    assert data.unregister(address + PAGE - 4).value == 0
    assert ue.process.load(address + PAGE - 4, 4).data == b"\0\0\0\0"
