"""Enable word: the registered bit, and nothing else, follows the tracers of the event."""

from conformance.cases.case import UserEvents, doc, spec, surface, variants
from conformance.client.addresses import PAGE
from conformance.client.perf import open_perf

SPEC = "user_event_enabler_create: the present state is reflected"
DOC = "Status: the kernel updates the registered bit as tools attach and detach"
ALIGNED = "Registering: enable_addr must be naturally aligned and write accessible"
case = surface("enable", SPEC, DOC, level="contract", profiles="6.4..")


@case(spec="user_event_enabler_update", tier="full")
def test_every_change(ue: UserEvents) -> None:
    """The bit is set when the event is enabled and cleared when it is disabled, each time."""
    word = ue.event(bit=5).word
    seen = []
    for _ in range(3):
        ue.tracefs.enable(ue.name())
        seen.append(word.value)
        ue.tracefs.disable(ue.name())
        seen.append(word.value)
    assert seen == [32, 0, 32, 0, 32, 0]


@case(spec="trace_events.c:__ftrace_event_enable_disable", level="detail", tier="full")
@doc("Status: silent about enabling what is enabled")
def test_twice(ue: UserEvents) -> None:
    """Enabling an enabled event succeeds and adds nothing: one disable clears the bit."""
    word = ue.event(bit=1).word
    assert (ue.tracefs.enable(ue.name()).value, ue.tracefs.enable(ue.name()).value) == (2, 2)
    assert word.value == 2
    assert ue.tracefs.disable(ue.name()).value == 2
    assert word.value == 0
    assert ue.tracefs.disable(ue.name()).value == 2
    assert ue.tracefs.enabled(ue.name()).text == "0\n"


@case(spec="user_event_enabler_update runs on changes only", level="behaviour", tier="full")
@doc("Status: the bit is updated on attach and detach; silent about values that the program stores")
def test_not_restored(ue: UserEvents) -> None:
    """A value that the process stores in its word stays until the event changes again."""
    word = ue.event(bit=0, enabled=True).word
    ue.process.store(word.address, b"\xf0\xff\xff\xff")
    ue.tracefs.enable(ue.name())
    assert word.value == 0xFFFFFFF0
    ue.tracefs.disable(ue.name())
    assert word.value == 0xFFFFFFF0
    ue.tracefs.enable(ue.name())
    assert word.value == 0xFFFFFFF1


@case(spec="user_event_enabler_update: words of the event alone", level="behaviour", tier="full")
@doc("Status: the bit is updated on attach and detach; silent about values that the program stores")
def test_not_restored_by_others(ue: UserEvents) -> None:
    """A value that the process stores in its word stays when its other events change."""
    data = ue.open_data()
    word = data.register(ue.name()).word
    other = data.register(ue.name("other")).word
    ue.tracefs.enable(ue.name())
    ue.process.store(word.address, b"\0\0\0\0")
    ue.tracefs.enable(ue.name("other"))
    assert (word.value, other.value) == (0, 1)
    ue.tracefs.disable(ue.name("other"))
    assert (word.value, other.value) == (0, 0)


@case(doc="Status: silent about a second tracer", level="behaviour", tier="full", facilities="perf")
@spec("user_event_enabler_update runs whenever a listener comes or goes")
def test_restored_by_each_listener(ue: UserEvents) -> None:
    """The bit is written again when a second tracer attaches and when one of two detaches."""
    word = ue.event(bit=3, enabled=True).word
    ue.process.store(word.address, b"\1\0\0\0")
    event = open_perf(ue.process, ue.name())
    assert word.value == 9
    ue.process.store(word.address, b"\2\0\0\0")
    event.close()
    assert word.value == 10


@case(spec="user_event_enabler_destroy", tier="full")
@doc("Unregistering: the process is no longer interested in updates of the event")
def test_after_unregister(ue: UserEvents) -> None:
    """An unregistered word no longer changes; other bits still follow the event."""
    event = ue.event(bit=0)
    event.data.register(ue.name(), bit=1, word=event.word)
    event.unregister()
    ue.tracefs.enable(ue.name())
    assert event.word.value == 2
    ue.process.store(event.word.address, b"\xff\xff\xff\xff")
    ue.tracefs.disable(ue.name())
    assert event.word.value == 0xFFFFFFFD


GUARD = b"\xa5" * 8


@case(spec="user_event_enabler_write: set_bit, clear_bit", tier="full")
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


