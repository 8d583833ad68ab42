"""The enable word: the bit of a process's own memory that says whether anybody listens.

Several processes, fork and changing memory are in test_enable_memory.
"""

from __future__ import annotations

from conformance.cases.declare import case, variants
from conformance.sut.perf import listen
from conformance.sut.places import PAGE
from conformance.sut.user_events import UserEvents

DOC = "Documentation/trace/user_events.rst@v6.12: Status"
WRITE = "trace_events_user.c:user_event_enabler_write"
CREATE = "trace_events_user.c:user_event_enabler_create"
UPDATE = "trace_events_user.c:user_event_enabler_update"
GUARD = b"\xa5" * 8


# Which bit


@case(
    "enable.bit_of_32",
    spec=f"{WRITE}: set_bit, clear_bit",
    doc=f"{DOC}: the bit that was registered is updated when tools attach and detach",
    tier="full",
)
@variants("bit", {f"{bit}": bit for bit in (0, 7, 8, 15, 16, 23, 24, 31)})
def test_bit_of_32(ue: UserEvents, bit: int) -> None:
    """Of a 4-byte word enabling sets the registered bit alone, disabling clears it alone."""
    data = ue.open_data()
    word = data.register(ue.name(), bit=bit).word
    assert word.value == 0
    ue.tracefs.enable(ue.name())
    assert word.value == 1 << bit
    ue.process.store(word.address, b"\xff\xff\xff\xff")
    ue.tracefs.disable(ue.name())
    assert word.value == 0xFFFFFFFF - (1 << bit)


@case(
    "enable.bit_of_64",
    spec=f"{WRITE}: set_bit, clear_bit",
    doc="Documentation/trace/user_events.rst@v6.12: enable_size: 8 on 64-bit kernels",
)
@variants("bit", {f"{bit}": bit for bit in range(64)})
def test_bit_of_64(ue: UserEvents, bit: int) -> None:
    """Of an 8-byte word enabling sets the registered bit alone, disabling clears it alone."""
    data = ue.open_data()
    word = data.register(ue.name(), bit=bit, word=ue.process.word(8)).word
    assert word.value == 0
    ue.tracefs.enable(ue.name())
    assert word.value == 1 << bit
    ue.process.store(word.address, b"\xff\xff\xff\xff\xff\xff\xff\xff")
    ue.tracefs.disable(ue.name())
    assert word.value == 0xFFFFFFFFFFFFFFFF - (1 << bit)


@case(
    "enable.neighbours",
    spec=f"{WRITE}: align_addr_bit",
    doc=f"{DOC}: the kernel updates the registered bit",
)
@variants(
    "size, offset, bit, enabled",
    {
        "4.first": (4, 0, 0, b"\1\0\0\0"),
        "4.last": (4, 0, 31, b"\0\0\0\x80"),
        "4_at_4.first": (4, 4, 0, b"\1\0\0\0"),
        "4_at_4.last": (4, 4, 31, b"\0\0\0\x80"),
        "8.first": (8, 0, 0, b"\1\0\0\0\0\0\0\0"),
        "8.last": (8, 0, 63, b"\0\0\0\0\0\0\0\x80"),
    },
)
def test_neighbours(ue: UserEvents, size: int, offset: int, bit: int, enabled: bytes) -> None:
    """The eight bytes before and behind the word stay as they are."""
    data = ue.open_data()
    word = data.register(ue.name(), bit=bit, word=ue.process.word(size, offset=offset)).word
    ue.tracefs.enable(ue.name())
    around = ue.process.load(word.address - 8, size + 16).data
    assert around == b"\xa5" * 8 + enabled + b"\xa5" * 8
    ue.tracefs.disable(ue.name())
    assert ue.process.load(word.address - 8, size + 16).data == GUARD + bytes(size) + GUARD


