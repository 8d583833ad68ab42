"""Indexes and status of events in a page that programs map: up to 6.3.

Source: trace_events_user.c:user_status_mmap, update_reg_page_for,
user_event_register_set, user_event_register_clear, user_event_parse.
"""

from __future__ import annotations

from conformance.abi.profile import Generation, Profile
from conformance.model.errors import Errno
from conformance.model.memory import PAGE_SIZE, Page

# Index 0 is never given out, so that a program may use it for an event it has not got.
FIRST_INDEX = 1
_BITS = 8


def pages(profile: Profile) -> int:
    """Length of the status page in pages (MAX_PAGES)."""
    return 2 if profile.has("two_status_pages") else 1


def capacity(profile: Profile) -> int:
    """One more than the largest index (MAX_EVENTS)."""
    size = pages(profile) * PAGE_SIZE
    return size * _BITS if profile.generation is Generation.BIT_STATUS else size


class Indexes:
    """Which indexes are taken: the lowest free one is given out (page_bitmap)."""

    def __init__(self, profile: Profile) -> None:
        self._limit = capacity(profile)
        self._taken = (1 << FIRST_INDEX) - 1

    def lowest(self) -> int:
        """The lowest index that is free.  Raises Errno("EMFILE") when there is none."""
        index = (~self._taken & self._taken + 1).bit_length() - 1
        if index >= self._limit:
            raise Errno("EMFILE")
        return index

    def take(self, index: int) -> None:
        """The index belongs to an event."""
        self._taken |= 1 << index

    def free(self, index: int) -> None:
        """It belongs to nobody; the first ones never do."""
        if index >= FIRST_INDEX:
            self._taken &= ~(1 << index)


class StatusPage:
    """The pages, as everybody who maps them sees them."""

    def __init__(self, profile: Profile) -> None:
        self._bytewise = profile.generation is not Generation.BIT_STATUS
        # At first the page was not cleared (trace_events_user_init: kmalloc): until somebody
        # begins or ends to listen, the byte of an event is whatever the memory held.
        unset = frozenset(range(PAGE_SIZE if profile.generation is Generation.RFC_V1 else 0))
        self.content = [Page(unknown=unset) for _ in range(pages(profile))]

    def show(self, index: int, status: int) -> None:
        """Let the place of an event show a new status (EVENT_STATUS_* bits)."""
        page, position = self._place(index)
        if self._bytewise:
            page.store(position, bytes([status]))
            return
        mask = 1 << index % _BITS
        if status:
            page.content[position] |= mask
        else:
            page.content[position] &= ~mask & 0xFF

    def byte(self, index: int) -> int:
        """The byte of an event, which kernels up to 6.0 believe whoever wrote it."""
        page, position = self._place(index)
        return page.content[position]

    def is_known(self, index: int) -> bool:
        """Whether anybody can say what the place of an event shows."""
        page, position = self._place(index)
        return position not in page.unknown

    def _place(self, index: int) -> tuple[Page, int]:
        number, position = divmod(index if self._bytewise else index // _BITS, PAGE_SIZE)
        return self.content[number], position
