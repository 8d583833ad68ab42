"""One status page for all: several mappings, several processes, forks."""

import os

from msgspec.structs import replace

from conformance import ops
from conformance.cases.case import UserEvents, doc, surface, variants
from conformance.cases.support.status_page import READ_WRITE, length_of, map_page

SPEC = "user_status_mmap"
DOC = (
    "@v5.19 and @v6.1: Status: programs map user_events_status to check the status of each "
    "registered event"
)
case = surface("status_page", SPEC, DOC, level="contract", profiles="5.18..6.3", tier="full")


@case(tier="quick")
def test_mapped_twice(ue: UserEvents) -> None:
    """Two mappings of one process, through two descriptors, show the same."""
    first, second = map_page(ue.process), map_page(ue.process, opened=os.O_RDWR)
    event = ue.event()
    assert (first.shows(event.place), second.shows(event.place)) == (0, 0)
    event.enable()
    assert (first.shows(event.place), second.shows(event.place)) == (1, 1)


@case(spec="mm/mmap.c:mmap_region", level="detail", tier="quick")
def test_without_descriptor(ue: UserEvents) -> None:
    """A mapping outlives the descriptor it was made with."""
    page, event = map_page(ue.process), ue.event()
    assert page.close().value == 0
    event.enable()
    assert page.shows(event.place) == 1
    event.disable()
    assert page.shows(event.place) == 0


@case
def test_without_data_file(ue: UserEvents) -> None:
    """The page is still updated after the descriptor that registered the event is closed."""
    page, event = map_page(ue.process), ue.event()
    event.data.close()
    event.enable()
    assert page.shows(event.place) == 1


@case(spec="mm/mmap.c:__vm_munmap", level="detail", tier="quick")
@variants({"page": 4096, "byte": 1})
def test_unmapped(ue: UserEvents, length: int) -> None:
    """Unmapping leaves nothing mapped, and does not affect another mapping."""
    gone, kept = map_page(ue.process), map_page(ue.process)
    place = ue.event(enabled=True).place
    assert ue.process.run(ops.Munmap(ue.process.actor, gone.address, length)).value == 0
    assert gone.load(0, 1).errno == "EFAULT"
    assert kept.shows(place) == 1


@case
def test_mapped_again(ue: UserEvents) -> None:
    """A page that is unmapped and mapped again shows changes made in between."""
    page, event = map_page(ue.process), ue.event()
    page.unmap()
    event.enable()
    assert map_page(ue.process).shows(event.place) == 1


@case
def test_many_mappings(ue: UserEvents) -> None:
    """Thirty mappings of one process all show the same."""
    pages = [map_page(ue.process) for _ in range(30)]
    place = ue.event(enabled=True).place
    assert [page.shows(place) for page in pages] == [1] * 30


@case(spec="user_status_group", level="behaviour")
@doc("Status: programs map the file, administrators read it; silent about both on one descriptor")
def test_mapped_after_reading(ue: UserEvents) -> None:
    """A descriptor that was read as text can be mapped, and still read."""
    place = ue.event(enabled=True).place
    page = map_page(ue.process)
    read = ops.Read(ue.process.actor, page.slot, 1)
    assert ue.process.run(read).value == 1
    seen, address = ue.process.map_status(page.slot, length=length_of(ue.process))
    assert seen.errno == ""
    assert replace(page, address=address).shows(place) == 1
    assert ue.process.run(read).value == 1


@case(spec="update_reg_page_for", tier="quick")
def test_two_processes(ue: UserEvents) -> None:
    """A process without registrations sees the state of another process's event."""
    watcher = map_page(ue.new_process())
    page = map_page(ue.process)
    event = ue.event(enabled=True)
    assert (page.shows(event.place), watcher.shows(event.place)) == (1, 1)
    event.disable()
    assert (page.shows(event.place), watcher.shows(event.place)) == (0, 0)


@case(spec="mm/memory.c:copy_page_range", level="detail", tier="quick")
@variants({"shared": True, "private": False})
def test_after_fork(ue: UserEvents, shared: bool) -> None:
    """A forked child inherits the mapping, and sees later changes like its parent."""
    page = map_page(ue.process, shared=shared)
    event = ue.event()
    child = page.of(ue.fork(ue.process))
    assert child.shows(event.place) == 0
    event.enable()
    assert (page.shows(event.place), child.shows(event.place)) == (1, 1)
    event.disable()
    assert (page.shows(event.place), child.shows(event.place)) == (0, 0)


@case(spec="update_reg_page_for")
def test_child_registers(ue: UserEvents) -> None:
    """An event that a child registers on its own descriptor shows in its parent's mapping."""
    page = map_page(ue.process)
    child = ue.fork(ue.process)
    place = child.open_data().register(ue.name()).place
    ue.tracefs.enable(ue.name())
    assert (page.shows(place), page.of(child).shows(place)) == (1, 1)


@case(doc="Status: programs map the file; silent about inherited descriptors", level="behaviour")
def test_child_maps(ue: UserEvents) -> None:
    """A child can map the page through an inherited descriptor."""
    page, event = map_page(ue.process), ue.event()
    page.unmap()
    child = ue.fork(ue.process)
    event.enable()
    _, address = child.map_status(page.slot, length=length_of(child))
    assert replace(page.of(child), address=address).shows(event.place) == 1
    assert page.load(0, 1).errno == "EFAULT"


@case(spec="mm/mmap.c:__vm_munmap", level="detail")
def test_child_unmaps(ue: UserEvents) -> None:
    """A child that unmaps the page does not affect its parent."""
    page, event = map_page(ue.process), ue.event()
    child = page.of(ue.fork(ue.process))
    child.unmap()
    event.enable()
    assert child.load(0, 1).errno == "EFAULT"
    assert page.shows(event.place) == 1


@case(spec="kernel/exit.c:exit_mm", level="detail")
def test_parent_exits(ue: UserEvents) -> None:
    """A child still sees changes after the process that mapped and registered has exited."""
    page, event = map_page(ue.process), ue.event()
    child = page.of(ue.fork(ue.process))
    ue.process.exit()
    event.enable()
    assert child.shows(event.place) == 1


@case(spec="kernel/exit.c:exit_mm", level="detail", tier="quick")
def test_holder_exits(ue: UserEvents) -> None:
    """The page outlives the process that mapped it: its event stays enabled until disabled."""
    page = map_page(ue.process)
    holder = ue.new_process()
    map_page(holder, opened=os.O_RDWR, protection=READ_WRITE)
    place = holder.open_data().register(ue.name()).place
    ue.tracefs.enable(ue.name())
    holder.exit()
    assert page.shows(place) == 1
    ue.tracefs.disable(ue.name())
    assert page.shows(place) == 0


@case
def test_last_mapping_gone(ue: UserEvents) -> None:
    """The page keeps its content while it is not mapped."""
    event = ue.event()
    watcher = ue.new_process()
    assert map_page(watcher).shows(event.place) == 0
    watcher.exit()
    event.enable()
    assert map_page(ue.process).shows(event.place) == 1