@case(
    "enable.at_4_mod_8",
    spec="trace_events_user.c:align_addr_bit",
    doc="Documentation/trace/user_events.rst@v6.12: enable_addr is naturally aligned",
)
@variants("bit, alone", {"0": (0, 0x1), "16": (16, 0x10000), "31": (31, 0x80000000)})
def test_at_4_mod_8(ue: UserEvents, bit: int, alone: int) -> None:
    """4-byte words in both halves of an aligned 8-byte unit do not disturb each other."""
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


@case(
    "enable.place_in_page",
    spec=f"{WRITE}: uaddr & ~PAGE_MASK",
    doc="Documentation/trace/user_events.rst@v6.12: enable_addr is naturally aligned",
)
@variants(
    "size, place",
    {"4.first": (4, 0), "4.last": (4, 4092), "8.first": (8, 0), "8.last": (8, 4088)},
)
def test_place_in_page(ue: UserEvents, size: int, place: int) -> None:
    """A word may lie at the very start or end of a page; the pages around it are not needed."""
    data = ue.open_data()
    word = ue.process.word_at(ue.process.map() + place, size)
    assert data.register(ue.name(), bit=1, word=word).value == 0
    ue.tracefs.enable(ue.name())
    assert word.value == 2


# The state at registration


@case(
    "enable.set_at_registration",
    spec=f"{CREATE}: the present state is reflected",
    doc=f"{DOC}: the bit says whether something is attached",
)
@variants(
    "size, bit, preset, registered",
    {
        "4.clear": (4, 0, 0, 1),
        "4.others": (4, 4, 0xFFFFFFEF, 0xFFFFFFFF),
        "4.already": (4, 31, 0x80000001, 0x80000001),
        "8.clear": (8, 40, 0, 0x10000000000),
        "8.others": (8, 63, 0x7FFFFFFFFFFFFFFF, 0xFFFFFFFFFFFFFFFF),
    },
)
def test_set_at_registration(
    ue: UserEvents, size: int, bit: int, preset: int, registered: int
) -> None:
    """Registering an event that somebody listens to sets the bit at once, and no other."""
    data = ue.open_data()
    data.register(ue.name())
    ue.tracefs.enable(ue.name())
    word = ue.process.word(size, value=preset)
    data.register(ue.name(), bit=bit, word=word)
    assert word.value == registered


@case(
    "enable.cleared_at_registration",
    spec=f"{CREATE}: the present state is reflected",
    doc=f"{DOC}: the bit says whether something is attached",
)
@variants(
    "size, bit, preset, registered",
    {
        "4.only": (4, 0, 1, 0),
        "4.among_others": (4, 3, 0xFFFFFFFF, 0xFFFFFFF7),
        "4.others": (4, 31, 0x12345678, 0x12345678),
        "8.low": (8, 7, 0xFFFFFFFFFFFFFFFF, 0xFFFFFFFFFFFFFF7F),
        "8.high": (8, 32, 0xFFFFFFFFFFFFFFFF, 0xFFFFFFFEFFFFFFFF),
    },
)
def test_cleared_at_registration(
    ue: UserEvents, size: int, bit: int, preset: int, registered: int
) -> None:
    """Registering an event nobody listens to clears the bit at once, and no other."""
    data = ue.open_data()
    word = ue.process.word(size, value=preset)
    data.register(ue.name(), bit=bit, word=word)
    assert word.value == registered


@case(
    "enable.again_after_unregister",
    spec=CREATE,
    doc="Documentation/trace/user_events.rst@v6.12: Unregistering ends updates of the word",
    tier="full",
)
def test_again_after_unregister(ue: UserEvents) -> None:
    """A word registered again while somebody listens is set again and follows again."""
    data = ue.open_data()
    word = data.register(ue.name(), bit=2).word
    ue.tracefs.enable(ue.name())
    data.unregister(word, bit=2)
    assert word.value == 0
    data.register(ue.name(), bit=2, word=word)
    assert word.value == 4
    ue.tracefs.disable(ue.name())
    assert word.value == 0


