"""The status page and its indexes (up to 6.3).

Source: trace_events_user.c:user_status_mmap, update_reg_page_for, user_event_register_set,
user_event_register_clear, user_event_parse.
"""

from __future__ import annotations

from conformance.abi.profile import Generation, Profile
from conformance.abi.uapi import EVENT_BIT_FTRACE, EVENT_BIT_OTHER, EVENT_BIT_PERF
from conformance.model.errors import Errno
from conformance.model.memory.pages import PAGE_SIZE, Page

# EVENT_STATUS_*: the kinds of probes on an event, and how texts call them.
STATUS_FTRACE = 1 << EVENT_BIT_FTRACE
STATUS_PERF = 1 << EVENT_BIT_PERF
STATUS_OTHER = 1 << EVENT_BIT_OTHER
USERS = {STATUS_FTRACE: "ftrace", STATUS_PERF: "perf", STATUS_OTHER: "other"}
# Index 0 stays free, for programs that registered no event.
FIRST_INDEX = 1
_BITS = 8


def used_by(status: int) -> str:
    """The kinds of probes in a status as texts show them, "" for none."""
    users = "".join(f" {user}" for bit, user in USERS.items() if status & bit)
    return f"Used by{users}" if status else ""


def pages(profile: Profile) -> int:
    """Length of the status page in pages (MAX_PAGES)."""
    return 2 if profile.has("two_status_pages") else 1


def capacity(profile: Profile) -> int:
    """One more than the largest index (MAX_EVENTS)."""
    size = pages(profile) * PAGE_SIZE
    return size * _BITS if profile.generation is Generation.BIT_STATUS else size


class Indexes:
    """The indexes in use (page_bitmap)."""

    def __init__(self, profile: Profile) -> None:
        self._limit = capacity(profile)
        self._taken = (1 << FIRST_INDEX) - 1

    def lowest(self) -> int:
        """The lowest free index.  Raises Errno("EMFILE")."""
        index = (~self._taken & self._taken + 1).bit_length() - 1
        if index >= self._limit:
            raise Errno("EMFILE")
        return index

    def take(self, index: int) -> None:
        """Mark an index as in use."""
        self._taken |= 1 << index

    def free(self, index: int) -> None:
        """Mark an index as free; those below FIRST_INDEX never are."""
        if index >= FIRST_INDEX:
            self._taken &= ~(1 << index)


class StatusPage:
    """The pages, shared by every mapping."""

    def __init__(self, profile: Profile) -> None:
        self._bytewise = profile.generation is not Generation.BIT_STATUS
        # rfc-v1 does not clear the page (trace_events_user_init: kmalloc): the byte of an event is
        # random until the first probe is attached or detached.
        unset = range(PAGE_SIZE if profile.generation is Generation.RFC_V1 else 0)
        self.content = [Page(unknown=set(unset)) for _ in range(pages(profile))]

    def set_status(self, index: int, status: int) -> None:
        """Store the EVENT_STATUS_* bits of an event."""
        page, position = self._locate(index)
        if self._bytewise:
            page.store(position, bytes([status]))
        else:
            page.set_bit(position, index % _BITS, on=bool(status))

    def byte(self, index: int) -> int:
        """The byte of an event, which the kernel reads back up to 6.0 and user space can write."""
        page, position = self._locate(index)
        return page.content[position]

    def is_known(self, index: int) -> bool:
        """Whether the content at an index is determined."""
        page, position = self._locate(index)
        return position not in page.unknown

    def _locate(self, index: int) -> tuple[Page, int]:
        number, position = divmod(index if self._bytewise else index // _BITS, PAGE_SIZE)
        return self.content[number], position
