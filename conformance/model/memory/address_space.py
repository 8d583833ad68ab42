"""Address spaces: mappings, pages, copy-on-write and faults.

A page-table entry says whether its page is present and writable without a fault.  That decides if
the kernel updates an enable bit at once (trace_events_user.c:user_event_enabler_write pins with
FOLL_NOFAULT) or later.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from conformance.model.errors import Errno, NotModelled
from conformance.model.memory.pages import PAGE_SIZE, Content, Entry, Page, is_user_range, pages_of

_READ_WRITE = mmap.PROT_READ | mmap.PROT_WRITE
_ATTEMPTS = 10


@dataclass(slots=True)
class AddressSpace:
    """The memory of one process, by page number.

    Untouched private pages of a mapping share one entry, which makes states small.
    """

    entries: dict[int, Entry] = field(default_factory=dict)
    # (address, length) of bytes whose content the kernel chooses.
    unspecified: list[tuple[int, int]] = field(default_factory=list)
    # Faults on words in memory of devices; the others are not counted.
    device_faults: int = 0

    def fork(self) -> AddressSpace:
        """The address space of a child: private pages become copy-on-write on both sides."""
        child = AddressSpace(unspecified=list(self.unspecified))
        for number, entry in self.entries.items():
            if entry.owner is not None:
                continue
            if entry.page is not entry.device and entry.device is not None:
                # Some stable releases fail with ENOMEM (measured on 6.1.192).
                raise NotModelled("fork(2) with a written private VM_PFNMAP mapping")
            if not entry.shared:
                entry.exclusive = False
            # dup_mmap() does not copy page tables of shared anonymous memory.
            untouched = entry.page is None and entry.file is None
            child.entries[number] = entry if untouched else replace(entry, exclusive=False)
        return child

    def map(self, address: int, length: int, protection: int, *, shared: bool) -> None:
        """mmap(2) of anonymous memory at a free, aligned address."""
        untouched = Entry(protection, shared)
        for number in self.free_pages(address, length):
            # Shared anonymous memory is one object from the start.
            self.entries[number] = replace(untouched, page=Page()) if shared else untouched

    def _own(self, number: int) -> Entry:
        """The entry of a page, which no other page shares."""
        entry = self.entries[number]
        if entry.page is None:
            entry = self.entries[number] = replace(entry)
        return entry

    def free_pages(self, address: int, length: int) -> range:
        """The page numbers of a range.  Raises Errno unless it is aligned and free."""
        if length == 0 or address % PAGE_SIZE:
            raise Errno("EINVAL")
        numbers = pages_of(address, length)
        if any(number in self.entries for number in numbers):
            raise Errno("EEXIST")
        return numbers

    def map_frames(
        self, numbers: range, pages: Sequence[Page], entry: Entry, *, readable: bool = True
    ) -> None:
        """Map one page per number, with the rights of ``entry``, as remap_pfn_range() does.

        ``readable`` entries allow reads until mprotect(2) applies the rights.
        """
        for index, (number, page) in enumerate(zip(numbers, pages, strict=True)):
            self.entries[number] = replace(
                entry, page=page, device=page, readable=readable, index=index
            )

    def unmap(self, address: int, length: int) -> None:
        """munmap(2); unmapped pages are ignored."""
        if length == 0 or address % PAGE_SIZE:
            raise Errno("EINVAL")
        self._check_whole(pages_of(address, length))
        for number in pages_of(address, length):
            self.entries.pop(number, None)

    def owners(self, numbers: Iterable[int] | None = None) -> list[object]:
        """The open files of perf rings in all or some pages, each once."""
        chosen = self.entries if numbers is None else numbers
        found = (self.entries[number].owner for number in chosen if number in self.entries)
        return list(dict.fromkeys(owner for owner in found if owner is not None))

    def _check_whole(self, numbers: range) -> None:
        """Raise NotModelled for a part of a ring: perf_mmap_may_split() may refuse it."""
        if not numbers:
            return
        for number in (numbers[0], numbers[-1] + 1):
            before, here = self.entries.get(number - 1), self.entries.get(number)
            if before and here and before.owner is here.owner is not None and here.index:
                raise NotModelled("a part of a ring")

    def protect(self, address: int, length: int, protection: int) -> None:
        """mprotect(2) of mapped pages."""
        self._check_whole(pages_of(address, length))
        for number in pages_of(address, length):
            if number not in self.entries:
                raise Errno("ENOMEM")
            entry = self._own(number)
            if protection & mmap.PROT_WRITE and not entry.may_write:
                raise Errno("EACCES")
            if protection == entry.protection:
                # mprotect_fixup() does nothing.
                continue
            entry.protection = protection
            entry.readable = False
            # Added rights take effect with a fault.
            entry.exclusive = False

    def read(self, address: int, length: int) -> bytes:
        """Read bytes as the process or the kernel would.  Raises Errno("EFAULT")."""
        self._check_range(address, length)
        number, start = divmod(address, PAGE_SIZE)
        if 0 < length <= PAGE_SIZE - start:
            return self._readable(number, start, start + length)
        return b"".join(self._readable(*chunk) for chunk in _chunks(address, length))

    def _check_range(self, address: int, length: int) -> None:
        """access_ok() before an access.  Raises Errno("EFAULT").

        Where the limit depends on the paging mode and nothing is mapped, the access faults with the
        other limit.
        """
        try:
            inside = is_user_range(address, length)
        except NotModelled:
            if address // PAGE_SIZE in self.entries:
                raise
            inside = False
        if not inside:
            raise Errno("EFAULT")

    def read_present(self, address: int, length: int) -> bytes:
        """copy_from_user_nofault(): read without faults.

        Raises NotModelled for a page that only a read may have faulted in, Errno("EFAULT").
        """
        for number in pages_of(address, length):
            entry = self.entries.get(number)
            if entry is not None and entry.present() is None:
                raise NotModelled("a page that was never written")
        return self.read(address, length)

    def is_known(self, address: int, length: int) -> bool:
        """Whether no byte of a range is unknown."""
        return not any(self._unknown(*chunk) for chunk in _chunks(address, length))

    def learn(self, address: int, data: bytes) -> None:
        """Fill the unknown bytes of a range with what was read."""
        done = 0
        for number, start, stop in _chunks(address, len(data)):
            page = self.entries[number].page
            for position in self._unknown(number, start, stop):
                assert page is not None
                page.store(position, data[done + position - start :][:1])
            done += stop - start

    def _unknown(self, number: int, start: int, stop: int) -> set[int]:
        entry = self.entries.get(number)
        if entry is None or entry.page is None or not entry.page.unknown:
            return set()
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
        """Store bytes with write faults.  Raises Errno("EFAULT")."""
        self._check_range(address, len(data))
        done = 0
        for number, start, stop in _chunks(address, len(data)):
            page = self.fault_in(number * PAGE_SIZE)
            page.store(start, data[done : done + stop - start])
            done += stop - start

    def put(self, address: int, data: bytes) -> None:
        """put_user(): all bytes or none.  Raises Errno("EFAULT")."""
        for number in pages_of(address, len(data)):
            self.fault_in(number * PAGE_SIZE)
        self.write(address, data)

    def fault_in(self, address: int) -> Page:
        """Take a write fault: the page is present and exclusive afterwards."""
        entry = self.entries.get(address // PAGE_SIZE)
        if entry is None or not entry.protection & mmap.PROT_WRITE:
            raise Errno("EFAULT")
        if entry.owner is not None and entry.index:
            # perf_mmap_fault(): a program may write to the first page of a ring only.
            raise Errno("EFAULT")
        if not entry.exclusive:
            entry = self._own(address // PAGE_SIZE)
            if entry.present() is None:
                entry.page = Page()
            elif entry.page is not None and not entry.shared:
                entry.page = entry.page.copy()
            entry.exclusive = True
        assert entry.page is not None
        return entry.page

    def pinned(self, address: int) -> Page | None:
        """The page of ``address`` if it is writable without a fault (FOLL_NOFAULT)."""
        entry = self.entries.get(address // PAGE_SIZE)
        if entry is None or not entry.exclusive or not entry.protection & mmap.PROT_WRITE:
            return None
        return None if entry.page is entry.device else entry.page

    def word_page(self, address: int) -> Page:
        """The page of an enable word, faulted in if need be.  Raises Errno("EFAULT").

        A page of a device comes in each time, but cannot be pinned (user_event_mm_fault_in()).
        """
        self.fault_in(address)
        if (page := self.pinned(address)) is None:
            self.device_faults += _ATTEMPTS
            raise Errno("EFAULT")
        return page

    def mark_unspecified(self, address: int, length: int) -> None:
        """Mark bytes whose content the kernel chooses."""
        self.unspecified.append((address, length))

    def is_unspecified(self, address: int, length: int) -> bool:
        """Whether the kernel chose any of these bytes."""
        return any(
            start < address + length and address < start + size for start, size in self.unspecified
        )

    def store(self, address: int, data: bytes) -> None:
        """A store of the process: the bytes are known again."""
        self.write(address, data)
        self.unspecified = [
            (start, size)
            for start, size in self.unspecified
            if start < address or address + len(data) < start + size
        ]

    def assume(self, address: int, data: bytes, protection: int | None, *, shared: bool) -> None:
        """Take over memory as it was observed; pages that are not mapped appear.

        Without ``protection`` a page keeps its own; a new one can be written.
        """
        done = 0
        for number, start, stop in _chunks(address, len(data)):
            if number not in self.entries or self.entries[number].device is not None:
                # Pages of devices cannot be read by others: the status page is not here any more.
                self.entries[number] = Entry(_READ_WRITE, shared)
            entry = self._own(number)
            part = data[done : done + stop - start]
            done += stop - start
            if protection is not None:
                entry.protection = protection
            page = entry.present() or Page()
            if page.content[start:stop] != part and not (entry.exclusive or entry.shared):
                # The parent or child of a fork may have the same page.
                page = page.copy()
            entry.page = page
            page.store(start, part)

    def forget(self, address: int, length: int) -> None:
        """Take over that pages were observed not to be readable, or are mapped again."""
        numbers = pages_of(address, length)
        for number in [each for each in self.entries if each in numbers]:
            del self.entries[number]

    def discard(self, address: int, length: int) -> None:
        """madvise(MADV_DONTNEED): private pages read as zero again.

        Raises Errno: EINVAL for VM_PFNMAP, which ends it, ENOMEM for pages that are not mapped.
        """
        numbers = pages_of(address, length)
        for number in numbers:
            entry = self.entries.get(number)
            if entry is None:
                continue
            if entry.owner is not None:
                raise NotModelled("discarding pages of a ring, which 6.14 refuses")
            if entry.device is not None:
                raise Errno("EINVAL")
            entry.exclusive = False
            if not entry.shared:
                entry.page = None
        if any(number not in self.entries for number in numbers):
            raise Errno("ENOMEM")

    def move(self, address: int, length: int, new_address: int) -> None:
        """mremap(2) to a free place: page-table entries go as they are."""
        numbers = pages_of(address, length)
        if any(number not in self.entries for number in numbers):
            raise Errno("EFAULT")
        if any(self.entries[number].device or self.entries[number].owner for number in numbers):
            raise NotModelled("moving a VM_PFNMAP mapping or a ring")
        for number, new in zip(numbers, self.free_pages(new_address, length), strict=True):
            self.entries[new] = self.entries.pop(number)

    def map_content(self, numbers: range, file: Content, first: int, entry: Entry) -> None:
        """mmap(2) of a memfd from page ``first`` on, with the rights of ``entry``."""
        for index, number in enumerate(numbers, first):
            self.entries[number] = replace(entry, file=file, index=index)

    def truncate_file(self, file: Content, length: int) -> None:
        """unmap_mapping_range() beyond the new length of a memfd, in pages."""
        for entry in self.entries.values():
            if entry.file is file and entry.index >= length:
                entry.page = None
                entry.exclusive = False


def _chunks(address: int, length: int) -> Iterator[tuple[int, int, int]]:
    """(page number, start, stop) of every page in a range."""
    position = address
    while position < address + length:
        number, start = divmod(position, PAGE_SIZE)
        stop = min(PAGE_SIZE, start + address + length - position)
        yield number, start, stop
        position += stop - start