@case(
    "enable.untouched_page",
    spec=f"{CREATE}: user_event_mm_fault_in and retry",
    doc="Documentation/trace/user_events.rst@v6.12: enable_addr is write accessible",
)
def test_untouched_page(ue: UserEvents) -> None:
    """Registration faults in a page that was never touched; the word follows from then on."""
    data = ue.open_data()
    word = ue.process.word_at(ue.process.map() + 64, value=None)
    assert data.register(ue.name(), bit=9, word=word).value == 0
    ue.tracefs.enable(ue.name())
    assert word.value == 0x200
    assert ue.process.load(word.address - 64, PAGE).data == bytes(65) + b"\2" + bytes(PAGE - 66)


# Changes


@case(
    "enable.every_change",
    spec=UPDATE,
    doc=f"{DOC}: the bit is updated as tools attach and detach",
    tier="full",
)
def test_every_change(ue: UserEvents) -> None:
    """The bit follows each change between listening and not listening."""
    data = ue.open_data()
    word = data.register(ue.name(), bit=5).word
    seen = []
    for _ in range(3):
        ue.tracefs.enable(ue.name())
        seen.append(word.value)
        ue.tracefs.disable(ue.name())
        seen.append(word.value)
    assert seen == [32, 0, 32, 0, 32, 0]


@case(
    "enable.twice",
    spec="trace_events.c:__ftrace_event_enable_disable",
    doc=f"{DOC}: silent about enabling what is enabled",
    tier="full",
)
def test_twice(ue: UserEvents) -> None:
    """Enabling twice is enabling once: it succeeds and one disable ends it."""
    data = ue.open_data()
    word = data.register(ue.name(), bit=1).word
    assert ue.tracefs.enable(ue.name()).value == 2
    assert ue.tracefs.enable(ue.name()).value == 2
    assert word.value == 2
    assert ue.tracefs.disable(ue.name()).value == 2
    assert word.value == 0
    assert ue.tracefs.disable(ue.name()).value == 2
    assert ue.tracefs.enabled(ue.name()).text == "0\n"


@case(
    "enable.not_restored",
    spec=f"{UPDATE} runs on changes only",
    doc=f"{DOC}: the word is ordinary memory of the program",
    tier="full",
)
def test_not_restored(ue: UserEvents) -> None:
    """What the process stores in its word stays until the next change of the event."""
    data = ue.open_data()
    word = data.register(ue.name(), bit=0).word
    ue.tracefs.enable(ue.name())
    ue.process.store(word.address, b"\xf0\xff\xff\xff")
    ue.tracefs.enable(ue.name())
    assert word.value == 0xFFFFFFF0
    ue.tracefs.disable(ue.name())
    assert word.value == 0xFFFFFFF0
    ue.tracefs.enable(ue.name())
    assert word.value == 0xFFFFFFF1


@case(
    "enable.not_restored_by_others",
    spec=f"{UPDATE}: words of the event alone",
    doc=f"{DOC}: the word is ordinary memory of the program",
    tier="full",
)
def test_not_restored_by_others(ue: UserEvents) -> None:
    """What the process stores in its word stays whatever becomes of its other events."""
    data = ue.open_data()
    word = data.register(ue.name()).word
    other = data.register(ue.name("other")).word
    ue.tracefs.enable(ue.name())
    ue.process.store(word.address, b"\0\0\0\0")
    ue.tracefs.enable(ue.name("other"))
    assert (word.value, other.value) == (0, 1)
    ue.tracefs.disable(ue.name("other"))
    assert (word.value, other.value) == (0, 0)


@case(
    "enable.restored_by_each_listener",
    spec=f"{UPDATE} runs whenever a listener comes or goes",
    doc=f"{DOC}: says nothing of a second listener",
    facilities=("perf",),
    tier="full",
)
def test_restored_by_each_listener(ue: UserEvents) -> None:
    """The bit is set anew when a second listener comes, and when one of two goes."""
    word = ue.open_data().register(ue.name(), bit=3).word
    ue.tracefs.enable(ue.name())
    ue.process.store(word.address, b"\1\0\0\0")
    event = listen(ue.process, ue.name())
    assert word.value == 9
    ue.process.store(word.address, b"\2\0\0\0")
    event.close()
    assert word.value == 10


