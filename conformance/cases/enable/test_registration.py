"""Enable word at registration: it reflects at once whether the event is enabled."""

from __future__ import annotations

from conformance.cases.case import surface, variants
from conformance.client.addresses import PAGE
from conformance.client.user_events import UserEvents

case = surface(
    "enable",
    spec="trace_events_user.c:user_event_enabler_create",
    doc="Documentation/trace/user_events.rst@v6.12",
    profiles="6.4..",
)


@case(
    spec="the present state is reflected", doc="Status: the bit says whether something is attached"
)
@variants(
    ("4.clear", 4, 0, 0, 1),
    ("4.others", 4, 4, 0xFFFFFFEF, 0xFFFFFFFF),
    ("4.already", 4, 31, 0x80000001, 0x80000001),
    ("8.clear", 8, 40, 0, 0x10000000000),
    ("8.others", 8, 63, 0x7FFFFFFFFFFFFFFF, 0xFFFFFFFFFFFFFFFF),
)
def test_set_at_registration(
    ue: UserEvents, size: int, bit: int, preset: int, registered: int
) -> None:
    """Registering an enabled event sets the registered bit at once, and no other bit."""
    data = ue.open_data()
    data.register(ue.name())
    ue.tracefs.enable(ue.name())
    word = ue.process.word(size, value=preset)
    data.register(ue.name(), bit=bit, word=word)
    assert word.value == registered


@case(
    spec="the present state is reflected", doc="Status: the bit says whether something is attached"
)
@variants(
    ("4.only", 4, 0, 1, 0),
    ("4.among_others", 4, 3, 0xFFFFFFFF, 0xFFFFFFF7),
    ("4.others", 4, 31, 0x12345678, 0x12345678),
    ("8.low", 8, 7, 0xFFFFFFFFFFFFFFFF, 0xFFFFFFFFFFFFFF7F),
    ("8.high", 8, 32, 0xFFFFFFFFFFFFFFFF, 0xFFFFFFFEFFFFFFFF),
)
def test_cleared_at_registration(
    ue: UserEvents, size: int, bit: int, preset: int, registered: int
) -> None:
    """Registering a disabled event clears the registered bit at once, and no other bit."""
    data = ue.open_data()
    word = ue.process.word(size, value=preset)
    data.register(ue.name(), bit=bit, word=word)
    assert word.value == registered


@case(doc="Unregistering ends updates of the word", tier="full")
def test_again_after_unregister(ue: UserEvents) -> None:
    """A word registered again for an enabled event is set again and followed again."""
    data = ue.open_data()
    word = data.register(ue.name(), bit=2).word
    ue.tracefs.enable(ue.name())
    data.unregister(word, bit=2)
    assert word.value == 0
    data.register(ue.name(), bit=2, word=word)
    assert word.value == 4
    ue.tracefs.disable(ue.name())
    assert word.value == 0


@case(spec="user_event_mm_fault_in and retry", doc="enable_addr is write accessible")
def test_untouched_page(ue: UserEvents) -> None:
    """Registration faults in a page that was never touched; the word is followed from then on."""
    data = ue.open_data()
    word = ue.process.word_at(ue.process.map() + 64, value=None)
    assert data.register(ue.name(), bit=9, word=word).value == 0
    ue.tracefs.enable(ue.name())
    assert word.value == 0x200
    assert ue.process.load(word.address - 64, PAGE).data == bytes(65) + b"\2" + bytes(PAGE - 66)
