"""Memory that moves, is given up, or belongs to a file.

Source: mm/mremap.c:move_vma; mm/madvise.c:madvise_dontneed_free; mm/memory.c:do_shared_fault,
do_cow_fault, unmap_mapping_range; mm/shmem.c:shmem_fault, shmem_setattr.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from conformance.model.envelope import Answer
from conformance.model.errors import NotModelled
from conformance.model.memory import PAGE_SIZE, Content, Entry, Page, pages_of
from conformance.model.world import OpenFile, World
from conformance.program import mapping
from conformance.program import operations as op

_O_RDWR = 2


def mremap(world: World, operation: mapping.Mremap) -> Answer:
    """mremap(2) with MREMAP_MAYMOVE | MREMAP_FIXED to where nothing is."""
    memory = world.process(operation.actor).memory
    memory.move(operation.address, operation.length, operation.new_address)
    return Answer(operation.new_address)


def discard(world: World, operation: mapping.Discard) -> Answer:
    """madvise(2): what is private reads as zero again, or as its file."""
    world.process(operation.actor).memory.discard(operation.address, operation.length)
    return Answer(0)


def memory_file(world: World, operation: mapping.MemoryFile) -> Answer:
    """memfd_create(2)."""
    process = world.process(operation.actor)
    process.slots[operation.slot] = OpenFile("memfd:", _O_RDWR, object=Content())
    return Answer(0)


def truncate(world: World, operation: mapping.Truncate) -> Answer:
    """ftruncate(2): of what is cut off, copies that processes have made go too."""
    content = world.process(operation.actor).file(operation.slot).object
    if not isinstance(content, Content) or operation.length % PAGE_SIZE:
        raise NotModelled("ftruncate of this file to this length")
    length = operation.length // PAGE_SIZE
    del content.pages[length:]
    content.pages += [Page() for _ in range(length - len(content.pages))]
    for process in world.processes.values():
        process.memory.cut(content, length)
    return Answer(0)


def map_file(world: World, operation: op.Mmap, content: Content, entry: Entry) -> Answer:
    """mmap(2) of a file in memory; pages behind its end are mapped and not there."""
    memory = world.process(operation.actor).memory
    first = operation.offset // PAGE_SIZE
    numbers = pages_of(operation.address, operation.length)
    memory.map_content(numbers, content, first, entry)
    return Answer(operation.address)


HANDLERS: dict[type[op.Operation], Callable[[World, Any], Answer]] = {
    mapping.Mremap: mremap,
    mapping.Discard: discard,
    mapping.MemoryFile: memory_file,
    mapping.Truncate: truncate,
}
