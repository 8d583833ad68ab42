"""write(): memory that is unreadable, or was never touched."""

from conformance.cases.case import UserEvents, doc, surface, variants
from conformance.cases.support.writing import RECORD
from conformance.client.addresses import PAGE
from conformance.client.memory import memory_file

DOC = "Writing Data: silent about pages that are not resident"
case = surface("write", doc=DOC, level="behaviour", tier="full")


@case(spec="user_events_write_core: fault_in_iov_iter_readable after the test for listeners")
@doc("Writing Data: silent about memory that cannot be read")
@variants(("none", 0, ""), ("half", 2, "00 00"))
def test_unreadable_payload(ue: UserEvents, readable: int, dump: str) -> None:
    """An unreadable payload is EFAULT, unless the event is disabled: then it is not read."""
    data = ue.event("u32 a").data
    address = ue.process.map() + PAGE - 4 - readable
    ue.process.store(address, bytes(4 + readable))
    disabled_errno = ue.dated("ebadf_when_disabled", since="EBADF", before="")
    assert data.write_at(address, 8).errno == disabled_errno
    ue.tracefs.enable(ue.name())
    # The first kernels recorded the readable part.
    returned = ue.dated("unreadable_payload_refused", since=-1, before=8)
    errno = ue.dated("unreadable_payload_refused", since="EFAULT", before="")
    written = data.write_at(address, 8)
    assert (written.value, written.errno) == (returned, errno)
    assert data.writev_at([(address, 4 + readable), (0, 4 - readable)]).errno == errno
    dumps = ue.dated("unreadable_payload_refused", since=[], before=[dump, dump])
    assert ue.tracefs.records() == dumps


@case(spec="user_events_write_core: copy_from_iter")
@doc("Writing Data: silent about memory that cannot be read")
@variants({"none": 0, "one": 1, "three": 3})
def test_unreadable_index(ue: UserEvents, readable: int) -> None:
    """An index that cannot be read completely is EFAULT, enabled or not."""
    data = ue.event().data
    address = ue.process.map() + PAGE - readable
    assert data.write_at(address, 4).errno == "EFAULT"
    ue.tracefs.enable(ue.name())
    assert data.write_at(address, 4).errno == "EFAULT"
    assert ue.tracefs.records() == []


@case(spec="user_events_write_core", doc="Writing Data: silent about memory protection")
def test_protected_memory(ue: UserEvents) -> None:
    """Index and payload must be readable, not writable; PROT_NONE is EFAULT."""
    data = ue.event("u32 a").data
    page = ue.process.map()
    ue.process.store(page, RECORD)
    ue.tracefs.enable(ue.name())
    ue.process.protect(page, 1)
    assert data.write_at(page, 8).value == 8
    ue.process.protect(page, 0)
    assert data.write_at(page, 8).errno == "EFAULT"
    assert ue.tracefs.records() == [ue.line("a=0x41 (65)", dump="41 00 00 00")]


@case(spec="user_events_write_core: fault_in_iov_iter_readable", level="contract")
@doc("Writing Data: the data begin with the write index; the rest is the payload")
def test_untouched_memory(ue: UserEvents) -> None:
    """Index and payload in pages that were never touched read as zero and are recorded."""
    data = ue.event("u32 a; u32 b").data
    pages = ue.process.map(2)
    ue.tracefs.enable(ue.name())
    assert data.write_at(pages + PAGE - 8, 12).value == 12
    assert ue.tracefs.records() == [
        ue.line("a=0x0 (0)", "b=0x0 (0)", dump="00 00 00 00 00 00 00 00")
    ]


@case(spec="user_events_write_core: fault_in_iov_iter_readable", level="contract", tier="quick")
@doc("Writing Data: writev() takes the index in its first vector, the payload in the others")
def test_untouched_segment(ue: UserEvents) -> None:
    """A later segment is recorded from a file page that this mapping never touched."""
    data, file = ue.open_data(), memory_file(ue.process)
    data.register(ue.name() + " u32 a; u32 b")
    ue.process.store(file.map(), b"\x08\0\0\0")
    near, far = ue.process.place(b"\0\0\0\0\7\0\0\0"), file.map()
    ue.tracefs.enable(ue.name())
    assert data.writev_at([(near, 8), (far, 4)]).value == 12
    line = ue.line("a=0x7 (7)", "b=0x8 (8)", dump="07 00 00 00 08 00 00 00")
    assert ue.tracefs.records() == [line]