@case(spec="user_event_enabler_write: set_bit, clear_bit")
@variants(*range(64))
def test_bit_of_64(ue: UserEvents, bit: int) -> None:
    """Enabling sets only the registered bit of an 8-byte word; disabling clears only that bit."""
    word = ue.open_data().register(ue.name(), bit=bit, word=ue.process.word(8)).word
    assert word.value == 0
    ue.tracefs.enable(ue.name())
    assert word.value == 1 << bit
    ue.process.store(word.address, b"\xff\xff\xff\xff\xff\xff\xff\xff")
    ue.tracefs.disable(ue.name())
    assert word.value == 0xFFFFFFFFFFFFFFFF - (1 << bit)


@case(spec="user_event_enabler_write: align_addr_bit")
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
    assert ue.process.load(word.address - 8, size + 16).data == b"\xa5" * 8 + enabled + b"\xa5" * 8
    ue.tracefs.disable(ue.name())
    assert ue.process.load(word.address - 8, size + 16).data == GUARD + bytes(size) + GUARD


@case(spec="align_addr_bit")
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


@case(spec="user_event_enabler_write: uaddr & ~PAGE_MASK", doc=ALIGNED)
@variants(("4.first", 4, 0), ("4.last", 4, 4092), ("8.first", 8, 0), ("8.last", 8, 4088))
def test_place_in_page(ue: UserEvents, size: int, place: int) -> None:
    """A word may lie at the start or end of a page; the adjacent pages need not be mapped."""
    data = ue.open_data()
    word = ue.process.word_at(ue.process.map() + place, size)
    assert data.register(ue.name(), bit=1, word=word).value == 0
    ue.tracefs.enable(ue.name())
    assert word.value == 2


@case(doc="Registering: enable_bit reflects the status of the event at enable_addr")
@variants(
    ("4.clear", 4, 0, 0, 1),
    ("4.others", 4, 4, 0xFFFFFFEF, 0xFFFFFFFF),
    ("4.already", 4, 31, 0x80000001, 0x80000001),
    ("8.clear", 8, 40, 0, 0x10000000000),
    ("8.others", 8, 63, 0x7FFFFFFFFFFFFFFF, 0xFFFFFFFFFFFFFFFF),
)
def test_set_at_registration(ue: UserEvents, size: int, bit: int, old: int, new: int) -> None:
    """Registering an enabled event sets the registered bit at once, and no other bit."""
    data = ue.event(enabled=True).data
    word = ue.process.word(size, value=old)
    data.register(ue.name(), bit=bit, word=word)
    assert word.value == new


@case(doc="Registering: enable_bit reflects the status of the event at enable_addr")
@variants(
    ("4.only", 4, 0, 1, 0),
    ("4.among_others", 4, 3, 0xFFFFFFFF, 0xFFFFFFF7),
    ("4.others", 4, 31, 0x12345678, 0x12345678),
    ("8.low", 8, 7, 0xFFFFFFFFFFFFFFFF, 0xFFFFFFFFFFFFFF7F),
    ("8.high", 8, 32, 0xFFFFFFFFFFFFFFFF, 0xFFFFFFFEFFFFFFFF),
)
def test_cleared_at_registration(ue: UserEvents, size: int, bit: int, old: int, new: int) -> None:
    """Registering a disabled event clears the registered bit at once, and no other bit."""
    data = ue.open_data()
    word = ue.process.word(size, value=old)
    data.register(ue.name(), bit=bit, word=word)
    assert word.value == new


@case(spec="user_event_enabler_create", level="behaviour", tier="full")
@doc("Unregistering: ends updates of the bit; silent about its last value")
def test_again_after_unregister(ue: UserEvents) -> None:
    """A word registered again for an enabled event is set again and followed again."""
    event = ue.event(bit=2, enabled=True)
    event.unregister()
    assert event.word.value == 0
    event.data.register(ue.name(), bit=2, word=event.word)
    assert event.word.value == 4
    ue.tracefs.disable(ue.name())
    assert event.word.value == 0


@case(spec="user_event_enabler_create: user_event_mm_fault_in and retry", doc=ALIGNED)
def test_untouched_page(ue: UserEvents) -> None:
    """Registration faults in a page that was never touched; the word is followed from then on."""
    data = ue.open_data()
    word = ue.process.word_at(ue.process.map() + 64, value=None)
    assert data.register(ue.name(), bit=9, word=word).value == 0
    ue.tracefs.enable(ue.name())
    assert word.value == 0x200
    assert ue.process.load(word.address - 64, PAGE).data == bytes(65) + b"\2" + bytes(PAGE - 66)
