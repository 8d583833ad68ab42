"""DIAG_IOCSUNREG: which word of which process is unregistered, and through which descriptor."""

import os

from conformance.cases.case import UserEvents, doc, surface, variants
from conformance.client.caller import Word

DOC = "Unregistering: bit and address were registered before; silent about the error for others"
FORKED = "Unregistering: fork() retains registered events; each process unregisters its own"
SPEC = "user_events_ioctl_unreg"
case = surface("unregister", SPEC, DOC, level="behaviour", profiles="6.4..")


@case
def test_never_registered(ue: UserEvents) -> None:
    """A process that never registered a word gets ENOENT, and its memory does not change."""
    word = ue.process.word(value=0xFF)
    assert ue.open_data().unregister(word).errno == "ENOENT"
    assert word.value == 0xFF


@case
@variants(
    ("bit-69", 0, 69),
    ("next-bit", 0, 6),
    ("bit-200", 0, 200),
    ("bit-255", 0, 255),
    ("bit-37", 0, 37),
    ("bit-133", 0, 133),
    ("word-before", -4, 5),
    ("word-behind", 4, 5),
    ("inside-the-word", 1, 5),
)
def test_unknown_word(ue: UserEvents, offset: int, bit: int) -> None:
    """Address and bit must both match a registration; otherwise ENOENT, and nothing changes."""
    data, word = ue.open_data(), ue.process.word()
    data.register(ue.name(), word=word, bit=5)
    ue.tracefs.enable(ue.name())
    assert data.unregister(word.address + offset, bit=bit).errno == "ENOENT"
    assert word.value == 0x20
    assert data.unregister(word, bit=5).errno == ""


@case
@doc("Unregistering: the address was registered before; silent about the error for others")
@variants({"null": 0, "kernel-half": 0xFFFF_8880_0000_0000, "last": (1 << 64) - 1})
def test_unknown_address(ue: UserEvents, address: int) -> None:
    """The address is only compared: one that can never be registered is ENOENT, too."""
    assert ue.event().data.unregister(address).errno == "ENOENT"


@case
def test_twice(ue: UserEvents) -> None:
    """Unregistering the same address and bit a second time is ENOENT."""
    event = ue.event()
    assert event.unregister().value == 0
    assert event.unregister().errno == "ENOENT"


@case
@doc("Unregistering: an ioctl of user_events_data; silent about which descriptor")
@variants(("read-only", os.O_RDONLY), ("write-only", os.O_WRONLY), ("read-write", os.O_RDWR))
def test_any_descriptor(ue: UserEvents, flags: int) -> None:
    """Words belong to the process: any of its descriptors can unregister them."""
    word = ue.event().word
    assert ue.open_data(flags).unregister(word).value == 0


@case
@doc("Unregistering: an ioctl of user_events_data; silent about closed descriptors")
def test_after_close(ue: UserEvents) -> None:
    """A word stays registered after the descriptor that registered it is closed."""
    event = ue.event()
    event.data.close()
    other = ue.open_data()
    event.enable()
    assert event.word.value == 1
    assert other.unregister(event.word).value == 0
    assert event.word.value == 0


@case(level="contract", tier="full")
@doc("Unregistering: concerns updates for the calling process")
def test_other_process(ue: UserEvents) -> None:
    """A process cannot unregister a word of another process at the same address: ENOENT."""
    word = ue.event(enabled=True).word
    other = ue.new_process()
    there = other.word_at(word.address, value=1)
    stranger = other.open_data()
    assert stranger.unregister(there).errno == "ENOENT"
    stranger.register(ue.name("own"), word=there, bit=1)
    assert stranger.unregister(there).errno == "ENOENT"
    assert (word.value, there.value) == (1, 1)


@case(spec="user_event_mm_dup", doc=FORKED, level="contract")
def test_child_for_itself(ue: UserEvents) -> None:
    """A child unregisters its own copy of a word; its parent's copy is still followed."""
    event, child = ue.event(), ue.fork(ue.process)
    there = Word(child, event.word.address)
    copy = event.data.of(child)
    assert copy.unregister(there).value == 0
    assert copy.unregister(there).errno == "ENOENT"
    event.enable()
    assert (event.word.wait(), there.wait()) == (1, 0)
    assert event.unregister().value == 0


@case(spec="user_event_mm_dup", doc=FORKED, level="contract", tier="full")
def test_parent_for_itself(ue: UserEvents) -> None:
    """A word that the parent unregisters stays registered in a child forked before."""
    event, child = ue.event(), ue.fork(ue.process)
    there = Word(child, event.word.address)
    assert event.unregister().value == 0
    event.enable()
    assert (event.word.wait(), there.wait()) == (0, 1)
    assert event.data.of(child).unregister(there).value == 0
