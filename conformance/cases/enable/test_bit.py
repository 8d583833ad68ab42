"""Enable word: the kernel changes the registered bit and nothing else."""

from __future__ import annotations

from conformance.cases.case import surface, variants
from conformance.client.user_events import UserEvents

case = surface(
    "enable",
    spec="trace_events_user.c:user_event_enabler_write",
    doc="Documentation/trace/user_events.rst@v6.12",
    profiles="6.4..",
)

GUARD = b"\xa5" * 8


@case(
    spec="set_bit, clear_bit",
    doc="Status: the bit that was registered is updated when tools attach and detach",
    tier="full",
)
@variants(0, 7, 8, 15, 16, 23, 24, 31)
def test_bit_of_32(ue: UserEvents, bit: int) -> None:
    """Enabling sets only the registered bit of a 4-byte word; disabling clears only that bit."""
    word = ue.event(bit=bit).word
    assert word.value == 0
    ue.tracefs.enable(ue.name())
    assert word.value == 1 << bit
    ue.process.store(word.address, b"\xff\xff\xff\xff")
    ue.tracefs.disable(ue.name())
    assert word.value == 0xFFFFFFFF - (1 << bit)


@case(spec="set_bit, clear_bit", doc="enable_size: 8 on 64-bit kernels")
@variants(*range(64))
def test_bit_of_64(ue: UserEvents, bit: int) -> None:
    """Enabling sets only the registered bit of an 8-byte word; disabling clears only that bit."""
    data = ue.open_data()
    word = data.register(ue.name(), bit=bit, word=ue.process.word(8)).word
    assert word.value == 0
    ue.tracefs.enable(ue.name())
    assert word.value == 1 << bit
    ue.process.store(word.address, b"\xff\xff\xff\xff\xff\xff\xff\xff")
    ue.tracefs.disable(ue.name())
    assert word.value == 0xFFFFFFFFFFFFFFFF - (1 << bit)


@case(spec="align_addr_bit", doc="Status: the kernel updates the registered bit")
@variants(
    ("4.first", 4, 0, 0, b"\1\0\0\0"),
    ("4.last", 4, 0, 31, b"\0\0\0\x80"),
    ("4_at_4.first", 4, 4, 0, b"\1\0\0\0"),
    ("4_at_4.last", 4, 4, 31, b"\0\0\0\x80"),
    ("8.first", 8, 0, 0, b"\1\0\0\0\0\0\0\0"),
    ("8.last", 8, 0, 63, b"\0\0\0\0\0\0\0\x80"),
)
def test_neighbours(ue: UserEvents, size: int, offset: int, bit: int, enabled: bytes) -> None:
    """The eight bytes before and after the word do not change."""
    data = ue.open_data()
    word = data.register(ue.name(), bit=bit, word=ue.process.word(size, offset=offset)).word
    ue.tracefs.enable(ue.name())
    around = ue.process.load(word.address - 8, size + 16).data
    assert around == b"\xa5" * 8 + enabled + b"\xa5" * 8
    ue.tracefs.disable(ue.name())
    assert ue.process.load(word.address - 8, size + 16).data == GUARD + bytes(size) + GUARD


@case(spec="trace_events_user.c:align_addr_bit", doc="enable_addr is naturally aligned")
@variants((0, 0x1), (16, 0x10000), (31, 0x80000000))
def test_at_4_mod_8(ue: UserEvents, bit: int, alone: int) -> None:
    """4-byte words in both halves of an aligned 8-byte unit do not affect each other."""
    data = ue.open_data()
    low = ue.process.word()
    high = ue.process.word_at(low.address + 4)
    data.register(ue.name("a"), bit=bit, word=low)
    data.register(ue.name("b"), bit=bit, word=high)
    ue.tracefs.enable(ue.name("b"))
    assert (low.value, high.value) == (0, alone)
    ue.tracefs.enable(ue.name("a"))
    ue.tracefs.disable(ue.name("b"))
    assert (low.value, high.value) == (alone, 0)


@case(spec="uaddr & ~PAGE_MASK", doc="enable_addr is naturally aligned")
@variants(("4.first", 4, 0), ("4.last", 4, 4092), ("8.first", 8, 0), ("8.last", 8, 4088))
def test_place_in_page(ue: UserEvents, size: int, place: int) -> None:
    """A word may lie at the start or end of a page; the adjacent pages need not be mapped."""
    data = ue.open_data()
    word = ue.process.word_at(ue.process.map() + place, size)
    assert data.register(ue.name(), bit=1, word=word).value == 0
    ue.tracefs.enable(ue.name())
    assert word.value == 2
