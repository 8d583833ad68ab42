"""mmap(2) and its relatives: anonymous memory, memfds, the status page, perf rings.

Source: mm/mremap.c:move_vma; mm/madvise.c:madvise_dontneed_free; mm/memory.c:do_shared_fault,
do_cow_fault, unmap_mapping_range; mm/shmem.c:shmem_fault, shmem_setattr.
"""

from __future__ import annotations

import mmap
import os

from conformance import ops
from conformance.model.answers import Answer
from conformance.model.errors import Errno, NotModelled
from conformance.model.memory.pages import PAGE_SIZE, Content, Entry, Page, pages_of
from conformance.model.state.perf_event import perf_event_of
from conformance.model.state.process import OpenFile, Process
from conformance.model.state.world import World
from conformance.model.syscalls import perf
from conformance.model.syscalls.handlers import Handlers
from conformance.model.tracefs import files
from conformance.ops.compat import Mmap32
from conformance.ops.memory import MapDevice, MinorFaults


def mremap(world: World, process: Process, operation: ops.Mremap) -> Answer:
    """mremap(2) with MREMAP_MAYMOVE | MREMAP_FIXED to a free range."""
    memory = process.memory
    memory.move(operation.address, operation.length, operation.new_address)
    return Answer(operation.new_address)


def discard(world: World, process: Process, operation: ops.Discard) -> Answer:
    """madvise(2): private pages are dropped."""
    process.memory.discard(operation.address, operation.length)
    return Answer(0)


def memory_file(world: World, process: Process, operation: ops.MemoryFile) -> Answer:
    """memfd_create(2)."""
    process.slots[operation.slot] = OpenFile("memfd:", os.O_RDWR, object=Content())
    return Answer(0)


def truncate(world: World, process: Process, operation: ops.Truncate) -> Answer:
    """ftruncate(2): private copies of pages beyond the end are dropped too."""
    content = process.file(operation.slot).object
    if not isinstance(content, Content) or operation.length % PAGE_SIZE:
        raise NotModelled("ftruncate of this file to this length")
    length = operation.length // PAGE_SIZE
    del content.pages[length:]
    content.pages += [Page() for _ in range(length - len(content.pages))]
    for each in world.processes.values():
        each.memory.truncate_file(content, length)
    return Answer(0)


def map_memory(world: World, process: Process, operation: ops.Mmap) -> Answer:
    """mmap(2) to a free range: memory, a memfd, a perf ring or the status page."""
    shared = bool(operation.flags & mmap.MAP_SHARED)
    if operation.slot is None:
        process.memory.map(operation.address, operation.length, operation.protection, shared=shared)
        return Answer(operation.address)
    if operation.offset % PAGE_SIZE:
        raise Errno("EINVAL")
    file = process.file(operation.slot)
    numbers = process.memory.free_pages(operation.address, operation.length)
    entry = _file_mapping(file, operation, shared=shared)
    if perf_event_of(file) is not None:
        perf.map_ring(process, file, operation)
        return Answer(operation.address)
    if isinstance(file.object, Content):
        # Pages beyond its end can be mapped, not accessed.
        process.memory.map_content(numbers, file.object, operation.offset // PAGE_SIZE, entry)
        return Answer(operation.address)
    mapped = file.path == files.page_file(world)
    if file.path == files.DATA:
        raise Errno("ENODEV", "user_events_data cannot be mapped")
    if mapped and world.status_page is None:
        reason = (
            "user_events_status cannot be mapped: its page belongs to the interface of 5.18 to 6.3"
        )
        raise Errno("ENODEV", reason)
    if not mapped or world.status_page is None:
        raise NotModelled(f"mmap of {file.path}")
    frames = world.status_page.content
    if len(numbers) != len(frames):
        # user_status_mmap(): all pages, whatever the offset.
        raise Errno("EINVAL")
    readable = bool(entry.protection) or not world.profile.fixed("status-page-prot-none")
    process.memory.map_frames(numbers, frames, entry, readable=readable)
    return Answer(operation.address)


def _map_device(world: World, process: Process, operation: MapDevice) -> Answer:
    memory = process.memory
    numbers = memory.free_pages(operation.address, PAGE_SIZE)
    page = Page(unknown=set(range(PAGE_SIZE)))
    memory.map_frames(numbers, [page], Entry(mmap.PROT_READ | mmap.PROT_WRITE, shared=True))
    return Answer(operation.address)


def _minor_faults(world: World, process: Process, operation: MinorFaults) -> Answer:
    faults = process.memory.device_faults
    return Answer(None, example=b"%d" % faults)


def _file_mapping(file: OpenFile, operation: ops.Mmap, *, shared: bool) -> Entry:
    """do_mmap(): the mode of the descriptor bounds the protection."""
    access = file.flags & os.O_ACCMODE
    may_write = access == os.O_RDWR or not shared
    may_read = access in (os.O_RDONLY, os.O_RDWR)
    if not may_read or (operation.protection & mmap.PROT_WRITE and not may_write):
        raise Errno("EACCES")
    return Entry(operation.protection, shared, may_write=may_write)


def munmap(world: World, process: Process, operation: ops.Munmap) -> Answer:
    """munmap(2); the last mapping frees a perf ring."""
    memory = process.memory
    owners = memory.owners(pages_of(operation.address, operation.length))
    memory.unmap(operation.address, operation.length)
    world.rings_unmapped(owners)
    return Answer(0)


def mprotect(world: World, process: Process, operation: ops.Mprotect) -> Answer:
    """mprotect(2)."""
    memory = process.memory
    memory.protect(operation.address, operation.length, operation.protection)
    return Answer(0)


def _store(world: World, process: Process, operation: ops.Store) -> Answer:
    process.memory.store(operation.address, operation.data)
    return Answer(len(operation.data))


def _load(world: World, process: Process, operation: ops.Load) -> Answer:
    memory = process.memory
    data = memory.read(operation.address, operation.length)
    if memory.is_unspecified(operation.address, operation.length):
        return Answer(operation.length, example=data)
    known = memory.is_known(operation.address, operation.length)
    return Answer(operation.length, "", data if known else None)


HANDLERS: Handlers = {
    ops.Store: _store,
    ops.Load: _load,
    ops.Mmap: map_memory,
    Mmap32: map_memory,
    MapDevice: _map_device,
    MinorFaults: _minor_faults,
    ops.Munmap: munmap,
    ops.Mprotect: mprotect,
    ops.Mremap: mremap,
    ops.Discard: discard,
    ops.MemoryFile: memory_file,
    ops.Truncate: truncate,
}
