"""DIAG_IOCSUNREG: effects on the word, also where its memory has changed since registration."""

import mmap

from conformance.cases.case import UserEvents, doc, surface, variants
from conformance.client.addresses import PAGE

SPEC = "user_event_mm_clear_bit"
DOC = "Unregistering: bit and address must be those that were registered"
case = surface("unregister", SPEC, DOC, level="behaviour", profiles="6.4..")


@case(doc="Unregistering: ends updates of the bit; silent about its last value")
def test_clears_the_bit(ue: UserEvents) -> None:
    """Unregistering an enabled event clears its bit and no other."""
    data = ue.open_data()
    event = data.register(ue.name(), bit=3, word=ue.process.word(value=0xFFFFFFFF))
    ue.tracefs.enable(ue.name())
    assert event.word.value == 0xFFFFFFFF
    assert data.unregister(event.word, bit=3).value == 0
    assert event.word.value == 0xFFFFFFF7


@case(doc="Unregistering: ends updates of the bit; silent about its last value")
@variants(
    ("u32-bit31", 4, 0, 31, 0x7FFF_FFFF),
    ("u32-odd-bit0", 4, 4, 0, 0xFFFF_FFFE),
    ("u32-odd-bit31", 4, 4, 31, 0x7FFF_FFFF),
    ("u64-bit31", 8, 0, 31, 0xFFFF_FFFF_7FFF_FFFF),
    ("u64-bit32", 8, 0, 32, 0xFFFF_FFFE_FFFF_FFFF),
    ("u64-bit63", 8, 0, 63, 0x7FFF_FFFF_FFFF_FFFF),
)
def test_clears_at_any_place(ue: UserEvents, size: int, offset: int, bit: int, left: int) -> None:
    """The registered bit is cleared in words of either size, at any offset in an 8-byte unit."""
    data = ue.open_data()
    word = ue.process.word(size, offset=offset)
    data.register(ue.name(), word=word, bit=bit)
    ue.process.store(word.address, b"\xff" * size)
    assert data.unregister(word, bit=bit).value == 0
    assert word.value == left


@case(spec="user_events_ioctl_unreg")
@doc("Unregistering: the bit and address to disable are named;")
@doc("silent about the last value of the bit")
def test_one_of_two_bits(ue: UserEvents) -> None:
    """Of two bits of one word only the named one is unregistered."""
    data, word = ue.open_data(), ue.process.word()
    data.register(ue.name("a"), word=word, bit=0)
    data.register(ue.name("b"), word=word, bit=9)
    ue.enable("a", "b")
    assert word.value == 0x201
    assert data.unregister(word).value == 0
    assert word.value == 0x200
    ue.tracefs.disable(ue.name("b"))
    assert word.value == 0


@case(spec="user_events_ioctl_unreg", tier="full")
@doc("Unregistering: the bit and address to disable are named;")
@doc("silent about the last value of the bit")
def test_one_of_two_words(ue: UserEvents) -> None:
    """Of two words of one event only the named one is unregistered."""
    data = ue.open_data()
    first, second = data.register(ue.name()).word, data.register(ue.name()).word
    ue.tracefs.enable(ue.name())
    assert data.unregister(second).value == 0
    assert (first.value, second.value) == (1, 0)


@case(spec="user_events_ioctl_unreg", level="contract")
@doc("Unregistering: the process is no longer interested in updates of the event")
def test_ends_updates(ue: UserEvents) -> None:
    """The kernel no longer writes to an unregistered word."""
    event = ue.event()
    event.unregister()
    event.enable()
    assert event.word.value == 0
    ue.process.store(event.word.address, b"\xff\xff\xff\xff")
    event.disable()
    assert event.word.value == 0xFFFF_FFFF


@case(spec="user_events_write_core", tier="full")
@doc("Unregistering: ends updates; silent about the write index")
def test_write_index_stays(ue: UserEvents) -> None:
    """The write index stays valid: an event can be written without a registered word."""
    event = ue.event("u32 a")
    event.unregister()
    assert event.write(bytes(4)).errno == ue.dated("ebadf_when_disabled", since="EBADF", before="")
    event.enable()
    assert event.write(bytes(4)).value == 8
    assert event.data.write_event(1, bytes(4)).errno == "ENOENT"


@case(spec="user_event_put", level="contract")
@doc("Unregistering: deleting, in contrast, removes the event from the system")
def test_keeps_the_event(ue: UserEvents) -> None:
    """Unregistering does not delete the event: the descriptor still holds it."""
    data = ue.open_data()
    data.unregister(data.register(f"{ue.name()} u32 a").word)
    assert ue.tracefs.dynamic_events(eventually=True) == f"u:{ue.name()} u32 a\n"


@case(spec="user_event_enabler_destroy", level="contract", needs="auto_delete")
@doc("Deleting: by default an event is deleted when no references are left")
def test_last_reference(ue: UserEvents) -> None:
    """After close, a registered word alone holds the event; unregistering it deletes the event."""
    data, other = ue.open_data(), ue.open_data()
    word = data.register(ue.name()).word
    data.close()
    assert ue.tracefs.status(eventually=True) == f"{ue.name()}\n"
    other.unregister(word)
    assert ue.tracefs.status(eventually=True) == ""


@case(doc="Unregistering: silent about memory that went away")
@variants({"read-only": mmap.PROT_READ, "unmapped": None})
def test_memory_unwritable(ue: UserEvents, protection: int | None) -> None:
    """A word that is no longer writable is EFAULT, and is unregistered nevertheless."""
    data, address = ue.open_data(), ue.process.map()
    data.register(ue.name(), enable_addr=address)
    if protection is None:
        ue.process.unmap(address)
    else:
        ue.process.protect(address, protection)
    assert (data.unregister(address).errno, data.unregister(address).errno) == ("EFAULT", "ENOENT")


@case(doc="Unregistering: silent about memory that went away")
def test_memory_replaced(ue: UserEvents) -> None:
    """The bit is cleared in whatever memory is mapped at the address now."""
    data, address = ue.open_data(), ue.process.map()
    data.register(ue.name(), enable_addr=address)
    ue.process.unmap(address)
    ue.process.map_again(address)
    ue.process.store(address, b"\xff" * 8)
    assert data.unregister(address).value == 0
    assert ue.process.load(address, 8).data == b"\xfe" + b"\xff" * 7


@case(spec="user_event_mm_fault_in", doc="Unregistering: silent about memory that went away")
def test_memory_not_touched(ue: UserEvents) -> None:
    """A word in a page that was never touched is unregistered at once and reads zero."""
    data, address = ue.open_data(), ue.process.map()
    data.register(ue.name(), enable_addr=address + PAGE - 4)
    ue.process.unmap(address)
    ue.process.map_again(address)
    assert data.unregister(address + PAGE - 4).value == 0
    assert ue.process.load(address + PAGE - 4, 4).data == b"\0\0\0\0"
