"""Private mappings of the status page, and the page as a buffer for other calls."""

from conformance.cases.case import UserEvents, surface
from conformance.cases.support.status_page import READ_WRITE, length_of, map_page, writable
from conformance.cases.support.status_page_registration import IOCSREG, reg_of

SPEC = "mm/memory.c:wp_page_copy"
DOC = "@v5.19 and @v6.1: Status: programs map the page; silent about private mappings"
BUFFER = "Status: programs map the page; silent about its use as a buffer"
PRIVATE = "Status: nothing is said about private mappings"
case = surface("status_page", SPEC, DOC, level="detail", profiles="5.18..6.3", tier="full")


@case(doc=PRIVATE, tier="quick")
def test_private_is_a_copy(ue: UserEvents) -> None:
    """A store to a private mapping copies the page, which no longer changes."""
    page = map_page(ue.process)
    private = map_page(ue.process, protection=READ_WRITE, shared=False)
    event = ue.event(enabled=True)
    assert private.shows(event.place) == 1
    # Past the bytes of all existing events.
    assert private.store(4000, b"\xff").value == 1
    event.disable()
    assert (page.shows(event.place), private.shows(event.place)) == (0, 1)
    assert (page.load(4000).data, private.load(4000).data) == (b"\0", b"\xff")


@case(spec="trace_events_user.c:user_seq_show; mm/memory.c:wp_page_copy", doc=PRIVATE)
def test_private_is_unseen(ue: UserEvents) -> None:
    """A store to a private mapping is seen neither by the kernel nor by other processes."""
    page = map_page(ue.process)
    private = map_page(ue.process, protection=READ_WRITE, shared=False)
    place = ue.event().place
    private.store(0, b"\xff" * length_of(ue.process))
    assert private.shows(place) == {"byte-status": 0xFF, "bit-status": 1}[ue.profile.generation]
    assert page.load(0, 64).data == bytes(64)
    assert ue.tracefs.status() == f"{place}:{ue.name()}\n"


@case(doc=PRIVATE)
def test_private_in_a_child(ue: UserEvents) -> None:
    """A child's store to a private mapping is private to the child; its parent sees changes."""
    private = map_page(ue.process, protection=READ_WRITE, shared=False)
    event = ue.event()
    child = private.of(ue.fork(ue.process))
    child.store(4000, b"\xff")
    event.enable()
    assert (private.shows(event.place), child.shows(event.place)) == (1, 0)
    assert (private.load(4000).data, child.load(4000).data) == (b"\0", b"\xff")


@case(spec="arch/x86/mm/pat/memtype.c:untrack_pfn", doc=PRIVATE)
def test_private_copy_exits(ue: UserEvents) -> None:
    """A process that exits with a modified private mapping leaves the page unchanged."""
    page = map_page(ue.process)
    holder = ue.new_process()
    private = map_page(holder, protection=READ_WRITE, shared=False)
    place = holder.open_data().register(ue.name()).place
    ue.tracefs.enable(ue.name())
    private.store(0, bytes(length_of(holder)))
    assert private.shows(place) == 0
    holder.exit()
    assert page.shows(place) == 1


@case(spec="trace_events_user.c:user_events_write_core", doc=BUFFER)
def test_payload_in_the_page(ue: UserEvents) -> None:
    """Index and payload of a write may lie in the page: zeros where there is no event."""
    page = map_page(ue.process)
    assert ue.event("u32 a", enabled=True).data.write_at(page.address + 2048, 8).value == 8
    assert ue.tracefs.records() == ["00 00 00 00"]


@case(spec="trace_events_user.c:user_reg_get", doc=BUFFER, isolation="global")
def test_structure_in_the_page(ue: UserEvents) -> None:
    """A structure may lie in the page, whose zeros give no size and no string."""
    page = map_page(ue.process)
    error = {"byte-status": "EFAULT", "bit-status": "EINVAL"}[ue.profile.generation]
    assert ue.open_data().ioctl(IOCSREG, page.address).errno == error


@case(spec="mm/util.c:strndup_user", doc=BUFFER, isolation="global")
def test_string_in_the_page(ue: UserEvents) -> None:
    """A string may lie in the page: it is empty."""
    page = map_page(ue.process)
    seen = ue.open_data().register("x", name_args=page.address)
    assert (seen.errno, seen.place) == ("", 1)
    assert ue.tracefs.status(whole=True).startswith("1:\n\nActive: 1\n")


@case(spec="trace_events_user.c:user_events_ioctl_reg: put_user", doc=BUFFER, isolation="global")
def test_answers_in_the_page(ue: UserEvents) -> None:
    """A structure that a program stores to the page is read and answered there."""
    page, reader = writable(ue.process), map_page(ue.new_process())
    raw = reg_of(ue, "e")
    page.store(2048, raw)
    assert ue.open_data().ioctl(IOCSREG, page.address + 2048).value == 0
    answers = reader.load(2048 + len(raw) - 8, 8).data
    assert answers == b"\1\0\0\0" + b"\0\0\0\0"
    page.store(2048, bytes(len(raw)))
