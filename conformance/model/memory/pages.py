"""Pages and page-table entries."""

from __future__ import annotations

from dataclasses import dataclass, field

from conformance.model.errors import Errno, NotModelled

PAGE_SIZE = 4096
# The end of user space with four-level paging.  Between this and the end with five levels the model
# knows nothing.
USER_TOP = 0x7FFFFFFFF000
KERNEL_HALF = 1 << 63


@dataclass(slots=True)
class Page:
    """One page, shared by all of its mappings.

    ``unknown`` are bytes that the kernel left uninitialized and that no case has written or read.
    """

    content: bytearray = field(default_factory=lambda: bytearray(PAGE_SIZE))
    # Not frozen: the bytes of a state show whether pages share an object.
    unknown: set[int] = field(default_factory=set)

    def copy(self) -> Page:
        """Another page with the same content."""
        return Page(bytearray(self.content), set(self.unknown))

    def store(self, start: int, data: bytes) -> None:
        """Store bytes, which are known from then on."""
        self.content[start : start + len(data)] = data
        if self.unknown:
            self.unknown -= set(range(start, start + len(data)))

    def set_bit(self, address: int, bit: int, *, on: bool) -> None:
        """Set or clear one bit of the word at ``address``."""
        position = address % PAGE_SIZE + bit // 8
        mask = 1 << bit % 8
        if on:
            self.content[position] |= mask
        else:
            self.content[position] &= ~mask & 0xFF


@dataclass(slots=True, eq=False)
class Content:
    """The pages of a memfd, shared by all of its mappings."""

    pages: list[Page] = field(default_factory=list)


@dataclass(slots=True)
class Entry:
    """A page-table entry with the rights of its mapping.

    ``page`` is None if not present; ``exclusive`` means that a store needs no fault.  ``device`` is
    the page of a VM_PFNMAP mapping (remap_pfn_range), which get_user_pages() does not find.
    ``may_write`` is VM_MAYWRITE.  ``readable`` means that the entry allows reads, whatever the
    protection.
    """

    protection: int
    shared: bool
    page: Page | None = None
    exclusive: bool = False
    device: Page | None = None
    may_write: bool = True
    readable: bool = False
    # The open file of a perf ring: the mapping holds a reference and is VM_DONTCOPY.
    owner: object | None = None
    # For a memfd: its pages, and the index of this one.
    file: Content | None = None
    index: int = 0

    def present(self) -> Page | None:
        """The page, looked up in the memfd if needed; None for untouched anonymous memory.

        Raises Errno("EFAULT") beyond the end of the file (SIGBUS).
        """
        if self.page is None and self.file is not None:
            if self.index >= len(self.file.pages):
                raise Errno("EFAULT")
            self.page = self.file.pages[self.index]
        return self.page


def is_user_range(address: int, length: int) -> bool:
    """access_ok(): whether a range lies in user space.

    Raises NotModelled between the limits of four-level and five-level paging.
    """
    end = address + length
    if address >= KERNEL_HALF or end > KERNEL_HALF:
        return False
    if end > USER_TOP:
        raise NotModelled(f"address {address:#x}: depends on the paging mode")
    return True


def pages_of(address: int, length: int) -> range:
    """The numbers of the pages in a range."""
    return range(address // PAGE_SIZE, (address + length + PAGE_SIZE - 1) // PAGE_SIZE)