@case(
    "enable.after_unregister",
    spec="trace_events_user.c:user_event_enabler_destroy",
    doc="Documentation/trace/user_events.rst@v6.12: Unregistering ends updates of the word",
    tier="full",
)
def test_after_unregister(ue: UserEvents) -> None:
    """An unregistered word is left alone by later changes; other bits go on."""
    data = ue.open_data()
    word = data.register(ue.name(), bit=0).word
    data.register(ue.name(), bit=1, word=word)
    data.unregister(word, bit=0)
    ue.tracefs.enable(ue.name())
    assert word.value == 2
    ue.process.store(word.address, b"\xff\xff\xff\xff")
    ue.tracefs.disable(ue.name())
    assert word.value == 0xFFFFFFFD


# Several words, bits and events


@case(
    "enable.two_bits_one_word",
    spec=UPDATE,
    doc="Documentation/trace/user_events.rst@v6.12: enable_bit: the bit at the address",
)
def test_two_bits_one_word(ue: UserEvents) -> None:
    """One event may have several bits of one word: they change together."""
    data = ue.open_data()
    word = ue.process.word(value=0x100)
    data.register(ue.name(), bit=0, word=word)
    data.register(ue.name(), bit=31, word=word)
    ue.tracefs.enable(ue.name())
    assert word.value == 0x80000101
    ue.tracefs.disable(ue.name())
    assert word.value == 0x100


@case(
    "enable.two_words_one_event",
    spec=UPDATE,
    doc="Documentation/trace/user_events.rst@v6.12: enable_addr: the value to update",
    tier="full",
)
def test_two_words_one_event(ue: UserEvents) -> None:
    """One event may have several words, of both sizes: they change together."""
    data = ue.open_data()
    first, second, third = ue.process.word(), ue.process.word(8), ue.process.word(offset=4)
    data.register(ue.name(), bit=0, word=first)
    data.register(ue.name(), bit=33, word=second)
    data.register(ue.name(), bit=2, word=third)
    ue.tracefs.enable(ue.name())
    assert (first.value, second.value, third.value) == (1, 0x200000000, 4)
    data.unregister(second, bit=33)
    assert (first.value, second.value, third.value) == (1, 0, 4)
    ue.tracefs.disable(ue.name())
    assert (first.value, second.value, third.value) == (0, 0, 0)


@case(
    "enable.one_word_two_events",
    spec=UPDATE,
    doc="Documentation/trace/user_events.rst@v6.12: enable_bit: the bit at the address",
    tier="full",
)
def test_one_word_two_events(ue: UserEvents) -> None:
    """Two events may share a word by different bits: each changes its own."""
    data = ue.open_data()
    word = ue.process.word()
    data.register(ue.name("a"), bit=0, word=word)
    data.register(ue.name("b"), bit=1, word=word)
    ue.tracefs.enable(ue.name("b"))
    assert word.value == 2
    ue.tracefs.enable(ue.name("a"))
    assert word.value == 3
    ue.tracefs.disable(ue.name("b"))
    assert word.value == 1
    ue.tracefs.disable(ue.name("a"))
    assert word.value == 0


@case(
    "enable.two_sizes_one_address",
    spec="trace_events_user.c:user_event_enabler_exists compares address and bit",
    doc="Documentation/trace/user_events.rst@v6.12: enable_size: the size of the value",
)
def test_two_sizes_one_address(ue: UserEvents) -> None:
    """An address may be a 4-byte word for one event and an 8-byte word for another."""
    data = ue.open_data()
    long = ue.process.word(8)
    short = ue.process.word_at(long.address, 4, value=None)
    data.register(ue.name("a"), bit=3, word=short)
    assert data.register(ue.name("b"), bit=35, word=long).value == 0
    ue.tracefs.enable(ue.name("b"))
    assert long.value == 0x800000000
    ue.tracefs.enable(ue.name("a"))
    assert long.value == 0x800000008
