"""DIAG_IOCSUNREG of a word whose memory has changed since registration."""

from __future__ import annotations

import mmap

from conformance.cases.case import surface, variants
from conformance.client.addresses import PAGE
from conformance.client.user_events import UserEvents

case = surface(
    "unregister",
    spec="trace_events_user.c:user_event_mm_clear_bit",
    doc="Documentation/trace/user_events.rst@v6.12: Unregistering: nothing is said about memory "
    "that went away",
    profiles="6.4..",
)


@case
@variants({"read-only": mmap.PROT_READ, "unmapped": None})
def test_memory_unwritable(ue: UserEvents, protection: int | None) -> None:
    """A word that is no longer writable is EFAULT, and is unregistered nevertheless."""
    data = ue.open_data()
    address = ue.process.map()
    data.register(ue.name(), enable_addr=address)
    if protection is None:
        ue.process.unmap(address)
    else:
        ue.process.protect(address, protection)
    assert data.unregister(address).errno == "EFAULT"
    assert data.unregister(address).errno == "ENOENT"


@case
def test_memory_replaced(ue: UserEvents) -> None:
    """The bit is cleared in whatever memory is mapped at the address now."""
    data = ue.open_data()
    address = ue.process.map()
    data.register(ue.name(), enable_addr=address)
    ue.process.unmap(address)
    ue.process.map_again(address)
    ue.process.store(address, b"\xff" * 8)
    assert data.unregister(address).value == 0
    assert ue.process.load(address, 8).data == b"\xfe" + b"\xff" * 7


@case(spec="trace_events_user.c:user_event_mm_fault_in")
def test_memory_not_touched(ue: UserEvents) -> None:
    """A word in a page that was never touched is unregistered at once and reads zero."""
    data = ue.open_data()
    address = ue.process.map()
    data.register(ue.name(), enable_addr=address + PAGE - 4)
    ue.process.unmap(address)
    ue.process.map_again(address)
    assert data.unregister(address + PAGE - 4).value == 0
    assert ue.process.load(address + PAGE - 4, 4).data == b"\0\0\0\0"
