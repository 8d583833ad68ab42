"""Address spaces: mappings, pages, copy-on-write and the faults of kernel and process.

Pages hold bytes; page-table entries say whether the page is resident and may be written
without a fault, which is what decides if the kernel can update an enable word at once
(trace_events_user.c:user_event_enabler_write pins with FOLL_NOFAULT) or later.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from conformance.model.errors import Errno, NotModelled

PAGE_SIZE = 4096
# The lowest address no user mapping can have with four-level paging; with five levels the
# border lies higher, so what is between them is not modelled.
USER_TOP = 0x7FFFFFFFF000
KERNEL_HALF = 1 << 63


@dataclass(slots=True)
class Page:
    """The content of one page, shared by everybody who maps it.

    ``unknown`` are the positions of bytes that nobody has written or looked at since the
    kernel took the page without clearing it.
    """

    content: bytearray = field(default_factory=lambda: bytearray(PAGE_SIZE))
    unknown: frozenset[int] = frozenset()

    def store(self, start: int, data: bytes) -> None:
        """Let bytes have a content, which is known from now on."""
        self.content[start : start + len(data)] = data
        if self.unknown:
            self.unknown -= set(range(start, start + len(data)))


@dataclass(slots=True, eq=False)
class Content:
    """The pages of a file that is in memory alone, shared by all who map it."""

    pages: list[Page] = field(default_factory=list)


@dataclass(slots=True)
class Entry:
    """One page-table entry together with the rights of its mapping.

    ``page`` None is not present.  ``exclusive`` means that a store needs no fault.
    ``device`` is the page behind a mapping of page frames (remap_pfn_range), which no
    get_userpages_of() finds; ``may_write`` says that the mapping may be made writable;
    ``readable`` says that the entry lets everybody read, whatever the mapping's rights.
    """

    protection: int
    shared: bool
    page: Page | None = None
    exclusive: bool = False
    device: Page | None = None
    may_write: bool = True
    readable: bool = False
    # The open file of a perf event whose ring this is: it stays open for it, and no child
    # of fork(2) gets the mapping (VM_DONTCOPY).
    owner: object | None = None
    # Of a mapped file: its content, and the number of the page there.
    file: Content | None = None
    index: int = 0

    def present(self) -> Page | None:
        """The page, found in the file if need be; None of anonymous memory nobody has written.

        Raises Errno("EFAULT") behind the end of the file: SIGBUS.
        """
        if self.page is None and self.file is not None:
            if self.index >= len(self.file.pages):
                raise Errno("EFAULT")
            self.page = self.file.pages[self.index]
        return self.page


def is_user_range(address: int, length: int) -> bool:
    """access_ok(): whether a range lies in the user half.

    Raises NotModelled between the borders of four- and five-level paging.
    """
    end = address + length
    if address >= KERNEL_HALF or end > KERNEL_HALF:
        return False
    if end > USER_TOP + PAGE_SIZE:
        raise NotModelled(f"address {address:#x}: its fate depends on the paging mode")
    return True


@dataclass(slots=True)
class AddressSpace:
    """The memory of one process, by page number."""

    entries: dict[int, Entry] = field(default_factory=dict)
    # (address, length) of what holds something that the kernel was free to choose.
    left_open: list[tuple[int, int]] = field(default_factory=list)

    def fork(self) -> AddressSpace:
        """A copy after fork(2): private pages become copy-on-write on both sides."""
        child = AddressSpace(left_open=list(self.left_open))
        for number, entry in self.entries.items():
            if entry.owner is not None:
                continue
            if entry.page is not entry.device and entry.device is not None:
                # Some stable kernels refuse it with ENOMEM (measured on 6.1.192).
                raise NotModelled("fork with a changed private mapping of page frames")
            if not entry.shared:
                entry.exclusive = False
            # dup_mmap() leaves page tables of shared anonymous memory to be faulted in.
            child.entries[number] = replace(entry, exclusive=False)
        return child

    def map(self, address: int, length: int, protection: int, *, shared: bool) -> None:
        """mmap(2) of fresh anonymous pages at a free, aligned address."""
        for number in self.free_pages(address, length):
            # Shared anonymous memory is one object from the start, whoever touches it.
            page = Page() if shared else None
            self.entries[number] = Entry(protection, shared, page)

    def free_pages(self, address: int, length: int) -> range:
        """The page numbers of a range that must be aligned and free."""
        if length == 0 or address % PAGE_SIZE:
            raise Errno("EINVAL")
        numbers = pages_of(address, length)
        if any(number in self.entries for number in numbers):
            raise Errno("EEXIST")
        return numbers

    def map_frames(self, numbers: range, pages: Sequence[Page], entry: Entry) -> None:
        """remap_pfn_range() of one page for each number, with the rights of ``entry``.

        The page-table entries are those of a readable mapping, until mprotect(2) makes
        them follow the rights.
        """
        for number, page in zip(numbers, pages, strict=True):
            self.entries[number] = replace(entry, page=page, device=page, readable=True)

    def unmap(self, address: int, length: int) -> None:
        """munmap(2); holes are fine."""
        if length == 0 or address % PAGE_SIZE:
            raise Errno("EINVAL")
        for number in pages_of(address, length):
            self.entries.pop(number, None)

    def owners(self, numbers: Iterable[int] | None = None) -> list[object]:
        """The open files whose rings are mapped, everywhere or in some pages, each once."""
        chosen = self.entries if numbers is None else numbers
        found = (self.entries[number].owner for number in chosen if number in self.entries)
        return list(dict.fromkeys(owner for owner in found if owner is not None))

    def protect(self, address: int, length: int, protection: int) -> None:
        """mprotect(2) of mapped pages."""
        for number in pages_of(address, length):
            if number not in self.entries:
                raise Errno("ENOMEM")
            entry = self.entries[number]
            if protection & mmap.PROT_WRITE and not entry.may_write:
                raise Errno("EACCES")
            if protection == entry.protection:
                # mprotect_fixup() has nothing to do.
                continue
            entry.protection = protection
            entry.readable = False
            # Raising rights leaves a read-only page-table entry until the next store.
            entry.exclusive = False

    def read(self, address: int, length: int) -> bytes:
        """Bytes as the process, or the kernel on its behalf, reads them; EFAULT else."""
        if not is_user_range(address, length):
            raise Errno("EFAULT")
        number, start = divmod(address, PAGE_SIZE)
        if 0 < length <= PAGE_SIZE - start:
            return self._readable(number, start, start + length)
        return b"".join(self._readable(*chunk) for chunk in _chunks(address, length))

    def is_known(self, address: int, length: int) -> bool:
        """Whether nothing of a range that can be read is unknown."""
        return not any(self._unknown(*chunk) for chunk in _chunks(address, length))

    def learn(self, address: int, data: bytes) -> None:
        """What was seen of a range is what its unknown bytes hold."""
        done = 0
        for number, start, stop in _chunks(address, len(data)):
            page = self.entries[number].page
            for position in self._unknown(number, start, stop):
                assert page is not None
                page.store(position, data[done + position - start :][:1])
            done += stop - start

    def _unknown(self, number: int, start: int, stop: int) -> frozenset[int]:
        entry = self.entries.get(number)
        if entry is None or entry.page is None or not entry.page.unknown:
            return frozenset()
        return entry.page.unknown.intersection(range(start, stop))

    def readable(self, address: int, length: int) -> int:
        """How many bytes from ``address`` on can be read before the first fault."""
        done = 0
        for number, start, stop in _chunks(address, length):
            try:
                self._readable(number, start, stop)
            except Errno:
                break
            done += stop - start
        return done

    def _readable(self, number: int, start: int, stop: int) -> bytes:
        entry = self.entries.get(number)
        if entry is None:
            raise Errno("EFAULT")
        if not entry.readable and not entry.protection & (mmap.PROT_READ | mmap.PROT_WRITE):
            raise Errno("EFAULT")
        page = entry.present()
        return bytes(stop - start) if page is None else bytes(page.content[start:stop])

    def write(self, address: int, data: bytes) -> None:
        """Store bytes, taking the write faults a process would take; EFAULT else."""
        if not is_user_range(address, len(data)):
            raise Errno("EFAULT")
        done = 0
        for number, start, stop in _chunks(address, len(data)):
            page = self.fault_in(number * PAGE_SIZE)
            page.store(start, data[done : done + stop - start])
            done += stop - start

    def put(self, address: int, data: bytes) -> None:
        """One store of the processor (put_user): all bytes or none; EFAULT else."""
        for number in pages_of(address, len(data)):
            self.fault_in(number * PAGE_SIZE)
        self.write(address, data)

    def fault_in(self, address: int) -> Page:
        """A write fault on the page of ``address``: present and exclusive afterwards."""
        entry = self.entries.get(address // PAGE_SIZE)
        if entry is None or not entry.protection & mmap.PROT_WRITE:
            raise Errno("EFAULT")
        if not entry.exclusive:
            if entry.present() is None:
                entry.page = Page()
            elif entry.page is not None and not entry.shared:
                entry.page = Page(bytearray(entry.page.content), entry.page.unknown)
            entry.exclusive = True
        assert entry.page is not None
        return entry.page

    def pinned(self, address: int) -> Page | None:
        """The page of ``address`` if it can be written without any fault."""
        entry = self.entries.get(address // PAGE_SIZE)
        if entry is not None and entry.device is not None:
            raise NotModelled("an enable word in a mapping of page frames")
        if entry is None or not entry.exclusive or not entry.protection & mmap.PROT_WRITE:
            return None
        return entry.page

    def leave_open(self, address: int, length: int) -> None:
        """What these bytes are now is the kernel's choice."""
        self.left_open.append((address, length))

    def is_open(self, address: int, length: int) -> bool:
        """Whether any of these bytes are."""
        return any(
            start < address + length and address < start + size for start, size in self.left_open
        )

    def store(self, address: int, data: bytes) -> None:
        """The process stores bytes of its own: ``write``, and they are known again."""
        self.write(address, data)
        self.left_open = [
            (start, size)
            for start, size in self.left_open
            if start < address or address + len(data) < start + size
        ]

    def discard(self, address: int, length: int) -> None:
        """madvise(MADV_DONTNEED): private pages read as zero again."""
        for number in pages_of(address, length):
            if number not in self.entries:
                raise Errno("ENOMEM")
            entry = self.entries[number]
            entry.exclusive = False
            if not entry.shared:
                entry.page = None

    def move(self, address: int, length: int, new_address: int) -> None:
        """mremap(2) to a free place: page-table entries go as they are."""
        numbers = pages_of(address, length)
        if any(number not in self.entries for number in numbers):
            raise Errno("EFAULT")
        if any(self.entries[number].device or self.entries[number].owner for number in numbers):
            raise NotModelled("moving a mapping of page frames or of a ring")
        for number, new in zip(numbers, self.free_pages(new_address, length), strict=True):
            self.entries[new] = self.entries.pop(number)

    def map_content(self, numbers: range, file: Content, first: int, entry: Entry) -> None:
        """mmap(2) of a file's pages from ``first`` on, with the rights of ``entry``."""
        for index, number in enumerate(numbers, first):
            self.entries[number] = replace(entry, file=file, index=index)

    def cut(self, file: Content, length: int) -> None:
        """A file has only so many pages any more: unmap_mapping_range() of the others."""
        for entry in self.entries.values():
            if entry.file is file and entry.index >= length:
                entry.page = None
                entry.exclusive = False


def pages_of(address: int, length: int) -> range:
    """The numbers of the pages that a range touches."""
    return range(address // PAGE_SIZE, (address + length + PAGE_SIZE - 1) // PAGE_SIZE)


def _chunks(address: int, length: int) -> Iterator[tuple[int, int, int]]:
    """(page number, start, stop) for every page a range touches, up to where a fault ends it."""
    position = address
    while position < address + length:
        number, start = divmod(position, PAGE_SIZE)
        stop = min(PAGE_SIZE, start + address + length - position)
        yield number, start, stop
        position += stop - start
